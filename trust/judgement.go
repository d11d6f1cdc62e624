package trust

import (
	"errors"
	"fmt"
	"strings"
)

// Judgement is the part of trust that rests on ballots on motions. It never moves a
// score. It moves an anchor's blame, from 0 to MaxScore, and blame takes at most
// 1/Params.Blame of the anchor's claim, so that opinions weigh less than attendance.
//
// A motion judges its voters if it ended by their votes and was contested, see
// Params.Contested. A ballot counts if it was recorded before the outcome was clear,
// see Counted: with the outcome, or against it. A voter without such a ballot counts
// as silent if the motion was open for Params.Answer of its window, and it had no
// ballot recorded in that time. Every division rounds down, and all products stay
// below 2^64:
//
//	motions = With + Against + Silent
//	span    = max(motions, Judged)
//	with    = blame × With / span / p.With
//	against = (MaxScore − blame) × Against / span / p.Against
//	silent  = (MaxScore/2 − blame) × Silent / span / p.Silent, at least 0
//
//	blame after = blame + against + silent − with
//
// So an anchor without blame gains nothing by any ballot. Of two anchors that vote
// alike often, the one that errs more often has more blame in the long run, whatever
// both began with; silence alone ends at half, below what guessing costs.
func (p Params) judgement(blame Score, r *Attendance) (Score, string) {
	of := [...]uint64{uint64(r.With), uint64(r.Against), uint64(r.Silent)}
	motions := of[0] + of[1] + of[2]
	if motions == 0 {
		return blame, ""
	}
	has, span := uint64(blame), max(motions, uint64(p.Judged))
	with := has * of[0] / span / uint64(p.With)
	against := (uint64(MaxScore) - has) * of[1] / span / uint64(p.Against)
	half := uint64(MaxScore) / 2
	silent := (half - min(has, half)) * of[2] / span / uint64(p.Silent)
	after := Score(has + against + silent - with)

	var b strings.Builder
	fmt.Fprintf(&b, "; blame %d -> %d: ", blame, after)
	fmt.Fprintf(&b, "-%d with %d of %d outcomes, +%d against %d", with, of[0], motions, against, of[1])
	if r.Silent > 0 {
		fmt.Fprintf(&b, ", +%d silent on %d", silent, of[2])
	}
	return after, b.String()
}

// judges reports whether the record has any judgement.
func (r *Attendance) judges() bool { return r.With > 0 || r.Against > 0 || r.Silent > 0 }

// Empty reports whether the record would move neither score nor blame: no block
// counts, and no motion judged the anchor.
func (r *Attendance) Empty() bool { return r.Blocks == 0 && !r.judges() }

// claim is the weight of an anchor before any cap: that of its score, less what its
// blame takes. It is at least 1.
func (p Params) claim(s Standing) uint64 {
	w := p.Weight(s.Score)
	return w - w*uint64(s.Blame)/(uint64(p.Blame)*uint64(MaxScore))
}

// Contested reports whether a motion judges its voters, by the weights of the anchors
// that voted with its outcome and against it, of a total of all anchors. The losing
// side must hold Params.Contest of the total, or agreement on easy motions would earn
// something. The winning side must be the heavier one, or a third could make all
// others err by rejecting what they approve; and it must hold more than a third, or
// less could do so where less rejects, by ending a motion before the others vote.
func (p Params) Contested(with, against, total uint64) bool {
	return with > against && with > total/3 && against > 0 && against*uint64(p.Contest.Den) >= total*uint64(p.Contest.Num)
}

// Cast is a ballot on a motion that has ended: the height of the block that recorded
// it, the voter's weight, and whether it is one with the outcome.
type Cast struct {
	Height uint64
	Weight uint64
	With   bool
}

// Counted reports for each ballot, in the order of heights, whether it was recorded
// before the outcome was clear: whether the blocks before its own hold less than half
// of the weight that the outcome takes, on that side. So repeating what others
// have decided counts for nothing.
func Counted(needed uint64, casts []Cast) []bool {
	counted := make([]bool, len(casts))
	var before, here uint64 // with the outcome: in earlier blocks, and in this one
	for i, c := range casts {
		if i > 0 && c.Height != casts[i-1].Height {
			before, here = before+here, 0
		}
		counted[i] = before < (needed+1)/2
		if c.With {
			here += c.Weight
		}
	}
	return counted
}

// checkJudgement reports the parameter of judgement that is out of range.
func (p Params) checkJudgement() error {
	switch {
	case p.Blame < 16:
		return fmt.Errorf("blame takes 1/%d of a claim, more than 1/16; judgement must weigh less than attendance", p.Blame)
	case p.With == 0:
		return errors.New("with is 0; ballots with the outcome take 1/with of the blame, so take a large number for little of it")
	case p.Against == 0:
		return errors.New("against is 0; ballots against the outcome add 1/against of what is missing to full blame, so take a large number for little of it")
	case p.Silent == 0:
		return errors.New("silent is 0; silence adds 1/silent of what is missing to half of full blame, so take a large number for little of it")
	case p.Judged == 0:
		return errors.New("judged is 0; it is the number of contested motions that move blame in full, so take 1 at least")
	case p.Against > p.With:
		return fmt.Errorf("against adds 1/%d and with takes 1/%d; an error must cost at least what a hit gives back", p.Against, p.With)
	case p.Against > p.Silent:
		return fmt.Errorf("against adds 1/%d and silent 1/%d; an error must cost at least what silence costs", p.Against, p.Silent)
	}
	if err := p.Contest.check(); err != nil {
		return fmt.Errorf("contest %w", err)
	}
	if 2*uint64(p.Contest.Num) > uint64(p.Contest.Den) {
		return fmt.Errorf("contest %s is above 1/2; no losing side holds as much", p.Contest)
	}
	if err := p.Answer.check(); err != nil {
		return fmt.Errorf("answer %w", err)
	}
	if p.Reversal > MaxReversal {
		return fmt.Errorf("reversal %d is above %d epochs, for which a scope remembers contested motions at most; 0 for none", p.Reversal, MaxReversal)
	}
	return nil
}
