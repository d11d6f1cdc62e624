package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// decisive is a fault that delays the next decision: the ballot that completes a certificate at a node, the ballots
// after it, and all other frames from which it would learn the certificate. One node, another one for each
// certificate, gets all in time. So one node knows a decision of a view that all others give up.
type decisive struct {
	w     *World
	nodes []*Node // that get frames late
	by    time.Duration
	rand  *rand.Rand
	heard map[hearing]*tally
	spare map[said]*Node
	held  map[*Node]aweigh.Instant // until when it lacks something
}

// hearing is what a node got in time about a subject.
type hearing struct {
	to *Node
	said
}

func (w *World) decisive(nodes []*Node, by time.Duration) (end func()) {
	x := &decisive{
		w: w, nodes: nodes, by: by, rand: rand.New(rand.NewPCG(w.Scenario.Seed, 21+1000*uint64(w.number))),
		heard: make(map[hearing]*tally), spare: make(map[said]*Node), held: make(map[*Node]aweigh.Instant),
	}
	w.log(nodes[0], "cut", "decisive")
	w.wires.late = append(w.wires.late, x)
	return func() {
		w.wires.late = slices.DeleteFunc(w.wires.late, func(o lateness) bool { return o == x })
		w.log(nodes[0], "joined", "after decisive")
	}
}

// hold implements lateness.
func (x *decisive) hold(from, to *Node, f *frame) time.Duration {
	if to.key == nil || to.liar != nil || from.world != x.w || !slices.Contains(x.nodes, to) {
		return 0
	}
	switch machine.FrameKind(f.raw) {
	case "ballot":
		if b, ok := f.open().(votes.Ballot); !ok || !x.decides(from, to, b.Domain.Epoch, b.Subject) {
			return 0
		}
		x.w.watch.reach("decision delayed")
		x.held[to] = x.w.now.Add(x.by)
		return x.by
	case "proposal": // the leader's own vote
		if p, ok := f.open().(machine.Proposal); ok {
			x.decides(from, to, p.Header.Epoch, quorum.Subject{Kind: x.w.voteKind(p.Header.Epoch), View: p.Header.View, Block: p.Header.Hash()})
		}
	case "offer", "announcement", "blocks":
		return max(0, x.held[to].Sub(x.w.now))
	}
	return 0
}

// decides reports whether a vote completes a certificate at a node, or comes after one that would have.
func (x *decisive) decides(from, to *Node, epoch aweigh.Epoch, s quorum.Subject) bool {
	w, about := x.w, said{epoch, s}
	if int(epoch) >= len(w.epochs) || from.key == nil {
		return false
	}
	spare, drawn := x.spare[about]
	if !drawn {
		spare = x.nodes[x.rand.IntN(len(x.nodes))]
		x.spare[about] = spare
	}
	if spare == to {
		return false
	}
	e := w.epochs[epoch]
	t := x.heard[hearing{to, about}]
	if t == nil {
		t = &tally{by: make(map[int]bool)}
		x.heard[hearing{to, about}] = t
	}
	own := uint64(0)
	if raw := w.watch.ballots[about]; raw != nil && raw.by[to.number()] {
		own = e.Roster.Weights.Of(to.anchorID())
	}
	weight := e.Roster.Weights.Of(from.anchorID())
	if t.weight+own+weight >= e.Policy.Rules.For(s.Kind).Threshold(e.Roster.Weights.Total()) {
		return true
	}
	if !t.by[from.number()] {
		t.by[from.number()] = true
		t.weight += weight
	}
	return false
}
