package edge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim"
)

// live runs the world: clients and faults, the end of the faults, and the checks after it.
func (w *world) live() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	asking, enough := context.WithCancel(ctx)
	failing, healed := context.WithCancel(ctx)
	defer healed()
	var scribes, clients, watching sync.WaitGroup
	for _, s := range w.seats {
		scribes.Go(func() { w.truth.scribe(ctx, s) })
	}
	for i := range w.plan.Clients {
		clients.Go(func() { w.newClient(i).run(asking) })
	}
	for _, program := range w.programs() {
		clients.Go(func() { program(asking) })
	}
	over := make(chan struct{}) // closed when nothing more is written
	var watchers []*watcher
	for i := range w.plan.Watchers {
		x := w.newWatcher(i)
		watchers = append(watchers, x)
		watching.Go(func() { x.run(ctx, over) })
	}
	faults := make(chan struct{})
	go func() {
		defer close(faults)
		w.faults(failing)
	}()
	sleep(w.plan.Length)
	healed()
	<-faults
	w.heal()
	sleep(calmGrace + 5*time.Second)
	enough()
	clients.Wait()
	sleep((tenantTTL+4)*time.Second + leaseSlack)
	w.settled()
	close(over)
	done := make(chan struct{})
	go func() {
		watching.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		for _, x := range watchers {
			w.fail("watch", "%s has not come to revision %d within a minute", x.name, x.last())
		}
		end()
		<-done
	}
	end()
	scribes.Wait()
	sleep(2 * time.Second) // what was read ahead is given back
	for _, s := range w.seats {
		if n := s.node(); n != nil {
			w.budget(s, n, 0)
		}
	}
	for _, x := range watchers {
		x.judge()
	}
	w.judge()
	w.judgeLeases()
}

// settled demands that every node answers its requests, and that all reach the same height.
func (w *world) settled() {
	for i, s := range w.seats {
		k, v := fmt.Sprintf("/end/%02d", i), fmt.Sprintf("end %d", i)
		var r machine.Receipt
		w.call(s, "the last write", calmWait, func(ctx context.Context, n *node.Node) (err error) {
			r, err = n.Txn(ctx, scope.Txn{Success: []scope.Op{put(k, v)}}, node.Once{})
			return applied(r, err)
		})
		for _, o := range w.seats {
			w.call(o, "the last read", calmWait, func(ctx context.Context, n *node.Node) error {
				res, head, err := n.Range(ctx, []byte(k), nil, scope.Range{}, true)
				if err == nil && (len(res.Kvs) != 1 || string(res.Kvs[0].Value) != v) {
					w.fail("linearizable", "%s read %v of %s at height %d, which was acknowledged at height %d", o.name, contents(res.Kvs), k, head.Height, r.Height)
				}
				return err
			})
		}
	}
	var highest scope.Head
	for _, s := range w.seats {
		if n := s.node(); n != nil && n.Root().LastHead().Height > highest.Height {
			highest = n.Root().LastHead()
		}
	}
	for _, s := range w.seats {
		n := s.node()
		for began := time.Now(); n != nil && n.Root().LastHead().Height < highest.Height; sleep(100 * time.Millisecond) {
			if time.Since(began) > calmWait {
				w.fail("settled", "%s is at height %d, and others at %d", s.name, n.Root().LastHead().Height, highest.Height)
				break
			}
		}
		if n == nil {
			w.fail("settled", "%s does not run", s.name)
		}
	}
	sleep(2 * time.Second) // scribes look at least once a second
}

// judge holds what clients saw to the committed history.
func (w *world) judge() {
	x := &w.register
	var asked []sim.Asked
	read := make(map[[2]string]bool) // values, which are written once, of keys
	for _, a := range x.asked {
		read[[2]string{a.Key, a.Got}] = true
	}
	for _, a := range x.asked {
		if a.Undetermined { // what a read shows was done, also if compaction took it before the history was read
			if _, done := w.truth.wrote(a.Key, a.Value); !done && !read[[2]string{a.Key, a.Value}] {
				continue
			}
		}
		asked = append(asked, a)
	}
	w.count("requests in order", len(asked))
	if why := sim.Order(asked); why != "" {
		w.fail("linearizable", "%s", why)
	}
	for _, s := range x.seen {
		if s.revision < s.least {
			w.fail("linearizable", "%s: revision %d, though %d was acknowledged before it began", s.what, s.revision, s.least)
		}
		want := w.truth.at(s.key, s.end, s.revision)
		same := len(want) == len(s.got)
		for k, c := range want {
			same = same && s.got[k] == c.value
		}
		if !same {
			w.fail("state", "%s: %v as of revision %d, and it was %v", s.what, s.got, s.revision, want)
		}
		w.count("reads held to the history", 1)
	}
}

// programs are the clients of other kinds.
func (w *world) programs() (all []func(context.Context)) {
	p := &w.plan
	for i := range p.Tenants {
		all = append(all, w.tenant(i))
	}
	for _, of := range []struct {
		wanted bool
		run    func(context.Context)
	}{{p.scopes(), w.delegate}, {p.Compact, w.compact}, {p.Late, w.join}, {p.Flood, w.flood}, {p.Inspect, w.inspect}, {p.Vote, w.vote}, {p.Admit, w.admit}} {
		if of.wanted {
			all = append(all, of.run)
		}
	}
	return all
}
