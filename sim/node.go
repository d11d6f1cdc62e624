package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// Node is one simulated node's part in a scope: a real machine on a disk that can
// crash. It is the machine's machine.Host.
type Node struct {
	*body
	world *World
	Index int // in World.Nodes, of all scopes
	Face  int // of a node that runs twice on one key: 0 or 1
	Peer  machine.Peer

	key     *votes.PrivateKey // anchor key; nil for an observer
	anchor  aweigh.AnchorID   // of key, once asked for
	author  votes.PrivateKey  // signs for its clients
	twin    *Node             // the anchor's other face
	machine *machine.Machine  // nil while down, and before the scope is founded here
	life    int               // counts starts, so that alarms of a past life are ignored
	alarm   aweigh.Instant    // by its own clock
	shown   aweigh.Instant    // by its clock, the latest since it started
	rang    aweigh.Instant    // when it woke last, by the world's
	rings   int               // how often then
	busy    bool              // a slow sync is under way
	inbox   []machine.Event   // what came meanwhile
	liar    *liar             // nil: honest
	gone    bool              // a machine stopped for good
	lost    aweigh.Epoch      // one more than the epoch in which it found that its record was lost (P9)
	steps   int               // of all lives
	woken   bool              // before its alarm, to see whether it has something to do
	term    term              // where its life is, for the watch
	opened  int               // of the scope's delegations, those to which this node went along
	orders  int64             // entries of the lineage above up to the last order that the machine got

	boundary int
	dead     bool // in the middle of a step

	last     *frame                 // that it sent: a broadcast is one frame
	Height   aweigh.Height          // final here
	requests map[requestID]*request // without a reply, of this life
	asked    uint64                 // the last number of a request
}

// anchorID is the identity of the node's anchor key. To hash the key for each frame would be a twentieth of a world's
// cost.
func (n *Node) anchorID() aweigh.AnchorID {
	if n.anchor.IsZero() {
		n.anchor = n.key.Public().ID()
	}
	return n.anchor
}

func newNode(w *World, index int, peer machine.Peer, author votes.PrivateKey) *Node {
	n := &Node{body: &body{Disk: store.NewMem()}, Index: index, Peer: peer, author: author}
	n.join(w)
	return n
}

// join makes it a part in a world's scope.
func (n *Node) join(w *World) {
	n.world = w
	n.requests = make(map[requestID]*request)
	n.parts = append(n.parts, n)
}

// face makes the second half of an anchor that runs twice on its keys.
func (n *Node) face() *Node {
	f := newNode(n.world, len(n.world.Nodes), n.Peer, n.author)
	f.key, f.Face, f.twin, n.twin = n.key, 1, n, f
	n.world.add(f)
	return f
}

// number is the node's number in the scenario, which its faces share.
func (n *Node) number() int {
	if n.Face == 1 {
		return n.twin.Index
	}
	return n.Index
}

// String is like n3, and n3' for a second face.
func (n *Node) String() string {
	if n.world.number > 0 {
		return fmt.Sprintf("%s in %s", n.root(), n.world.Genesis.Prefix())
	}
	if n.Face == 1 {
		return fmt.Sprintf("n%d'", n.number())
	}
	return fmt.Sprintf("n%d", n.Index)
}

// honest reports whether the node means well and has a disk that remembers.
func (n *Node) honest() bool { return n.liar == nil && !n.faulty }

// Status is that of the node's machine, which must be up.
func (n *Node) Status() machine.Status { return n.machine.Status() }

// start makes a machine from the disk's content.
func (n *Node) start() error {
	m, err := machine.NewMachine(machine.MachineConfig{
		Network: n.world.network, Key: n.key, Timing: n.world.Scenario.Network.Timing, Life: uint64(n.life) << 32, Bounds: nodeBounds(&n.world.Scenario.Bounds, n.number()),
		// Without it, blocks would hold little that is denied. An anchor on standby leads no view, so what it took
		// would wait for ever.
		TakesDenied: n.number() == 0 && !n.world.Scenario.Groups() || n.liar != nil && n.liar.has("pose"),
	}, n.Disk)
	if err != nil {
		return fmt.Errorf("sim: %s: %w", n, err)
	}
	n.machine = m
	n.life++
	n.world.watch.onRecord(n) // a final block may rest on a ballot that the disk kept, and of which it told nothing
	n.world.watch.resumes(n)
	n.world.watch.enters(n, m.Epoch().Number)
	n.boundary, n.dead, n.stopped = 0, false, ""
	n.opened, n.orders = 0, 0
	return nil
}

