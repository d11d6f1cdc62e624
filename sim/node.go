package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// verify is shared by all worlds of a process: the same ballot is verified once.
var verify = votes.Memo(votes.Verify, 1<<18)

// Up starts the node on what its disk holds.
func (n *Node) Up() error {
	if n.machine != nil {
		return nil
	}
	m, err := node.NewMachine(node.MachineConfig{
		Genesis: n.world.Genesis, Key: &n.key, Timing: n.world.cfg.Timing, Verify: verify, Life: uint64(n.life) << 32,
	}, n.Disk)
	if err != nil {
		return err
	}
	n.machine = m
	n.life++
	n.world.trace("n%d up at height %d", n.Index, m.Status().Head.Height)
	var met []node.Event
	for _, o := range n.world.Nodes {
		if o != n && o.machine != nil {
			met = append(met, node.Met{Peer: o.Peer})
			o.soon(node.Met{Peer: n.Peer})
		}
	}
	n.soon(met...)
	return nil
}

// Crash stops the node at once. Of its commits that were not synced, keep
// survive, in order.
func (n *Node) Crash(keep int) {
	n.world.trace("n%d crashes, keeps %d of %d commits", n.Index, keep, n.Disk.Unsynced())
	n.machine = nil
	n.alarm = 0
	n.Disk.Crash(keep)
	n.parted()
}

// parted lets the others learn, or not, that this node is out of reach.
func (n *Node) parted() {
	for _, o := range n.world.Nodes {
		if o != n && o.machine != nil && n.world.links.IntN(2) == 0 {
			o.soon(node.Parted{Peer: n.Peer})
			n.soon(node.Parted{Peer: o.Peer})
		}
	}
}

// IsUp reports whether the node runs.
func (n *Node) IsUp() bool { return n.machine != nil }

// Cut takes the node off the network, or puts it back.
func (n *Node) Cut(cut bool) {
	n.world.trace("n%d cut %v", n.Index, cut)
	if n.cut = cut; !cut && n.machine != nil {
		for _, o := range n.world.Nodes {
			if o != n && o.machine != nil && !o.cut {
				n.soon(node.Met{Peer: o.Peer})
				o.soon(node.Met{Peer: n.Peer})
			}
		}
	}
	if cut {
		n.parted()
	}
}

// Status is that of the node's machine, which must be up.
func (n *Node) Status() node.Status { return n.machine.Status() }

// Mutation is a transaction as a client asks for it; sent again, it is the same.
func (w *World) Mutation(t scope.Txn) scope.Mutation {
	return scope.Mutation{
		Scope: w.Genesis.Hash(), Class: scope.Write, Content: canon.Encode(t),
		Nonce: binary.BigEndian.AppendUint64(nil, w.client.Uint64()), ValidUntil: w.now.Add(5 * time.Minute),
	}
}

// Submit lets a client of this node propose a transaction.
func (n *Node) Submit(t scope.Txn) (mutation aweigh.Hash) {
	return n.SubmitMutation(n.world.Mutation(t))
}

// SubmitMutation proposes a mutation in this node's name.
func (n *Node) SubmitMutation(m scope.Mutation) aweigh.Hash {
	b, err := scope.Sign(n.author, n.world.Genesis.Policy.Limits, m)
	must.OK(err, "signing a bundle")
	if n.machine != nil {
		n.soon(node.Submit{Bundle: b})
	}
	return b.Mutations()[0].ID
}

// Read asks for a linearizable read; Reads tells when it was answered. The world
// watches that the answer is as new as every write acknowledged before (P23).
func (n *Node) Read(id uint64) {
	if n.machine != nil {
		n.floor[id] = n.world.acked
		n.soon(node.Read{ID: id})
	}
}

// soon lets events happen to this life of the node, at this instant.
func (n *Node) soon(events ...node.Event) {
	life := n.life
	n.world.At(0, func() {
		if n.life == life && n.machine != nil {
			n.step(events...)
		}
	})
}

