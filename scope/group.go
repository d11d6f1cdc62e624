package scope

import (
	"fmt"

	"github.com/aweigh/aweigh/trust"
)

// leastGroup is how many anchors weigh at least where some may lie, so that one liar stops nothing (P3).
const leastGroup = 4

// checkGroup reports whether the policy's rules can be met by the smallest group that it allows.
func (p *Policy) checkGroup() error {
	g := &p.Trust.Group
	if !g.On() {
		return nil
	}
	if p.Rules.Mode.Byzantine() && g.Least < leastGroup {
		return fmt.Errorf("%w: groups of %d anchors; in mode %s it takes %d, so that one may lie", ErrInvalid, g.Least, p.Rules.Mode, leastGroup)
	}
	if n := max(p.Rules.Notarize.MinAnchors, p.Rules.Finalize.MinAnchors, p.Rules.Nullify.MinAnchors); n > g.Least {
		return fmt.Errorf("%w: groups of %d anchors, of which the rules of the quorum ask for %d", ErrInvalid, g.Least, n)
	}
	return nil
}

// GroupNow is the group of the policy in force, as things stand.
type GroupNow struct {
	trust.Group        // Tolerates with the anchors that were proven to lie and are barred
	Next        int    // places, if the epoch ended now
	Changes     uint64 // mutations in the epoch so far
}

// Group is the zero value where all anchors past probation weigh.
func (s *State) Group() (now GroupNow, err error) {
	e, err := s.Epoch()
	if err != nil || !e.Policy.Trust.Group.On() {
		return now, err
	}
	ledger, err := s.Ledger()
	if err != nil {
		return now, err
	}
	t, err := s.count()
	if err != nil {
		return now, err
	}
	now.Group, now.Changes = e.Policy.Trust.Group, t.load
	barred := 0
	weigh := 0
	for st := range ledger.All() {
		switch {
		case st.Barred:
			barred++
		case st.Seated && e.Roster.Weights.Of(st.Anchor) > 0:
			weigh++
		}
	}
	now.Next = now.Size(e.Policy.Rules.Mode, weigh, barred, t.load)
	now.Tolerates += uint32(barred)
	return now, nil
}