// local is the node's own clock.
func (n *Node) local() aweigh.Instant { return n.clock.read(n.world.now) }

// Submit proposes a mutation as a client of this node; done gets its outcome,
// unless the node dies first. It reports false if the node is down.
func (n *Node) Submit(m scope.Mutation, done func(machine.Reply)) (id aweigh.Hash, ok bool) {
	return n.reserve(0, m, done)
}

// reserve is Submit of a mutation that may cost up to the given units more than its form
// allows.
func (n *Node) reserve(units int64, m scope.Mutation, done func(machine.Reply)) (id aweigh.Hash, ok bool) {
	b, err := scope.SignReserving(units, n.author, n.world.Genesis.Policy.Limits, m)
	must.OK(err, "signing a bundle")
	id = b.Mutations()[0].ID
	if n.machine == nil {
		return id, false
	}
	n.propose(machine.Submit{Bundle: b}, done)
	return id, true
}

// Read asks for a linearizable read. It reports false if the node is down.
func (n *Node) Read(done func(machine.Reply)) bool {
	if n.machine == nil {
		return false
	}
	n.ask("read", func(id uint64) machine.Event { return machine.Read{ID: id} }, n.judged(done))
	return true
}

// soon schedules events for this life of the node, at this instant.
func (n *Node) soon(events ...machine.Event) {
	life := n.life
	n.world.at(0, func() {
		if n.life == life && n.machine != nil {
			n.take(events...)
		}
	})
}

// take gives events to the machine, at once or when its disk is ready.
func (n *Node) take(events ...machine.Event) {
	switch {
	case !n.busy && !n.paused:
		n.step(events...)
	case len(n.inbox) < mostHeld: // more is lost, as what no buffer takes
		n.inbox = append(n.inbox, events...)
	}
}

// mostHeld is how many events wait for a machine at most.
const mostHeld = 1 << 12

// resume gives the machine what waited for it.
func (n *Node) resume() {
	if n.machine == nil || n.busy || n.paused {
		return
	}
	inbox, before := n.inbox, n.Height
	n.inbox = nil
	if n.step(inbox...); len(inbox) > 0 && n.Height > before {
		n.world.watch.reach("late process")
	}
}

// step steps the machine and carries out what follows.
func (n *Node) step(events ...machine.Event) {
	defer n.caught()
	if !n.excused() && !n.world.watch.lost {
		n.world.watch.verdicts[Sound].Checks++
	}
	n.shown = max(n.shown, n.local())
	n.steps++
	alarm := n.alarm
	fx := n.machine.Step(n.local(), events...)
	if len(events) == 0 && n.woken {
		n.world.watch.early(n, n.shown, alarm, fx)
	}
	if n.disk.slow > 0 && fx.Sync {
		n.finishLater(fx)
		return
	}
	n.finish(fx)
}

// finish carries out the effects of a step.
func (n *Node) finish(fx machine.Effects) {
	w := n.world
	n.boundary = 0
	err := machine.Perform(n, fx)
	w.watch.rule(n, n.dead || err != nil)
	switch {
	case n.dead:
		n.dead = false
		if n.boundary > 1 && fx.Sync && len(fx.Send) > 0 {
			w.watch.reach("crash before send")
		}
		n.crash(w.chance.IntN(n.Disk.Unsynced() + 1))
	case err != nil:
		n.fail(err)
	default:
		if n.liar != nil {
			n.liar.flush()
		}
		if w.events%2 == 0 { // it must make no difference
			n.machine.Ahead()
		}
		if w.events%7 == 0 { // nor this
			n.machine.FreeMemory()
		}
		n.sleep(fx.Wake)
		n.wakeEarly()
		n.grow()
	}
}

