package votes

import (
	"github.com/aweigh/aweigh/quorum"
)

// Poll is one motion in the order of the chain (P31): ballots are recorded one
// after another, and the first that decides closes it. Closed is closed: what
// comes later is recorded as late (P34), an equivocation too. Recording the
// same ballots in the same order again gives the same Poll. Not safe for
// concurrent use.
type Poll struct {
	motion  MotionID
	e       Electorate
	rule    quorum.Rule
	heard   []bothBallots // before the close
	later   []bothBallots // after it
	verdict Verdict
	final   MotionTally // when closed
}

// newPoll opens a motion. One that the electorate could not carry even if all
// approved is rejected at once.
func newPoll(motion MotionID, e Electorate, rule quorum.Rule) *Poll {
	p := &Poll{motion: motion, e: e, rule: rule, heard: make([]bothBallots, len(e.voters)), later: make([]bothBallots, len(e.voters))}
	p.Close(p.Tally().Verdict)
	return p
}

// Recorded states what became of a ballot.
type Recorded uint8

const (
	Counted     Recorded = iota + 1 // on its side
	Repeated                        // the voter cast this vote before
	Equivocated                     // the voter cast the opposite vote before: counts on neither side
	Late                            // the motion is closed; changes nothing
	NoVoter                         // not in the electorate, or of another motion
)

// String is one word.
func (r Recorded) String() string {
	switch r {
	case Counted:
		return "counted"
	case Repeated:
		return "repeated"
	case Equivocated:
		return "equivocated"
	case Late:
		return "late"
	}
	return "no voter"
}

// Record records a ballot.
func (p *Poll) Record(c CheckedMotionBallot) Recorded {
	at, ok := p.e.seat(c.b.Voter)
	if !ok || c.b.Motion != p.motion {
		return NoVoter
	}
	before, after := &p.heard[at], &p.later[at]
	if *before.on(c.b.Choice) != nil || *after.on(c.b.Choice) != nil {
		return Repeated
	}
	if p.verdict != Open {
		*after.on(c.b.Choice) = &c.b
		return Late
	}
	*before.on(c.b.Choice) = &c.b
	p.Close(p.e.count(p.rule, p.heard).Verdict)
	if before.approve != nil && before.reject != nil {
		return Equivocated
	}
	return Counted
}

// Close closes the motion with a verdict, as Expired when its deadline has
// come. It does nothing if the motion is closed, or the verdict is Open.
func (p *Poll) Close(v Verdict) {
	if p.verdict == Open && v != Open {
		p.final = p.Tally()
		p.verdict, p.final.Verdict = v, v
	}
}

// Verdict is Open until the motion is closed, and never changes after.
func (p *Poll) Verdict() Verdict { return p.verdict }

// Tally is the count of the ballots so far, or as of the close.
func (p *Poll) Tally() MotionTally {
	if p.verdict != Open {
		return p.final
	}
	return p.e.count(p.rule, p.heard)
}

// lateBallots are those recorded after the close, by voter.
func (p *Poll) lateBallots() (late []MotionBallot) {
	for _, s := range p.later {
		for _, b := range []*MotionBallot{s.approve, s.reject} {
			if b != nil {
				late = append(late, *b)
			}
		}
	}
	return late
}

// equivocations returns the proofs against all voters that voted both ways, at any time: before the close it cost them
// their weight, and it is a fault after the close as well (P36).
func (p *Poll) equivocations() (all []MotionEquivocation) {
	for i := range p.heard {
		both := p.heard[i]
		if both.approve == nil {
			both.approve = p.later[i].approve
		}
		if both.reject == nil {
			both.reject = p.later[i].reject
		}
		if both.approve != nil && both.reject != nil {
			all = append(all, MotionEquivocation{both.approve.WithoutComment(), both.reject.WithoutComment()})
		}
	}
	return all
}
