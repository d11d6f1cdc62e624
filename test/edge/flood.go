package edge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

const (
	flooders    = 60
	floodFor    = 3 * time.Second
	quietWithin = 5 * time.Second // in which a client of another scope is served meanwhile
)

// flood has many clients write to the root scope through one node, beside a client of another scope, which must be
// served. Nothing else is wrong in such a world. When the flood is over there is room again.
func (w *world) flood(ctx context.Context) {
	if !rest(ctx, w.plan.Length/2) {
		return
	}
	s := w.seats[w.chance.of("flooded").below(len(w.seats))]
	var all sync.WaitGroup
	flooding, end := context.WithTimeout(ctx, floodFor)
	defer end()
	for i := range flooders {
		all.Go(func() {
			for j := 0; flooding.Err() == nil; j++ {
				w.call(s, "flooding", 4*time.Second, func(ctx context.Context, n *node.Node) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					if j%4 == 3 { // some do not wait for the answer
						stop := time.AfterFunc(200*time.Millisecond, cancel)
						defer stop.Stop()
					}
					r, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put(fmt.Sprintf("/a/flood%02d", i), fmt.Sprint(j))}}, node.Once{})
					return applied(r, err)
				})
				rest(flooding, 10*time.Millisecond)
			}
		})
	}
	for i := 0; flooding.Err() == nil; i++ {
		w.quiet(s, fmt.Sprintf("/b/quiet%02d", i%4), "beside a flood")
		rest(flooding, 200*time.Millisecond)
	}
	all.Wait()
	rest(ctx, 5*time.Second)
	w.quiet(s, "/a/quiet", "after a flood")
	w.count("floods", 1)
}

// quiet writes once, in time.
func (w *world) quiet(s *seat, k, when string) {
	began := time.Now()
	if !w.call(s, "a write "+when, quietWithin, func(ctx context.Context, n *node.Node) error {
		r, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put(k, "q")}}, node.Once{})
		return applied(r, err)
	}) {
		w.fail("admission", "%s does not serve a client %s within %v", s.name, when, time.Since(began))
	}
}
