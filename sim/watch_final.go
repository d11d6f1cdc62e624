package sim

import (
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
)

// agrees compares a block that became final at a node with those of others that do not
// lie: beyond the fault budget a liar's own machine may follow either side of a fork,
// and proves none.
func (x *watch) agrees(n *Node, note machine.Finalized) {
	if n.liar != nil {
		return
	}
	first, known := x.seen[note.Height]
	if !known {
		x.seen[note.Height] = note.Block
		return
	}
	x.w.holds(Agreement, n, first == note.Block, "height %d is %s here and %s elsewhere", note.Height, note.Block.Short(), first.Short())
}

// finalized holds a block that became final to agreement, and counts afresh the
// ballots behind it.
func (x *watch) finalized(n *Node, note machine.Finalized) {
	w := x.w
	_, known := x.final[note.Height]
	x.agrees(n, note)
	x.top = max(x.top, note.Height)
	if w.homing.closed {
		w.holds(Obeyed, n, note.Height <= w.homing.at, "height %d is final, and the scope closed at %d", note.Height, w.homing.at)
	}
	x.names(n)
	x.executed(n, note.Height)
	if known {
		return
	}
	if w.now.Sub(x.lastFinal) > 3*w.Scenario.Network.Timing.View && x.lastFinal != 0 && w.pending() {
		x.reach("no quorum")
	}
	x.pauses.final(w, note)
	x.settle(n, note.Height)
	x.ending.final(w, n, note)
	x.final[note.Height], x.finalAt[note.Height], x.lastFinal = note.Block, w.Now(), w.now
	if int(note.Epoch) >= len(w.epochs) {
		w.breach(Rosters, n, "a block of epoch %d, which no node began", note.Epoch)
		return
	}
	x.genuine(n, note.Height)
	x.recall()
	x.provisional(n)
	w.at(0, w.probeLagging)
	x.follow(n, note.Height)
	x.conducted(n, note.Height)
	x.time.final(w, n, note.Height)
	x.count(n, note.Height)
	e := w.epochs[note.Epoch]
	total := e.Roster.Weights.Total()
	need := e.Policy.Rules.Finalize.Threshold(total)
	w.holds(Certificates, n, x.highest[note.Epoch] >= note.View, "height %d is final, but the ballots signed for view %d or later do not weigh %d of %d",
		note.Height, note.View, need, total)
	t := x.ballots[said{note.Epoch, quorum.Subject{Kind: quorum.Finalize, View: note.View, Block: note.Block}}]
	if e.Policy.Rules.Mode == quorum.Fast && (t == nil || t.weight < need) {
		if t = x.ballots[said{note.Epoch, quorum.Subject{Kind: quorum.Notarize, View: note.View, Block: note.Block}}]; t != nil {
			if need = oneRound(e.Policy.Rules, e.Roster.Weights); t.weight >= need {
				x.reach("one round")
			}
		}
	}
	switch {
	case t == nil || t.weight < need:
		x.reach("chained finality")
	default:
		w.holds(Certificates, n, t.honest+e.Policy.Rules.Mode.FaultBudget(total) >= need, "height %d is final by %d of honest weight, where %d to finalize less %d that may lie are %d",
			note.Height, t.honest, need, x.budget, need-x.budget)
		if t.weight-t.least < need {
			x.reach("minimal certificate")
		}
	}
}
