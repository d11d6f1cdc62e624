package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

const (
	// proposedAtOnce bounds the open decisions that one anchor has proposed, so that
	// an anchor fills its own share alone.
	proposedAtOnce = 4
	// outsideAtOnce bounds the open decisions that no anchor has proposed: applications.
	outsideAtOnce = 16
	// governedByOne bounds the mutations of one anchor that a block executes, and
	// governedOutside those of all others.
	governedByOne   = 8
	governedOutside = 16
	// decisionWindow is how long a decision may stay open, by the blocks' time, if the
	// policy sets no period.
	decisionWindow = 7 * 24 * time.Hour
)

// government is what a block does to the agenda.
type government struct {
	carried agenda
	loaded  bool
	changed bool
	goes    *Handed             // what the decision to delegate that was looked at last would hand over
	by      map[aweigh.Hash]int // mutations of each anchor
	outside int
}

// Why an author cannot propose a decision, whatever the state is.
var (
	errRetires  = errors.New("only the anchor itself can retire; to remove another, evict it")
	errNoWeight = errors.New("only anchors with weight can propose or approve this")
)

// govern executes a proposal, or an approval, of a decision; failure is the
// reason why it has no effect.
func (x *execution) govern(m *CheckedMutation) (failure, err error) {
	g, d, anchor := &x.government, m.Decision, aweigh.AnchorID(m.Author)
	_, seated := x.epoch.Roster.Seat(anchor)
	weighs := x.epoch.Roster.Weights.Of(anchor) > 0
	switch {
	case d.Kind == Retire && (anchor != d.Subject || !seated):
		return errRetires, nil
	case d.Kind != Retire && d.Kind != Admit && !weighs:
		return errNoWeight, nil
	case seated && g.by[m.Author] >= x.bounds.GovernedByOne || !seated && g.outside >= x.bounds.GovernedOutside:
		return errors.New("too many decisions in one block; try again"), nil
	}
	if g.by == nil {
		g.by = make(map[aweigh.Hash]int)
	}
	if seated {
		g.by[m.Author]++
	} else {
		g.outside++
	}
	if err := x.loadAgenda(); err != nil {
		return nil, err
	}
	if x.foresees {
		if failure, err := x.foresee(d); failure != nil || err != nil {
			return failure, err
		}
	}
	if d.Kind == Retire {
		if failure, err := x.admissible(d); failure != nil || err != nil {
			return failure, err
		}
		x.decide(decided{Decision: *d, By: m.Author, Opened: x.block.Header.Time})
		return nil, nil
	}
	if failure := x.spend(x.next.head.Docket.Open / linesAUnit); failure != nil { // they are looked through
		return failure, nil
	}
	id := d.ID()
	rec, known, err := x.openDecision(id)
	switch {
	case err != nil:
		return nil, err
	case known && !weighs:
		return errors.New("this is proposed already; only anchors with weight can approve it"), nil
	case known: // if it cannot take effect any more, it becomes void, with the reason
		return x.approve(&rec, m)
	}
	if failure, err := x.admissible(d); failure != nil || err != nil {
		return failure, err
	}
	displaced, failure, err := x.mayPropose(m, weighs)
	if failure != nil || err != nil {
		return failure, err
	}
	impact, err := x.impactOfDecision(d)
	if err != nil {
		return nil, err
	}
	a := x.policy.decides(d)
	if failure := a.Permits(impact); failure != nil {
		return failure, nil
	}
	o := opening{line: indexedMotion{Author: m.Author, Decision: id, Outside: !weighs}, displaced: displaced, impact: impact}
	if failure, err := x.openMotion(m, a, o); failure != nil || err != nil || !weighs {
		return failure, err
	}
	if rec, _, err = x.motion(m.ID); err != nil {
		return nil, err
	}
	return x.approve(&rec, m)
}

// openDecision is the open motion of a decision, if there is one.
func (x *execution) openDecision(id aweigh.Hash) (rec motionRecord, ok bool, err error) {
	var at votes.MotionID
	err = x.eachOpen(func(deadline aweigh.Instant, motion votes.MotionID, line indexedMotion) bool {
		if line.Decision == id && deadline > x.block.Header.Time {
			at, ok = motion, true
		}
		return !ok
	})
	if err != nil || !ok {
		return rec, false, err
	}
	rec, err = x.mustMotion(at)
	return rec, err == nil, err
}

// decides is the approval that a decision takes.
func (p *Policy) decides(d *Decision) *Approval {
	a := Approval{Matter: Membership, Window: decisionWindow}
	if d.Kind == SetPolicy || d.Kind == Delegate || d.Kind == Revoke || d.Kind == Fold {
		a.Matter = Policies
	}
	for i := range p.Approvals {
		if p.Approvals[i].Matter == a.Matter {
			a = p.Approvals[i]
		}
	}
	a.Finalize = p.Rules.Finalize
	if d.Kind == Admit {
		a.Sponsor = d.Sponsor
	}
	return &a
}

