package scope

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// leastGroup is how many anchors weigh at least where some may lie, so that one liar stops nothing (P3).
const leastGroup = 4

// leastOfAbsence is how many blocks an epoch has at least in which an anchor can be absent: of the last four, ballots
// may still come.
const leastOfAbsence = 8

// checkGroup reports whether the policy's rules can be met by the smallest group that it allows.
func (p *Policy) checkGroup() error {
	g := &p.Trust.Group
	if !g.On() {
		return nil
	}
	if p.Rules.Mode.Byzantine() && g.Least < leastGroup {
		return fmt.Errorf("%w: groups of %d anchors; in mode %s it takes %d, so that one may lie", ErrInvalid, g.Least, p.Rules.Mode, leastGroup)
	}
	if int64(g.Most) > int64(p.Limits.Anchors) {
		return fmt.Errorf("%w: groups of up to %d anchors, and limits.anchors is %d", ErrInvalid, g.Most, p.Limits.Anchors)
	}
	if n := g.Takes(p.Rules.Mode, 0); n > uint64(g.Most) {
		return fmt.Errorf("%w: groups of up to %d anchors, and %d that may fail take %d in mode %s", ErrInvalid, g.Most, g.Tolerates, n, p.Rules.Mode)
	}
	if g.Replace > 0 && p.EpochBlocks < leastOfAbsence {
		return fmt.Errorf("%w: in epochs of %d blocks no anchor is absent; epoch.blocks must be %d or more, or group.replace 0", ErrInvalid, p.EpochBlocks, leastOfAbsence)
	}
	for i := range p.Approvals {
		if a := &p.Approvals[i]; a.Anchors > g.Least && !a.StepUp {
			return fmt.Errorf("%w: groups of %d anchors, of which %s asks for %d", ErrInvalid, g.Least, a, a.Anchors)
		}
	}
	if n := max(p.Rules.Notarize.MinAnchors, p.Rules.Finalize.MinAnchors, p.Rules.Nullify.MinAnchors); n > g.Least {
		return fmt.Errorf("%w: groups of %d anchors, of which the rules of the quorum ask for %d", ErrInvalid, g.Least, n)
	}
	return nil
}

// GroupNow is the group of the policy in force, as things stand.
type GroupNow struct {
	trust.Group
	Faults  int    // anchors that were proven to lie, which let the group grow
	Changes uint64 // mutations in the epoch so far
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
	now.Group, now.Changes, now.Faults = e.Policy.Trust.Group, t.load, ledger.Faults(e.Number+1)
	return now, nil
}

// settledWeights is the weights of the anchors under a policy once its group has no more places than it needs, without
// load: those to which the scope comes step by step. Without a group it is zero.
func (u *succession) settledWeights(p *Policy, after aweigh.Epoch) (quorum.Weights, error) {
	if !p.Trust.Group.On() {
		return quorum.Weights{}, nil
	}
	l, _ := u.scores.Regroup(p.Trust, trust.Turn{Epoch: after, Mode: p.Rules.Mode})
	return l.Next(p.Trust, after, quorum.Weights{})
}
