package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim"
)

// register is what the clients of single keys asked and were told.
type register struct {
	mu    sync.Mutex
	asked []sim.Asked
	seen  []sight
}

// sight is a state that a client saw, which must be the one of its revision.
type sight struct {
	what     string
	key, end []byte
	revision int64
	least    int64 // of what was acknowledged when the read began
	got      map[string]string
}

// client is one user of the API. What it asks follows from the seed.
type client struct {
	w      *world
	number int
	r      *rand.Rand
	writes int
	known  map[string]string // of keys, as it last saw them
}

func (w *world) newClient(number int) *client {
	return &client{w: w, number: number, r: w.chance.of("client", number).stream(), known: make(map[string]string)}
}

// seat is one of all nodes.
func (c *client) seat() *seat { return c.w.seats[c.r.IntN(len(c.w.seats))] }

// pause is the time until the next request.
func (c *client) pause(ctx context.Context) bool {
	return rest(ctx, time.Duration(c.r.Int64N(int64(2*c.w.plan.Think))))
}

// value is one that nothing else writes, of a size that varies.
func (c *client) value() string {
	c.writes++
	return fmt.Sprintf("%d.%d.%0*d", c.number, c.writes, 1+c.r.IntN(c.w.plan.Value), 0)
}

// run reads and writes single keys until ctx ends.
func (c *client) run(ctx context.Context) {
	for c.pause(ctx) {
		under := c.w.plan.Under[c.r.IntN(len(c.w.plan.Under))]
		k := key(under+"r", c.r.IntN(3))
		within := time.Duration(1+c.r.IntN(8)) * time.Second
		switch s := c.seat(); c.r.IntN(10) {
		case 0, 1, 2:
			c.write(s, k, within)
		case 3:
			c.swap(s, k, within)
		case 4, 5, 6:
			c.read(s, k, within)
		case 7:
			c.stale(s, k, within)
			for i := 0; c.w.plan.Foreign && i < 5 && rest(ctx, 200*time.Millisecond); i++ { // often enough for a copy
				c.stale(s, k, within)
			}
		case 8:
			c.list(s, under, within)
		case 9:
			c.mixed(s, under, within)
		}
	}
}

// note keeps a request for the judge.
func (c *client) note(a sim.Asked, began time.Time) {
	a.Client, a.Begin, a.End = c.number, c.w.since(began), c.w.since(time.Now())
	c.w.register.mu.Lock()
	defer c.w.register.mu.Unlock()
	c.w.register.asked = append(c.w.register.asked, a)
}

func (c *client) sees(x sight) {
	c.w.register.mu.Lock()
	defer c.w.register.mu.Unlock()
	c.w.register.seen = append(c.w.register.seen, x)
}

// once names a request, by the client's stream and not by the node's. With another instant it would be another request.
func (c *client) once() node.Once {
	return node.Once{
		Nonce:      fmt.Appendf(nil, "client %04d, request %08d", c.number, c.r.Uint32()),
		ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute)),
	}
}

// write puts a value. Now and then it asks twice, with the same nonce: it is done once.
func (c *client) write(s *seat, k string, within time.Duration) {
	v := c.value()
	c.change(s, sim.Asked{Kind: "write", Key: k, Value: v}, scope.Txn{Success: []scope.Op{put(k, v)}}, within)
}

// swap puts a value if the key has the one that this client knows.
func (c *client) swap(s *seat, k string, within time.Duration) {
	v, was := c.value(), c.known[k]
	t := scope.Txn{Success: []scope.Op{put(k, v)}, Compare: []scope.Compare{{Target: scope.OnValue, Relation: scope.Equal, Key: []byte(k), Value: []byte(was)}}}
	if was == "" {
		t.Compare = []scope.Compare{{Target: scope.OnVersion, Relation: scope.Equal, Key: []byte(k)}}
	}
	c.change(s, sim.Asked{Kind: "swap", Key: k, Value: v, Was: was}, t, within)
}

func (c *client) change(s *seat, a sim.Asked, t scope.Txn, within time.Duration) {
	once, began := c.once(), time.Now()
	tries := 1 + c.r.IntN(5)/4
	for range tries {
		var r machine.Receipt
		ok := c.w.call(s, a.Kind+" of "+a.Key, within, func(ctx context.Context, n *node.Node) (err error) {
			r, err = n.Txn(ctx, t, once)
			return applied(r, err)
		})
		if ok {
			a.Failed = a.Kind == "swap" && !r.Succeeded
			if !a.Failed {
				c.known[a.Key] = a.Value
				c.w.acknowledge(r.Revision)
			}
			c.note(a, began)
			return
		}
		rest(context.Background(), time.Duration(c.r.IntN(1000))*time.Millisecond)
	}
	a.Undetermined = true
	c.note(a, began)
}