// step steps the machine and performs what follows.
func (n *Node) step(events ...node.Event) {
	defer func() {
		if p := recover(); p != nil {
			v, ok := p.(must.Violation)
			if !ok {
				panic(p)
			}
			n.world.fail(n, "stopped: %v", v)
		}
	}()
	fx := n.machine.Step(n.world.now, events...)
	n.boundary = 0
	err := node.Perform(n, fx)
	switch {
	case n.dead:
		n.dead = false
		n.Crash(n.world.links.IntN(n.Disk.Unsynced() + 1))
	case err != nil:
		n.world.trace("n%d store: %v", n.Index, err)
		n.Crash(0)
	default:
		if n.world.events%2 == 0 { // it must make no difference
			n.machine.Ahead()
		}
		n.sleep(fx.Wake)
	}
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

// sleep sets the node's one alarm.
func (n *Node) sleep(until aweigh.Instant) {
	if until == n.alarm {
		return
	}
	n.alarm = until
	if until == 0 {
		return
	}
	life := n.life
	n.world.At(max(0, until.Sub(n.world.now)), func() {
		if n.life == life && n.machine != nil && n.alarm == until {
			n.alarm = 0
			n.step()
		}
	})
}

// Commit implements node.Host.
func (n *Node) Commit(ops []kv.Op, sync bool) error {
	if !n.alive() {
		return nil
	}
	return n.Disk.Commit(ops, sync)
}

// Send implements node.Host.
func (n *Node) Send(p node.Packet) {
	if !n.alive() {
		return
	}
	w := n.world
	if b, ok := node.BallotIn(p.Frame); ok {
		n.watch(b.Subject)
	}
	for _, to := range w.Nodes {
		if to.Peer != p.To || to == n {
			continue
		}
		copies := 1
		if w.links.IntN(1000) < w.cfg.Loss {
			copies = 0
		} else if w.links.IntN(1000) < w.cfg.Twice {
			copies = 2
		}
		for range copies {
			spread := int64(w.cfg.Latency[1] - w.cfg.Latency[0])
			delay := w.cfg.Latency[0] + time.Duration(w.links.Int64N(spread+1))
			w.At(delay, func() { w.deliver(n, to, p.Frame) })
		}
	}
}

// twins are the anchors that run twice.
func (w *World) twins() map[aweigh.AnchorID]bool {
	twins := make(map[aweigh.AnchorID]bool)
	for _, n := range w.Nodes {
		if n.twin {
			twins[n.key.Public().ID()] = true
		}
	}
	return twins
}

func (w *World) index(a aweigh.AnchorID) int {
	for _, n := range w.Nodes {
		if n.key.Public().ID() == a {
			return n.Index
		}
	}
	return -1
}

// watch holds the node to one ballot for a slot, over all of its lives (P7).
func (n *Node) watch(s quorum.Subject) {
	for _, k := range []quorum.Kind{s.Kind, quorum.Nullify, quorum.Finalize} {
		if old, ok := n.signed[slot{s.View, k}]; ok && old.Conflicts(s) {
			n.world.fail(n, "two conflicting ballots: %v and %v", old, s)
		}
	}
	n.signed[slot{s.View, s.Kind}] = s
}

// Gossip implements node.Host: everyone hears it.
func (n *Node) Gossip(frame []byte) {
	for _, to := range n.world.Nodes {
		if to != n {
			n.Send(node.Packet{To: to.Peer, Frame: frame})
		}
	}
}

func (w *World) deliver(from, to *Node, frame []byte) {
	if to.machine == nil || from.cut || to.cut {
		return
	}
	msg, err := to.machine.Checker().Check(from.Peer, frame)
	if err != nil {
		w.fail(to, "an honest node sent what cannot be taken: %v", err)
		return
	}
	w.trace("n%d > n%d %s", from.Index, to.Index, describe(msg))
	to.step(node.Arrived{From: from.Peer, Message: msg})
}

func describe(m node.Message) string {
	if s, ok := m.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", m)
}

// Reply implements node.Host.
func (n *Node) Reply(r node.Reply) {
	if !n.alive() {
		return
	}
	if r.Read != 0 {
		n.Reads[r.Read] = r.Height
		if r.Height < n.floor[r.Read] {
			n.world.fail(n, "a linearizable read at height %d after a write was acknowledged at %d", r.Height, n.floor[r.Read])
		}
		return
	}
	n.world.acked = max(n.world.acked, r.Height)
	n.Done[r.Mutation] = r
}

// Note implements node.Host, and watches the invariants.
func (n *Node) Note(note node.Note) {
	if n.dead {
		return
	}
	w := n.world
	switch note := note.(type) {
	case node.Finalized:
		w.trace("n%d final %d view %d %s (%d)", n.Index, note.Height, note.View, note.Block.Short(), note.Mutations)
		if other, ok := w.final[note.Height]; ok && other != note.Block {
			w.fail(n, "agreement: height %d is %s here and %s elsewhere", note.Height, note.Block.Short(), other.Short())
		}
		w.final[note.Height] = note.Block
		n.Height = note.Height
	case node.Nullified:
		w.trace("n%d view %d nullified", n.Index, note.View)
	case node.Faulted:
		if !w.twins()[note.Proof.Anchor()] {
			w.fail(n, "a proof of fault against an honest anchor: %v / %v", note.Proof.First.Subject, note.Proof.Second.Subject)
		}
		w.trace("n%d proves n%d at fault", n.Index, w.index(note.Proof.Anchor()))
	case node.LostState:
		w.trace("n%d lost state", n.Index)
	case node.Dropped:
		w.trace("n%d dropped: %s", n.Index, note.Why)
	}
}
