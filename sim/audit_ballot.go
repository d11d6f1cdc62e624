package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/quorum/monitor"
	"github.com/aweigh/aweigh/scope"
)

// follower holds the ballots of honest anchors to the model of consensus (package quorum/monitor).
type follower struct {
	epochs  []*monitor.Epoch  // by number, as far as they began
	waiting []recorded        // records of steps that are not over, or of epochs that no node is in yet
	states  func(uint64, int) // gets each state of votes, by its sketch; may be nil
}

// sees passes the state of the votes to states.
func (f *follower) sees(w *World, m *monitor.Epoch) {
	if f.states != nil {
		f.states(m.Sketch(), w.script.used)
	}
}

// recorded is a ballot that a node recorded, or the view below which it forgot its ballots.
type recorded struct {
	n       *Node
	epoch   aweigh.Epoch
	subject quorum.Subject
	floor   aweigh.View
	died    bool // the node did in that step, and noted nothing of it
}

// proposed keeps the header of a block that was proposed, by whatever rules.
func (x *watch) proposed(h scope.Header) {
	if x.headers == nil {
		x.headers = make(map[aweigh.Hash]scope.Header)
	}
	x.headers[h.Hash()] = h
	if int(h.Epoch) < len(x.follower.epochs) {
		x.follower.epochs[h.Epoch].Propose(h.Hash(), h.Parent, h.View)
	}
}

// given notes a block that a node gives on request: a crash may have kept its proposal from leaving.
func (x *watch) given(f *frame) {
	if raw, ok := f.open().(machine.RawBlock); ok {
		if b, err := scope.DecodeBlock(raw, scope.MostLimits(), x.w.verify); err == nil {
			x.proposed(b.Header)
		}
	}
}

// model is the monitor of an epoch, nil before a node is in it.
func (x *watch) model(epoch aweigh.Epoch) *monitor.Epoch {
	f, w := &x.follower, x.w
	for at := len(f.epochs); at <= int(epoch) && at < len(w.epochs); at++ {
		e := w.epochs[at]
		c := monitor.Config{
			Weights: e.Roster.Weights, Rules: e.Policy.Rules, Root: e.Root,
			Lies: func(a aweigh.AnchorID) bool { return !w.Nodes[w.anchors[a]].honest() },
		}
		if at > 0 {
			c.Before = f.epochs[at-1]
		}
		m := monitor.New(c)
		for hash, h := range x.headers { // order-free: each for itself
			if h.Epoch == e.Number {
				m.Propose(hash, h.Parent, h.View)
			}
		}
		f.epochs = append(f.epochs, m)
	}
	if int(epoch) < len(f.epochs) {
		return f.epochs[epoch]
	}
	return nil
}

// forgets notes the view below which a node forgets its ballots, if the op does that.
func (x *watch) forgets(n *Node, op kv.Op) {
	if kind, epoch, ok := x.w.guardMark(op); ok && kind == floorMark && len(op.Value) == 8 {
		x.follower.waiting = append(x.follower.waiting, recorded{n: n, epoch: epoch, floor: aweigh.View(binary.BigEndian.Uint64(op.Value))})
	}
}

// enters notes in which epoch a life of a node is, and that it listens there before it signs (P9): in the epoch in
// which it starts, and as long as it has listened in one alone.
func (x *watch) enters(n *Node, epoch aweigh.Epoch) {
	m := x.model(epoch)
	if n.key == nil || n.term.life == n.life && n.term.epoch >= epoch {
		return
	}
	switch a := n.anchorID(); {
	case n.term.life != n.life:
		if n.term = (term{life: n.life}); m != nil { // or no other node has told of the epoch yet: it listens unwatched
			m.Restart(a)
		}
	case m == nil:
		return
	case n.term.listened < 2:
		m.Listen(a)
	}
	n.term.epoch = epoch
}

// term is where a life of a node is, and in how many epochs it has listened.
type term struct {
	life     int
	epoch    aweigh.Epoch
	listened int
	heard    map[aweigh.AnchorID]bool // the anchors that sent it their ballots
	left     aweigh.Epoch             // it is in none before
}

// hears notes that an anchor sent the node its ballots.
func (t *term) hears(a aweigh.AnchorID) {
	if t.heard == nil {
		t.heard = make(map[aweigh.AnchorID]bool)
	}
	t.heard[a] = true
}

// listened checks that a node that begins to sign heard enough anchors (P9).
func (x *watch) listened(n *Node, since aweigh.View) {
	if n.excused() || n.key == nil || x.lost {
		return
	}
	if m := x.model(n.term.epoch); m != nil {
		heard := n.term.heard
		x.w.holds(Ballots, n, m.Listened(n.anchorID(), since, func(a aweigh.AnchorID) bool { return heard[a] }),
			"signs from view %d on, and heard %d anchors since it started, which are no quorum", since, len(heard))
	}
	n.term.listened++
}

// rule checks a node's records of a step against the model, once the step is over: its notes come last. The records
// of a node that died in the middle count, and are not judged.
func (x *watch) rule(n *Node, died bool) {
	f := &x.follower
	rest := f.waiting[:0]
	for _, r := range f.waiting {
		r.died = r.died || died && r.n == n
		m := x.model(r.epoch)
		if m == nil {
			rest = append(rest, r) // its begin is not noted yet
			continue
		}
		if r.n.excused() || r.n.key == nil || x.lost {
			continue
		}
		a := r.n.anchorID()
		if r.floor > 0 {
			m.Close(a, r.floor)
			continue
		}
		why := m.Vote(a, r.subject)
		x.follower.sees(x.w, m)
		if h := x.headers[r.subject.Block]; why == nil && h.Format != 0 && r.subject.Kind == x.w.voteKind(r.epoch) {
			e := x.w.epochs[r.epoch]
			if leader := leads(e.Leaders(), e.Seed(), r.subject.View); h.Proposer != leader {
				why = fmt.Errorf("the block is of %s, where %s leads (P10)", h.Proposer.Short(), leader.Short())
			}
		}
		if !r.died {
			x.w.holds(Ballots, r.n, why == nil, "%v of epoch %d: %v", r.subject, r.epoch, why)
		}
	}
	if f.waiting = rest; !died {
		x.leaves(n)
	}
}

// leaves notes that a node is in no earlier epoch any more, once a step is over.
func (x *watch) leaves(n *Node) {
	if n.machine == nil || n.key == nil || n.excused() {
		return
	}
	now := n.machine.Epoch().Number
	for ; n.term.left < now; n.term.left++ {
		if m := x.model(n.term.left); m != nil {
			m.Leave(n.anchorID())
		}
	}
}
