package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// client asks one thing after another, of one honest node at a time.
type client struct {
	w     *World
	id    int
	at    *Node
	known map[string]string // the value that it last saw under a key, to compare with
	busy  int               // number of the request that is open; 0: none
	made  int               // requests so far
	later []func()          // its next requests

	asked   []scope.Mutation // by its last program
	version scope.Naming     // of an object, that it last wrote under an alias: to fork, or to roll back to
}

// operation is one request and what its client learned of it, for the history.
type operation struct {
	client     int
	kind       string // read, write, swap or name
	key        string
	value, was string // written; expected by a swap
	got        string // read
	mutation   aweigh.Hash
	until      aweigh.Instant // it may be applied
	in         *World         // the scope that was asked last
	tried      []attempt
	nothing    bool // nothing came of it
	refused    bool // because of the request, not of the node
	begin, end time.Duration
	unknown    bool // no answer came
	probe      bool // a read that was held to the height of its answer, too
	failed     bool // a swap that found another value
	exceeded   bool // it got the answer that nothing was done, and that its bundle never will be
	learn      func(scope.Outcome)
}

// attempt is a mutation that a scope was asked for.
type attempt struct {
	in       *World
	mutation aweigh.Hash
}

// startClients starts the clients of the scenario.
func (w *World) startClients() {
	load := w.Scenario.Load
	var hosts []*Node
	for _, n := range w.Nodes {
		if n.liar == nil && n.Face == 0 {
			hosts = append(hosts, n)
		}
	}
	if len(hosts) == 0 {
		return
	}
	w.startLeaseClients(hosts)
	w.startVisitors(hosts)
	w.startReaders(hosts)
	w.actors(hosts)
	w.owning()
	w.probing()
	writes, reads := load.Writes, load.Reads
	for i := range load.Clients {
		c := &client{w: w, id: i, at: hosts[i%len(hosts)], known: make(map[string]string)}
		w.clients = append(w.clients, c)
		// Each has its share of the requests, spread over the time until Stop.
		mine := func(all int) int { return (all + load.Clients - 1 - i) / load.Clients }
		for range mine(writes) {
			w.at(w.drawTime(w.ask), func() { c.queue(c.write) })
		}
		for range mine(reads) {
			w.at(w.drawTime(w.ask), func() { c.queue(c.read) })
		}
		for range mine(load.Names) {
			w.at(w.drawTime(w.naming), func() { c.queue(c.name) })
		}
		for range mine(load.Dear) {
			w.at(w.drawTime(w.dear), func() { c.queue(c.putOverCost) })
		}
		c.programming(mine(load.Programs))
		// Now and then a client goes to another node.
		if w.ask.IntN(2) == 0 {
			w.at(w.drawTime(w.ask), func() { c.at = hosts[w.ask.IntN(len(hosts))] })
		}
	}
}

// queue makes a request, when the one that is open is answered or given up.
func (c *client) queue(do func()) {
	if c.busy != 0 {
		c.later = append(c.later, do)
	} else if c.w.firing {
		do()
	}
}

// begin opens a request, and gives it up in good time. The returned function ends it.
func (c *client) begin() (end func()) {
	c.made++
	c.busy = c.made
	me := c.busy
	end = func() {
		if c.busy != me {
			return
		}
		c.busy = 0
		if len(c.later) > 0 {
			next := c.later[0]
			c.later = c.later[1:]
			c.w.at(time.Millisecond, func() { c.queue(next) })
		}
	}
	c.w.at(2*c.w.Scenario.Load.Give, end)
	return end
}

func (c *client) key() string {
	load := &c.w.Scenario.Load
	i := c.w.ask.IntN(load.Keys)
	if load.Moves && c.w.ask.IntN(8) > 0 {
		n := len(load.Under)
		if i += c.w.burst()%n - i%n; i >= load.Keys {
			i -= n
		}
	}
	return c.w.keyName(i)
}

func (w *World) keyName(i int) string {
	under := "/"
	if all := w.Scenario.Load.Under; len(all) > 0 {
		under = all[i%len(all)]
	}
	return fmt.Sprintf("%sk%d", under, i)
}

// mutation is a transaction as a client asks for it; sent again, it is the same.
func (w *World) mutation(t scope.Txn, nonce []byte) scope.Mutation {
	return scope.Mutation{
		Scope: w.id, Class: scope.Write, Content: canon.Encode(t), Caller: callerOf(nonce), Nonce: nonce, ValidUntil: w.watch.time.from(w.now).Add(5 * time.Minute),
	}
}

// callerOf is the caller that a node states for a mutation: none for half of them.
func callerOf(nonce []byte) string {
	last := nonce[len(nonce)-1]
	if last%2 == 0 {
		return ""
	}
	return fmt.Sprintf("user:%d", last%8)
}

// write puts a value of its own, or swaps one for it.
func (c *client) write() {
	w := c.w
	key := c.key()
	nonce := binary.BigEndian.AppendUint64(nil, w.ask.Uint64())
	value := fmt.Sprintf("%0*x", w.Scenario.Load.Value, nonce)
	put := scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}
	d := &operation{client: c.id, kind: "write", key: key, value: value}
	t := scope.Txn{Success: []scope.Op{put}}
	if was := c.known[key]; was != "" && w.ask.Int64N(million) < int64(w.Scenario.Load.Swap) {
		d.kind, d.was = "swap", was
		t.Compare = []scope.Compare{{Key: []byte(key), Target: scope.OnValue, Relation: scope.Equal, Value: []byte(was)}}
	}
	c.submit(c.wrongScope(c.at.part(key)), d, w.mutation(t, nonce), 0, c.begin())
}