// loadAgenda reads the agenda for this block.
func (x *execution) loadAgenda() error {
	g := &x.government
	if g.loaded {
		return nil
	}
	carried, err := x.next.agenda()
	g.carried, g.loaded = slices.Clone(carried), err == nil
	return err
}

// decide puts a decision that is carried on the agenda.
func (x *execution) decide(d decided) {
	d.Carried = x.block.Header.Height
	x.government.carried = append(x.government.carried, d)
	x.government.changed, x.tally.early = true, true
}

// mayPropose reports why an author cannot put a decision on the agenda, or which open application gives way to it, if
// one must.
func (x *execution) mayPropose(m *CheckedMutation, weighs bool) (displaced *votes.MotionID, failure, err error) {
	mine := 0
	var outside []votes.MotionID // by deadline
	err = x.eachOpen(func(_ aweigh.Instant, id votes.MotionID, line indexedMotion) bool {
		if !line.Decision.IsZero() && line.Author == m.Author {
			mine++
		}
		if line.Outside {
			outside = append(outside, id)
		}
		return true
	})
	switch {
	case err != nil:
		return nil, nil, err
	case weighs && mine >= x.bounds.ProposedAtOnce:
		return nil, fmt.Errorf("%d decisions that this anchor proposed are open already; they must be carried, be rejected (aweigh ballot reject) or expire first", mine), nil
	case weighs:
		return nil, nil, nil
	case mine > 0:
		return nil, errors.New("an application of this node is open already"), nil
	case len(outside) >= x.bounds.OutsideAtOnce:
		return x.displacedApplication(outside)
	}
	return nil, nil, nil
}

// displacedApplication chooses the first open application that has no approval, once it has been open for
// unlistedMotionStay: any key can sign one. It returns why there is none.
func (x *execution) displacedApplication(open []votes.MotionID) (id *votes.MotionID, failure, err error) {
	for i := range open {
		raw, _, err := x.r.Get(x.space.motion(open[i]))
		if err != nil {
			return nil, nil, err
		}
		if failure := x.spend(lookCost(len(raw))); failure != nil { // before it is looked at
			return nil, failure, nil
		}
		rec, err := x.mustMotion(open[i])
		if err != nil {
			return nil, nil, err
		}
		if x.block.Header.Time.Sub(rec.Motion.Opened) < x.bounds.UnlistedMotionStay {
			continue
		}
		if approved, failure, err := x.hasApproval(open[i]); failure != nil || err != nil || !approved {
			return &open[i], failure, err
		}
	}
	return nil, fmt.Errorf("%d applications are open already; one gives way if no anchor approves it within %v of when it opened, so try again later",
		len(open), x.bounds.UnlistedMotionStay), nil
}

// hasApproval reports whether some voter has approved a motion. The mutation pays for the ballots.
func (x *execution) hasApproval(id votes.MotionID) (approved bool, failure, err error) {
	all, err := x.ballots(id)
	for i := 0; i < len(all) && err == nil; i++ {
		if failure = x.spend(lookCost(len(all[i].Ballot))); failure != nil {
			return false, failure, nil
		}
		var v votes.CheckedMotionBallot
		if v, err = all[i].Vote(id); err == nil && v.Ballot().Choice == votes.Approve {
			return true, nil, nil
		}
	}
	return false, nil, err
}

// admissible reports why a decision could not take effect as things stand.
func (x *execution) admissible(d *Decision) (failure, err error) {
	r := x.epoch.Roster
	seat, seated := r.Seat(d.Subject)
	if failure := x.government.carried.clash(d, len(r.Anchors), x.policy.Limits.Anchors); failure != nil {
		return failure, nil
	}
	switch d.Kind {
	case SetPolicy:
		if d.Policy.Hash() == x.policy.Hash() {
			return errors.New("this is the policy in force"), nil
		}
		return x.next.refusesPolicy(x.epoch, d.Policy)
	case Delegate:
		return x.mayDelegate(d.Child)
	case Revoke, Fold:
		return x.mayRevoke(d.Child)
	case Admit:
		if seated {
			return fmt.Errorf("%s is an anchor already", r.Anchors[seat].Name), nil
		}
		if r.Weights.Of(d.Sponsor) == 0 {
			return fmt.Errorf("the sponsor %s has no weight here", d.Sponsor.Short()), nil
		}
		return x.hasRoom(d.Anchor), nil
	case Readmit:
		if d.ofApprover() {
			return x.mayReadmitApprover(d)
		}
		return x.mayReadmit(d)
	case Attest:
		return x.mayAttest(d)
	case Retire, Evict:
		if !seated {
			return fmt.Errorf("%s is no anchor", d.Subject.Short()), nil
		}
		return x.without(d.Subject)
	}
	return nil, nil
}

