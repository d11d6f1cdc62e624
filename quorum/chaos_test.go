package quorum_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// TestRandomSchedules plays random worlds: messages lost, repeated and late,
// anchors that stop before or after their record is durable, and liars up to
// the fault budget that sign everything, show each anchor something else, and
// hand out any certificate that can be made. Throughout, no two blocks become
// final in one view and all final blocks form one chain (checked by network).
// Then messages arrive again and the liars fall silent: all that was submitted
// becomes final everywhere, and after that there is silence (P17, P18).
func TestRandomSchedules(t *testing.T) {
	var sum goals
	n := testshort.Cases(250, 800, 2500)
	for seed := range n {
		w := newWorld(t, int64(seed))
		w.suffer(150)
		w.bury()
		w.heal()
		sum.add(w)
	}
	t.Logf("%d schedules: %+v", n, sum)
	if sum.Nullified == 0 || sum.Skipped == 0 || sum.Faults == 0 || sum.Restarts == 0 || sum.Buried == 0 || sum.Both == 0 {
		t.Errorf("the schedules never reached what they are meant to reach: %+v", sum)
	}
}

// goals counts what the schedules reached, lest they be harmless.
type goals struct {
	Final, Nullified, Faults, Restarts int
	Buried                             int // anchors that never came back
	Skipped                            int // final blocks that stand on an earlier view than the last
	Both                               int // views both notarized and nullified
}

func (g *goals) add(w *world) {
	g.Final += len(w.net.finalAt)
	g.Restarts += w.restarts
	g.Buried += w.buried
	g.Faults += w.net.faults
	kinds := map[quorum.Subject]bool{}
	for _, p := range w.net.peers {
		for _, c := range p.certs {
			kinds[quorum.Subject{Kind: c.Subject.Kind, View: c.Subject.View}] = true
		}
	}
	for s := range kinds {
		if s.Kind == quorum.Nullify {
			g.Nullified++
			s.Kind = quorum.Notarize
			if kinds[s] {
				g.Both++
			}
		}
	}
	for v, h := range w.net.finalAt {
		if w.net.blocks[w.net.blocks[h].parent].view+1 < v {
			g.Skipped++
		}
	}
}

// world is a network with a fate.
type world struct {
	t      *testing.T
	net    *network
	rnd    *rand.Rand
	liars  []int
	honest []*peer

	votes     []quorum.Vote // all that were ever sent
	parcels   []parcel
	mutations int
	restarts  int
	buried    int
}

func newWorld(t *testing.T, seed int64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewSource(seed))}
	weights := make([]uint64, 1+w.rnd.Intn(6))
	heaviest := 1 + w.rnd.Intn(5)
	total := uint64(0)
	for i := range weights {
		weights[i] = uint64(1 + w.rnd.Intn(heaviest))
		total += weights[i]
	}
	mode := quorum.BFT
	switch w.rnd.Intn(4) {
	case 0:
		mode = quorum.Crash
	case 1:
		mode = quorum.Fast
	}
	budget := mode.FaultBudget(total)
	for _, i := range w.rnd.Perm(len(weights)) {
		if weights[i] <= budget {
			budget -= weights[i]
			w.liars = append(w.liars, i+1)
		}
	}
	w.net = newNetwork(quorum.Config{
		Weights: weigh(t, weights...), Rules: quorum.DefaultRules(mode),
		Seed: aweigh.Sum(fmt.Append(nil, seed)), Root: aweigh.Sum([]byte("root")),
	}, w.liars...)
	w.net.gossip = w.rnd.Intn(2) == 0
	w.net.broken = func(f string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d, weights %v, %s, liars %v: "+f, append([]any{seed, weights, mode, w.liars}, args...)...)
	}
	for _, p := range w.net.peers {
		if !p.liar {
			w.honest = append(w.honest, p)
		}
	}
	return w
}

// suffer is the phase in which anything may happen.
func (w *world) suffer(events int) {
	n := w.net
	n.dies = func() bool { return w.rnd.Intn(400) == 0 }
	for range events {
		switch x := w.rnd.Intn(100); {
		case x < 10 && w.mutations < 60:
			n.work(w.mutations, w.honest[w.rnd.Intn(len(w.honest))].id)
			w.mutations++
		case x < 18:
			n.tick(time.Duration(w.rnd.Intn(1500)) * time.Millisecond)
		case x < 20:
			w.restarts++
			n.restart(w.honest[w.rnd.Intn(len(w.honest))])
		case x < 40 && len(w.liars) > 0:
			w.lie()
		default:
			for range w.rnd.Intn(12) {
				w.deliver()
			}
		}
	}
}

// deliver takes one message of the queue and delivers it, loses it, or delivers
// it and keeps it for later.
func (w *world) deliver() {
	n := w.net
	if len(n.queue) == 0 {
		return
	}
	i := w.rnd.Intn(len(n.queue))
	m := n.queue[i]
	switch body := m.body.(type) { // the liars listen to everything
	case quorum.Vote:
		w.votes = append(w.votes, body)
	case parcel:
		w.parcels = append(w.parcels, body)
	}
	fate := w.rnd.Intn(100)
	if fate >= 10 {
		last := len(n.queue) - 1
		n.queue[i] = n.queue[last]
		n.queue = n.queue[:last]
	}
	if fate < 85 {
		n.receive(m)
	}
}

