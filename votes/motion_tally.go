package votes

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Verdict is what became of a motion.
type Verdict uint8

const (
	Open     Verdict = 0
	Carried  Verdict = 1 // the approvals meet the rule
	Rejected Verdict = 2 // they never can
	Expired  Verdict = 3 // its deadline came first; only Poll.Close returns it
)

// String is "open", "carried", "rejected" or "expired".
func (v Verdict) String() string {
	switch v {
	case Open:
		return "open"
	case Carried:
		return "carried"
	case Rejected:
		return "rejected"
	case Expired:
		return "expired"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// MotionTally is the count of the ballots on one motion.
type MotionTally struct {
	Approve, Reject uint64               // weights
	Void            uint64               // weight of the voters that equivocated, on neither side
	Total           uint64               // of the whole electorate
	Threshold       uint64               // the weight that must approve
	Anchors         int                  // how many anchors approve
	Least           uint32               // how many must
	Missing         []aweigh.Hash        // voters that have not voted, in order
	Waiting         []aweigh.Hash        // those of Missing that are required
	Equivocations   []MotionEquivocation // in the order of voters
	Verdict         Verdict
}

// String is like "carried: 7 approve, 1 reject of 10, 7 needed, 1 missing".
func (t MotionTally) String() string {
	s := fmt.Sprintf("%s: %d approve, %d reject of %d, %d needed, %d missing", t.Verdict, t.Approve, t.Reject, t.Total, t.Threshold, len(t.Missing))
	if len(t.Equivocations) > 0 {
		s += fmt.Sprintf(", %d equivocated", len(t.Equivocations))
	}
	return s
}

// CountMotion counts a set of ballots. The result is a function of the set: order and repetition change nothing.
// Ballots of keys that are not in the electorate count nothing. All ballots must be on one motion; the caller must
// ensure that.
func CountMotion(e Electorate, rule quorum.Rule, ballots []CheckedMotionBallot) MotionTally {
	heard := make([]bothBallots, len(e.voters))
	for _, c := range ballots {
		at, ok := e.seat(c.b.Voter)
		if !ok {
			continue
		}
		// Of ballots with the same vote the least is kept, so that proofs are equal too.
		if old := heard[at].on(c.b.Choice); *old == nil || less(&c.b, *old) {
			*old = &c.b
		}
	}
	return e.count(rule, heard)
}

// bothBallots holds the ballots of one voter, nil for none.
type bothBallots struct{ approve, reject *MotionBallot }

func (s *bothBallots) on(c Choice) **MotionBallot {
	if c == Approve {
		return &s.approve
	}
	return &s.reject
}

func less(a, b *MotionBallot) bool {
	return bytes.Compare(a.Encode(), b.Encode()) < 0
}

// count adds up the voters' votes, in their order.
func (e *Electorate) count(rule quorum.Rule, heard []bothBallots) MotionTally {
	t := MotionTally{Total: e.total, Threshold: rule.Threshold(e.total), Least: rule.MinAnchors}
	var approve, reject, void part
	for i := range e.voters {
		v, s := &e.voters[i], &heard[i]
		switch {
		case s.approve != nil && s.reject != nil: // P33
			void.add(v)
			t.Equivocations = append(t.Equivocations, MotionEquivocation{s.approve.WithoutComment(), s.reject.WithoutComment()})
		case s.approve != nil:
			approve.add(v)
		case s.reject != nil:
			reject.add(v)
		default:
			t.Missing = append(t.Missing, v.ID)
			if v.Required {
				t.Waiting = append(t.Waiting, v.ID)
			}
		}
	}
	t.Approve, t.Reject, t.Void, t.Anchors = approve.weight, reject.weight, void.weight, approve.anchors
	lost := part{reject.weight + void.weight, reject.anchors + void.anchors, reject.required + void.required}
	t.Verdict = e.verdict(rule, approve, lost)
	return t
}