// caught turns a machine that met a state that must not be into a breach, unless
// a failing disk or a lie of its own is behind it.
func (n *Node) caught() {
	p := recover()
	if p == nil {
		return
	}
	v, ok := p.(must.Violation)
	if !ok {
		panic(p)
	}
	n.world.watch.rule(n, true)
	if n.disk.failing() && strings.Contains(v.Error(), errIO.Error()) {
		n.fail(errors.New(v.Error()))
		return
	}
	if !n.excused() {
		n.world.breach(Sound, n, "stopped: %v", v)
	}
	if n.spoiled {
		n.world.watch.reach("wrong record")
	}
	n.world.log(n, "stopped", "%v", v)
	if n.world.watch.lost { // what this scope comes to is its own affair
		n.world.watch.reach("scope stopped alone")
		n.gone = true
		n.halt()
		return
	}
	n.gone = n.liar == nil
	n.down(n.Disk.Unsynced())
	if n.liar != nil {
		n.world.at(time.Second, n.Up)
	}
}

// excused reports whether the rules for honest nodes do not apply to this node.
// Once the faulty weigh more than the budget, no node is excused.
func (n *Node) excused() bool { return !n.honest() && n.world.watch.within }

// fail stops a node whose disk failed, as the real one stops.
func (n *Node) fail(err error) {
	n.world.log(n, "stopped", "disk: %v", err)
	n.world.watch.reach("failed disk")
	n.down(n.world.chance.IntN(n.Disk.Unsynced() + 1))
	n.stopped = err.Error()
}

// alive passes one boundary between two effects of a step. A node that is to
// die there does nothing more.
func (n *Node) alive() bool {
	n.boundary++
	if n.Doomed != nil && !n.dead && n.Doomed(n.boundary) {
		n.dead = true
	}
	return !n.dead
}

// sleep sets the node's one alarm, by its own clock.
func (n *Node) sleep(until aweigh.Instant) {
	if until == n.alarm {
		return
	}
	n.alarm = until
	n.rearm()
}

// rearm waits for the alarm.
func (n *Node) rearm() {
	if n.alarm == 0 || n.machine == nil {
		return
	}
	life, until := n.life, n.alarm
	n.world.at(n.clock.wait(n.world.now, until), func() {
		switch {
		case n.life != life || n.machine == nil || n.alarm != until:
		case n.local() < until:
			n.rearm()
		default:
			if n.alarm = 0; n.rang != n.world.now {
				n.rang, n.rings = n.world.now, 0
			}
			n.rings++
			must.Hold(n.rings < 1000, "node %d wants to be woken for ever", n.number())
			n.take()
		}
	})
}

// Commit implements machine.Host.
func (n *Node) Commit(ops []kv.Op, sync bool) error {
	if !n.alive() {
		return nil
	}
	n.world.watch.isolated(n, ops)
	kept := ops
	if n.liar != nil {
		kept = n.liar.forget(ops)
	}
	err := n.disk.commit(n.Disk, kept, sync)
	if err == nil {
		n.world.watch.wrote(n, ops, false)
	}
	return err
}

// Send implements machine.Host.
func (n *Node) Send(p machine.Packet) {
	if !n.alive() {
		return
	}
	f := n.frame(p.Frame)
	for _, to := range n.world.byPeer[p.To] {
		if to != n {
			n.say(to, f)
		}
	}
}

// Gossip implements machine.Host: all nodes get the frame.
func (n *Node) Gossip(raw []byte) {
	if !n.alive() {
		return
	}
	f := n.frame(raw)
	for _, to := range n.world.Nodes {
		if to != n {
			n.say(to, f)
		}
	}
}

func (n *Node) say(to *Node, f *frame) {
	if n.liar != nil {
		n.liar.out = append(n.liar.out, packet{to: to, frame: f})
		return
	}
	n.world.send(n, to, f, 0)
}

// frame is the frame for raw, shared by all its receivers.
func (n *Node) frame(raw []byte) *frame {
	if l := n.last; l != nil && len(l.raw) == len(raw) && &l.raw[0] == &raw[0] {
		return l
	}
	n.last = &frame{raw: raw}
	n.world.watch.said(n, n.last)
	return n.last
}

// Note implements machine.Host.
func (n *Node) Note(note machine.Note) {
	if !n.dead {
		n.world.watch.noted(n, note)
	}
}

// seats reports whether another node is an anchor in the epoch of this one. It
// is not, if one of them does not know yet that it joined, or left.
func (n *Node) seats(o *Node) bool {
	if o.key == nil || n.machine == nil {
		return false
	}
	_, seated := n.machine.Epoch().Roster.Seat(o.anchorID())
	return seated
}