// lie does one thing that a liar may do, to one honest anchor.
func (w *world) lie() {
	n, to := w.net, w.honest[w.rnd.Intn(len(w.honest))]
	liar := w.liars[w.rnd.Intn(len(w.liars))]
	view := max(1, to.engine.View()+aweigh.View(w.rnd.Intn(3))-1)
	switch w.rnd.Intn(4) {
	case 0: // any vote
		n.receive(message{from: liar, to: to.id, body: n.sign(liar, w.subject(view))})
	case 1: // any certificate that received votes, and all liars, can make
		s := w.subject(view)
		if c := w.forge(s); n.genuine(c) {
			n.receive(message{from: liar, to: to.id, body: c})
		}
	case 2: // one of many proposals
		if n.id(to.engine.Leader(view)) == liar {
			w.propose(liar, view, to)
		}
	case 3: // someone else's proposal, repeated
		if len(w.parcels) > 0 {
			n.receive(message{from: liar, to: to.id, body: w.parcels[w.rnd.Intn(len(w.parcels))]})
		}
	}
}

// subject is anything about a view.
func (w *world) subject(v aweigh.View) quorum.Subject {
	s := quorum.Subject{Kind: []quorum.Kind{quorum.Notarize, quorum.Nullify, quorum.Finalize}[w.rnd.Intn(3)], View: v}
	if s.Kind == quorum.Nullify && (w.net.cfg.Rules.Mode != quorum.Fast || w.rnd.Intn(2) == 0) {
		if w.net.cfg.Rules.Mode == quorum.Fast {
			s.Block = quorum.NoBlock
		}
		return s
	}
	s.Block = w.net.block(fmt.Sprintf("b%dx", v), v, w.net.cfg.Root, 0)
	for _, p := range w.parcels { // rather one that others vote for
		if p.proposal.Vote.View == v && w.rnd.Intn(2) == 0 {
			s.Block = p.proposal.Vote.Block
		}
	}
	return s
}

// forge gathers every vote for a subject, the liars' included.
func (w *world) forge(s quorum.Subject) quorum.Certificate {
	by := map[int]quorum.Vote{}
	for _, id := range w.liars {
		by[id] = w.net.sign(id, s)
	}
	for _, v := range w.votes {
		if v.Subject == s {
			by[w.net.id(v.Anchor)] = v
		}
	}
	c := quorum.Certificate{Subject: s}
	for id := range w.net.peers {
		if v, ok := by[id+1]; ok {
			c.Signatures = append(c.Signatures, v.Signature)
		}
	}
	return c
}

// propose makes one of a liar's two blocks for a view, on some notarized block
// or on any other, and shows the certificates there are.
func (w *world) propose(liar int, v aweigh.View, to *peer) {
	n := w.net
	parent := n.cfg.Root
	for _, p := range w.parcels {
		if p.proposal.Vote.View < v && w.rnd.Intn(3) == 0 {
			parent = p.proposal.Vote.Block
		}
	}
	h := n.block(fmt.Sprintf("b%d%c", v, 'x'+rune(w.rnd.Intn(2))), v, parent, 0)
	m := parcel{proposal: quorum.Proposal{
		Vote:   n.sign(liar, quorum.Subject{Kind: quorum.Notarize, View: v, Block: h}),
		Parent: parent, ParentView: aweigh.View(w.rnd.Intn(int(v) + 1)),
	}}
	for _, p := range w.honest {
		if w.rnd.Intn(2) == 0 {
			m.proof = append(m.proof, p.certs...)
		}
	}
	w.parcels = append(w.parcels, m)
	n.receive(message{from: liar, to: to.id, body: m})
}

// bury stops some anchors for good in worlds without liars, with all their
// undelivered messages: as many as the rules can do without.
func (w *world) bury() {
	n, rules := w.net, w.net.cfg.Rules
	if rules.Mode != quorum.Crash || w.rnd.Intn(2) == 0 {
		return
	}
	total := n.cfg.Weights.Total()
	left := total
	for _, i := range w.rnd.Perm(len(w.honest)) {
		weight := n.cfg.Weights.Of(anchor(w.honest[i].id))
		if left-weight >= rules.Finalize.Threshold(total) {
			left -= weight
			w.honest[i].liar = true // which need not make progress
			n.crash(w.honest[i])
			w.buried++
		}
	}
	w.honest = slices.DeleteFunc(w.honest, func(p *peer) bool { return p.engine == nil })
	n.queue = slices.DeleteFunc(n.queue, func(m message) bool { return n.peer(m.from).engine == nil })
}

// heal is the phase in which everything submitted must become final.
func (w *world) heal() {
	n := w.net
	n.dies = nil
	for _, m := range n.queue {
		if v, ok := m.body.(quorum.Vote); ok {
			w.votes = append(w.votes, v)
		}
	}
	all := uint64(1)<<w.mutations - 1
	n.meet()
	for _, p := range w.honest {
		p.known = all
		n.step(p)
	}
	done := func() bool {
		for _, p := range w.honest {
			if b := n.blocks[n.best(p)]; b.content != all || p.wake != 0 {
				return false
			}
		}
		return len(n.queue) == 0
	}
	for i := 0; !done(); i++ {
		if i == 300 {
			for _, p := range w.honest {
				w.t.Logf("%d: view %d, final %s, content %b of %b, wakes %d, holds %s", p.id, p.engine.View(),
					n.name(n.best(p)), n.blocks[n.best(p)].content, all, p.wake, n.sayOffer(p.engine.Holdings()))
			}
			n.broken("no progress after 300 s without faults")
		}
		n.run(time.Second)
	}
	for _, p := range w.honest {
		if n.best(p) != n.highest {
			n.broken("%d rests at %s, others at %s", p.id, n.name(n.best(p)), n.name(n.highest))
		}
	}
}
