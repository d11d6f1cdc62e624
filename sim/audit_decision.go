package sim

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// effects checks a new epoch against the decisions that were carried: each takes effect,
// waits on the agenda, or is void with a reason. At most one anchor leaves in an epoch.
func (x *watch) effects(n *Node, e *scope.Epoch, before, after trust.Ledger) {
	if x.lost || !x.within {
		return
	}
	state := n.state()
	agenda, err := state.Agenda()
	must.OK(err, "reading the agenda")
	waits := func(motion votes.MotionID, subject aweigh.AnchorID) bool {
		return slices.ContainsFunc(agenda, func(p scope.Proposed) bool {
			return p.Motion == motion && (!motion.IsZero() || p.Decision.Kind == scope.Retire && p.Decision.Subject == subject)
		})
	}
	var closed []votes.MotionID
	must.OK(state.Motions(func(id votes.MotionID, open bool) bool {
		if !open {
			closed = append(closed, id)
		}
		return true
	}), "reading the motions")
	for _, id := range closed {
		mo, end, err := state.Motion(id)
		must.OK(err, "reading a motion")
		m, err := scope.OpenMutation(mo.Mutation)
		must.OK(err, "reading what a motion decides")
		if m.Decision == nil || end.Fate != scope.Carried || end.Height > e.Start {
			continue
		}
		why := ""
		switch {
		case end.Effective == e.Number:
			why = ineffective(e, m.Decision)
		case end.Effective == 0 && !waits(id, aweigh.AnchorID{}):
			why = "it neither took effect nor waits"
		}
		x.w.holds(Standings, n, why == "", "epoch %d: the decision to %s, carried at height %d: %s", e.Number, m.Decision.About(), end.Height, why)
	}
	c := &x.conduct
	c.retiring = slices.DeleteFunc(c.retiring, func(a aweigh.AnchorID) bool {
		_, seated := e.Roster.Seat(a)
		x.w.holds(Standings, n, !seated || waits(votes.MotionID{}, a), "epoch %d: node %d retired, and keeps its seat", e.Number, x.w.anchors[a])
		return !seated
	})
	left := 0
	for s := range after.All() {
		if old, known := before.Standing(s.Anchor); known && old.Seated && !s.Seated && !s.Barred {
			left++
		}
	}
	x.w.holds(Standings, n, left <= 1, "epoch %d: %d anchors left at once", e.Number, left)
}

// takenUp are the decisions about anchors that took effect with an epoch, by their subjects. Where motions may be
// forgotten, a decision that was asked for counts if its effect shows.
func (x *watch) takenUp(n *Node, was, e *scope.Epoch, after trust.Ledger) map[aweigh.AnchorID]*scope.Decision {
	all, state := make(map[aweigh.AnchorID]*scope.Decision), n.state()
	must.OK(state.Motions(func(id votes.MotionID, open bool) bool {
		if open {
			return true
		}
		mo, end, err := state.Motion(id)
		must.OK(err, "reading a motion")
		m, err := scope.OpenMutation(mo.Mutation)
		must.OK(err, "reading what a motion decides")
		if d := m.Decision; d != nil && end.Fate == scope.Carried && end.Effective == e.Number {
			all[d.Subject] = d
		}
		return true
	}), "reading the motions")
	if !forgets(&x.w.Scenario.Bounds) {
		return all
	}
	for i := range x.w.decisions {
		d := &x.w.decisions[i]
		s, known := after.Standing(d.Subject)
		if why, set := moved(was, d, s); all[d.Subject] == nil && known && set && why == "" {
			all[d.Subject] = d
		}
	}
	return all
}

// moved reports what is wrong with the score that a decision set, "" if nothing is; ok is false if it set none.
func moved(was *scope.Epoch, d *scope.Decision, s trust.Standing) (why string, ok bool) {
	if d == nil || d.Kind != scope.Attest && (d.Kind != scope.Readmit || d.Anchor == nil) {
		return "", false
	}
	p := was.Policy.Trust
	switch from := was.Number + 1 + aweigh.Epoch(p.Probation); {
	case d.Kind == scope.Attest && (s.Score != d.Score || s.Barred):
		return fmt.Sprintf("its score is %d, and %d is attested", s.Score, d.Score), true
	case d.Kind == scope.Readmit && (s.Barred || s.Score != p.Initial || s.Weighs != from):
		return fmt.Sprintf("it was readmitted with a score of %d and weighs from epoch %d on, not with %d from %d", s.Score, s.Weighs, p.Initial, from), true
	}
	return "", true
}

// ineffective is why an epoch does not show a decision's effect, or "".
func ineffective(e *scope.Epoch, d *scope.Decision) string {
	_, seated := e.Roster.Seat(d.Subject)
	switch {
	case d.Anchor != nil && !seated:
		return "the anchor has no seat"
	case d.Kind == scope.Evict && seated:
		return "the anchor keeps its seat"
	case d.Kind == scope.SetPolicy && e.Policy.Hash() != d.Policy.Hash():
		return fmt.Sprintf("the policy is %s", e.Policy.Hash().Short())
	}
	return ""
}

// voids checks which approvers are void: those of whom both ballots on one motion are on record, and no others. No
// scenario readmits an approver.
func (x *watch) voids(n *Node, e *scope.Epoch) {
	state := n.state()
	all, err := state.Voided()
	must.OK(err, "reading the void approvers")
	void := make(map[aweigh.Hash]bool)
	for i := range all {
		id := all[i].Key.ID()
		void[id] = true
		x.w.holds(Motions, n, x.lost || !x.within || x.conduct.said == nil || x.conduct.bothWays(id), "epoch %d: approver %s is void, and no final blocks have both its ballots", e.Number, all[i].Name)
	}
	must.OK(state.Motions(func(id votes.MotionID, _ bool) bool {
		mo, _, err := state.Motion(id)
		must.OK(err, "reading a motion")
		ballots, err := state.Ballots(id)
		must.OK(err, "reading ballots")
		count := make(map[aweigh.Hash]int)
		for i := range ballots {
			if v, err := ballots[i].Vote(id); err == nil && len(ballots[i].Ballot) > 0 {
				count[v.Ballot().Voter]++
			}
		}
		for i := range mo.Approval.Approvers {
			p := &mo.Approval.Approvers[i]
			x.w.holds(Motions, n, count[p.Key.ID()] < 2 || void[p.Key.ID()], "epoch %d: approver %s signed both ways on motion %s, and is not void", e.Number, p.Name, id.Short())
		}
		return true
	}), "reading the motions")
}