// wrongScope is the scope that a client asks, which now and then is not the one that decides.
func (c *client) wrongScope(right *Node) *Node {
	if all := c.w.scopes; len(all) > 1 && len(c.w.isles.all) == 0 && c.w.ask.IntN(12) == 0 {
		if p := all[c.w.ask.IntN(len(all))].Nodes[right.Index]; p.machine != nil {
			return p
		}
	}
	return right
}

// submit proposes a mutation in the scope of a node's part, and perhaps once more if
// no answer comes. If that scope does not decide any more, the one that does is asked.
func (c *client) submit(at *Node, d *operation, m scope.Mutation, try int, end func()) {
	w := c.w
	if at.liar != nil { // no honest node there is of this scope
		end()
		return
	}
	m.Scope = at.world.id
	open := true
	id, ok := at.Submit(m, func(r machine.Reply) {
		switch {
		case !open: // the client asks again
		case r.Refused == nil && handedOn(r.Outcome):
			open = false
			w.at(time.Millisecond, func() { c.follow(at, d, m, end) })
		case r.Refused == nil:
			open = false
			at.world.watch.answered(at, d, r)
			end()
			if try > 0 {
				w.watch.reach("late again")
			}
		case try == 0 && errors.Is(r.Refused, scope.ErrElsewhere): // the scope closed
			open = false
			w.at(time.Millisecond, func() { c.follow(at, d, m, end) })
		case try == 0:
			open = false
			w.watch.forget(d)
			end()
		}
	})
	if !ok { // the node is down: nothing was asked
		end()
		return
	}
	if try == 0 {
		d.mutation, d.until, d.in = id, m.ValidUntil, at.world
		d.tried = append(d.tried, attempt{d.in, id})
		at.world.watch.asked(d)
		w.log(at, "write", "client %d: %s %s (%s)", c.id, d.kind, d.key, id.Short())
	}
	chance := w.ask
	if d.kind == "name" {
		chance = w.naming
	}
	again := chance.IntN(3) == 0
	w.at(w.Scenario.Load.Give, func() {
		if open && try == 0 && again && w.firing {
			open = false
			c.submit(at, d, m, 1, end)
		}
	})
}

// follow asks for a write in the scope to which its key went meanwhile.
func (c *client) follow(at *Node, d *operation, m scope.Mutation, end func()) {
	next := at.part(d.key)
	if me := c.busy; next.machine != nil && next.machine.Closed() && c.w.firing { // the key is on its way home
		c.w.at(homeAgain, func() {
			if c.busy == me {
				c.follow(at, d, m, end)
				return
			}
			d.nothing = true
		})
		return
	}
	if !c.w.firing || next.machine == nil || next.world == at.world {
		d.nothing = true
		end()
		return
	}
	c.w.watch.reach("write followed")
	c.submit(next, d, m, 0, end)
}

// handedOn reports whether a mutation did nothing, as another scope decides.
func handedOn(o *scope.Outcome) bool {
	return o.Code == scope.Failed && errors.Is(scope.Failure(o.Reason), scope.ErrElsewhere)
}

// read asks for a linearizable read, and then reads the node's state.
func (c *client) read() {
	key := c.key()
	d, end := &operation{client: c.id, kind: "read", key: key}, c.begin()
	c.look(c.at.part(key), d, end)
}

// look reads in the scope of a node's part, or in the one to which the key went.
func (c *client) look(at *Node, d *operation, end func()) {
	w := at.world
	if at.liar != nil {
		end()
		return
	}
	if at.Read(func(r machine.Reply) {
		if r.Refused != nil {
			end()
			return
		}
		if wait, other := at.elsewhere(d.key); other {
			me := c.busy
			w.at(wait, func() {
				if c.busy == me {
					c.look(at.part(d.key), d, end)
				}
			})
			return
		}
		end()
		kv, _ := at.get(d.key)
		d.got = string(kv.Value)
		c.known[d.key] = d.got
		w.watch.readDone(at, d)
		w.watch.uid(at, kv)
	}) {
		w.watch.asked(d)
	} else {
		end()
	}
}

// elsewhere reports whether another scope decides about a key, as a node's state has it, and after what time to ask
// there: the key was delegated, or went home.
func (n *Node) elsewhere(key string) (after time.Duration, other bool) {
	s := n.state()
	if s.IsClosed() {
		return homeAgain, true
	}
	all, err := s.Touching([]byte(key), nil)
	must.OK(err, "reading the delegations")
	return time.Millisecond, len(all) > 0
}

// gave reports whether a node's state has a key in another scope.
func (n *Node) gave(key string) bool {
	_, other := n.elsewhere(key)
	return other
}

// get is the content under a key in a node's state.
func (n *Node) get(key string) (scope.KeyValue, bool) {
	state, err := scope.Open(n.Disk, n.world.id)
	must.OK(err, "reading the state")
	r, err := state.Range([]byte(key), nil, scope.Range{})
	must.OK(err, "reading a key")
	if len(r.Kvs) == 0 {
		return scope.KeyValue{}, false
	}
	return r.Kvs[0], true
}

// objectBirth names an object by the key and revision under which it was created.
type objectBirth struct {
	key      string
	revision int64
}

// uid holds the object under a key to one identity, everywhere and for good.
func (x *watch) uid(n *Node, kv scope.KeyValue) {
	if kv.CreateRevision == 0 || n.excused() {
		return
	}
	b := objectBirth{string(kv.Key), kv.CreateRevision}
	u, known := x.uids[b]
	x.uids[b] = kv.UID
	if known {
		x.w.holds(Identity, n, u == kv.UID, "%s, created at revision %d, is %s here and was %s", b.key, b.revision, kv.UID, u)
	}
}

// pending reports whether a request waits for its answer.
func (w *World) pending() bool {
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.busy != 0 })
}