// read reads a key as of a quorum.
func (c *client) read(s *seat, k string, within time.Duration) {
	began, least := time.Now(), c.w.acknowledged()
	if x, ok := c.look(s, "read of "+k, []byte(k), nil, scope.Range{}, true, within); ok {
		x.least = 0 // of several scopes, the head tells its own
		if !c.w.plan.scopes() {
			x.least = least
		}
		c.sees(x)
		c.note(sim.Asked{Kind: "read", Key: k, Got: x.got[k]}, began)
		c.known[k] = x.got[k]
	}
}

// stale reads a key, or all with its path, as the node knows it.
func (c *client) stale(s *seat, k string, within time.Duration) {
	from, end := []byte(k), []byte(nil)
	if c.r.IntN(3) == 0 {
		from = from[:bytes.LastIndexByte(from, '/')+1]
		end = prefixEnd(from)
	}
	if x, ok := c.look(s, "stale read of "+string(from), from, end, scope.Range{}, false, within); ok {
		c.sees(x)
	}
}

func (c *client) look(s *seat, what string, k, end []byte, r scope.Range, linearizable bool, within time.Duration) (x sight, ok bool) {
	ok = c.w.call(s, what, within, func(ctx context.Context, n *node.Node) error {
		copied := n.Copies().Answered
		res, head, err := n.Range(ctx, k, end, r, linearizable)
		if err != nil {
			return err
		}
		if n.Copies().Answered > copied {
			c.w.count("reads from copies", 1)
		}
		x = sight{what: what + " at " + s.name, key: k, end: end, revision: head.Revision, got: contents(res.Kvs)}
		if r.Revision > 0 {
			x.revision = r.Revision
		}
		return nil
	})
	return x, ok
}

func contents(kvs []scope.KeyValue) map[string]string {
	got := make(map[string]string)
	for i := range kvs {
		got[string(kvs[i].Key)] = string(kvs[i].Value)
	}
	return got
}

// list reads all keys below a prefix as of an old revision, in pages.
func (c *client) list(s *seat, under string, within time.Duration) {
	revision := c.w.truth.latest() - int64(c.r.IntN(10))
	if c.w.plan.scopes() { // revisions go by time
		revision = c.w.truth.someRevision(c.r)
	}
	if revision < 2 {
		return
	}
	if c.r.IntN(3) == 0 {
		under = "/"
	}
	most, limit := 200+c.r.IntN(2000), int64(c.r.IntN(2)*(5+c.r.IntN(20)))
	x := sight{what: fmt.Sprintf("pages of %s at revision %d at %s", under, revision, s.name), key: []byte(under), end: prefixEnd([]byte(under)), revision: revision, got: make(map[string]string)}
	from := x.key
	for more := true; more; {
		ok := c.w.call(s, x.what, within, func(ctx context.Context, n *node.Node) error {
			res, err := n.Page(ctx, from, x.end, scope.Range{Revision: revision, Limit: limit}, most, true)
			for errors.Is(err, scope.ErrFutureRevision) && s.node() == n && rest(ctx, 100*time.Millisecond) { // the node lags
				res, err = n.Page(ctx, from, x.end, scope.Range{Revision: revision, Limit: limit}, most, true)
			}
			if err != nil {
				return c.w.old(n, err, revision)
			}
			for _, kv := range res.Kvs {
				x.got[string(kv.Key)] = string(kv.Value)
				from = append([]byte(string(kv.Key)), 0)
			}
			more = res.More && len(res.Kvs) > 0
			return nil
		})
		if !ok {
			return
		}
	}
	c.w.count("lists", 1)
	c.sees(x)
}

// mixed writes and deletes several keys in one transaction.
func (c *client) mixed(s *seat, under string, within time.Duration) {
	t := scope.Txn{Success: []scope.Op{put(key(under+"m", c.r.IntN(6)), c.value())}}
	if c.r.IntN(2) == 0 {
		t.Success = append(t.Success, scope.Op{Kind: scope.OpDelete, Key: []byte(key(under+"m", 6+c.r.IntN(4))), Prev: true})
	} else {
		t.Success = append(t.Success, put(key(under+"m", 6+c.r.IntN(4)), c.value()))
	}
	once := c.once()
	c.w.call(s, "transaction below "+under, within, func(ctx context.Context, n *node.Node) error {
		r, err := n.Txn(ctx, t, once)
		if err == nil && r.Code == scope.Applied {
			c.w.acknowledge(r.Revision)
		}
		return applied(r, err)
	})
}