// mayDelegate reports why a prefix cannot be delegated: as things stand, or because
// of what is decided already.
func (x *execution) mayDelegate(c *Child) (failure, err error) {
	if failure := x.undecided(c); failure != nil {
		return failure, nil
	}
	own, err := x.region()
	if err != nil {
		return nil, err
	}
	if failure, err = x.next.delegable(c, own, x.policy); failure != nil || err != nil {
		return failure, err
	}
	var h handover // refuses now what could not go now, as far as half of the budget shows it
	look := purse{allowed: delegateUnits - governUnits}
	failure, err = h.gather(x, c.Prefix, func(visits, bytes int) error {
		if units := int64(visits) + int64(bytes)/givenBytes; !look.take(units) {
			return errEnough
		} else {
			return x.spend(units)
		}
	})
	x.government.goes = h.sum(failure == nil)
	return ignore(failure, errEnough), err
}

// undecided reports which decision about the same keys stands on the agenda already.
func (x *execution) undecided(c *Child) (failure error) {
	for i := range x.government.carried {
		d := &x.government.carried[i].Decision
		if o := d.Child; o != nil && d.Kind != Yield && (bytes.HasPrefix(o.Prefix, c.Prefix) || bytes.HasPrefix(c.Prefix, o.Prefix)) {
			return fmt.Errorf("%w: it is decided already to %s %q", ErrElsewhere, d.Kind, o.Prefix)
		}
	}
	return nil
}

// refusesPolicy reports why a policy could not follow the one in force.
func (s *State) refusesPolicy(e *Epoch, p *Policy) (failure, err error) {
	g, err := s.Genesis()
	if err != nil {
		return nil, err
	}
	bound := g.bound()
	if failure = bound.admits(p); failure == nil {
		failure = e.refusesPolicy(p)
	}
	return failure, nil
}

// refusesPolicy reports why a policy could not follow that of an epoch, as its roster stands.
func (e *Epoch) refusesPolicy(p *Policy) error {
	if l := p.Limits; l.MutationBytes < leastMutation || l.BundleBytes < 2*leastMutation || l.BlockBytes < 2*leastMutation || l.ValidFor < time.Second {
		return fmt.Errorf("under such limits no policy could be set again: a mutation needs %d bytes, a bundle and a block twice as many, and a second to be ordered", leastMutation)
	}
	if _, err := p.Rules.Check(e.Roster.Weights); err != nil {
		return err
	}
	for i := range p.Approvals {
		if err := p.Approvals[i].carriable(e.Roster); err != nil {
			return err
		}
	}
	if is, was := p.Rules.Mode, e.Policy.Rules.Mode; is.Byzantine() != was.Byzantine() {
		return fmt.Errorf("a scope of mode %s cannot be of mode %s: bft and fast change into each other, and crash stays", was, is)
	}
	if n := p.Limits.Anchors; n < len(e.Roster.Anchors) {
		return fmt.Errorf("the roster has %d anchors, more than the %d that this policy takes", len(e.Roster.Anchors), n)
	}
	return nil
}

// leastMutation has room for any decision.
const leastMutation = 16 << 10

// without reports why an anchor cannot go.
func (x *execution) without(a aweigh.AnchorID) (failure, err error) {
	rest := slices.DeleteFunc(slices.Collect(x.epoch.Roster.Weights.All()), func(s quorum.Share) bool { return s.Anchor == a })
	if len(rest) == 0 {
		return errors.New("this is the only anchor with weight"), nil
	}
	w, failure := quorum.NewWeights(rest...)
	if x.policy.Trust.Group.On() { // one on standby may take the place
		ledger, err := x.standings()
		if err != nil {
			return nil, err
		}
		ledger = ledger.Apply(x.policy.Trust, trust.Evidence{Anchor: a, Kind: trust.Retired, Epoch: x.epoch.Number})
		ledger, _ = ledger.Regroup(x.policy.Trust, x.epoch.turn(x.bounds, x.policy, &x.tally, x.block.Header.Height))
		w, failure = ledger.Next(x.policy.Trust, x.epoch.Number+1, x.epoch.Roster.Weights)
	}
	if failure == nil {
		_, failure = x.policy.Rules.Check(w)
	}
	if failure != nil {
		failure = fmt.Errorf("the policy's rules do not hold without this anchor: %w", failure)
	}
	return failure, nil
}

// storeAgenda writes what the block made of the agenda.
func (x *execution) storeAgenda() {
	if !x.government.changed {
		return
	}
	carried := x.government.carried
	raw := carried.encode()
	x.next.head.Agenda = agendaDigest(raw)
	x.next.pending = &carried
	x.ops = append(x.ops, kv.Set(x.space.at(atAgenda), raw))
}
