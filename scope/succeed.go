package scope

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// succession is what follows from an epoch for the next one. All nodes compute it from the chain.
type succession struct {
	terms  Terms
	ledger trust.Ledger
	scores trust.Ledger // the ledger before the group was chosen
	trust  []trust.Change
	takes  agenda // decisions that take effect
	left   agenda // what stays on the agenda
	gives  agenda // decisions about scopes below, which change no terms
	yields bool   // to others, as the scope above has ordered
	closes bool   // the scope goes back to the one above, as that has ordered
	stays  error  // why a scope that is quiet does not ask to go back; nil if it asks, or is not quiet

	dropped []dropped // decisions that could not take effect
}

// next is the succession if a block of this time on top of the state ends the
// epoch, nil if it does not.
func (s *State) next(at aweigh.Instant) (*succession, error) {
	if due, err := s.Due(at); err != nil || !due {
		return nil, err
	}
	return s.successorAt(at)
}

// successorAt is successor, with what the time of the block makes of the scope.
func (s *State) successorAt(at aweigh.Instant) (*succession, error) {
	u, err := s.successor()
	if err != nil {
		return nil, err
	}
	return u, s.asks(u, at)
}

// successor computes what would follow if the epoch ended now.
func (s *State) successor() (*succession, error) {
	e, err := s.Epoch()
	if err != nil {
		return nil, err
	}
	ledger, err := s.Ledger()
	if err != nil {
		return nil, err
	}
	t, err := s.count()
	if err != nil {
		return nil, err
	}
	open, err := s.agenda()
	if err != nil {
		return nil, err
	}
	evidence := attendance(s.bounds, e, t, s.head.Height)
	credits, err := s.credits(e, t)
	if err != nil {
		return nil, err
	}
	due, gives, left := choose(open)
	var failed []dropped
	switch d := open.yielding(); {
	case d != nil && d.Decision.Child.folds():
		u, failure, err := s.closing(e, d, open, ledger)
		if failure == nil || err != nil {
			return u, err
		}
		failed = []dropped{{*d, failure}}
	case d != nil:
		return s.yield(e, d.Decision.Child, open, ledger, evidence)
	}
	evidence = append(evidence, credits...)
	u, takes, without := combine(due, func(some agenda) (*succession, error) {
		u := new(succession)
		policy := e.Policy
		all := slices.Clone(evidence)
		for i := range some {
			if d := &some[i].Decision; d.Kind == SetPolicy {
				policy = *d.Policy
			} else if !d.ofApprover() { // whom trust knows nothing of
				all = append(all, verdict(&some[i], e.Number))
			}
		}
		u.scores, u.trust = ledger.ApplyExplained(e.Policy.Trust, all...)
		grouped, moved := u.scores.Regroup(policy.Trust, e.turn(s.bounds, &policy, t, s.head.Height))
		u.ledger, u.trust = grouped, append(u.trust, moved...)
		u.terms, err = e.terms(policy, u.ledger, some)
		return u, err
	})
	if u == nil { // no weights can be computed: everything stays as it is, and anchors that lied keep their seats
		u = &succession{ledger: ledger, scores: ledger, terms: e.Terms()}
	} else {
		e.excludeFromLeading(s.bounds, &u.terms, t)
	}
	u.takes, u.dropped, u.gives, u.left = takes, append(without, failed...), gives, left
	return u, nil
}

// turn is what the group of anchors depends on that weigh in the epoch after e.
func (e *Epoch) turn(b *Bounds, p *Policy, t *tally, at aweigh.Height) trust.Turn {
	short := t.blocks < e.Policy.EpochBlocks && (t.early || t.blocks < b.clockBlocks()) // the latter as the scope is quiet
	return trust.Turn{Epoch: e.Number + 1, Height: at, Mode: p.Rules.Mode, Before: e.Roster.Weights, Load: t.load, Short: short}
}

// attendance is the evidence of an epoch's ballots, as it stands at a height.
func attendance(b *Bounds, e *Epoch, t *tally, at aweigh.Height) (all []trust.Evidence) {
	for seat, a := range e.Roster.Anchors {
		if record := t.attendance(b, seat); !record.Empty() {
			all = append(all, trust.Evidence{
				Anchor: a.Key.ID(), Kind: trust.Attended, Epoch: e.Number, Height: at, Record: record,
			})
		}
	}
	return all
}

// choose parts the carried decisions that take effect, those about scopes below apart, from
// what stays: no more than one anchor leaves at a time, so that the others' weights
// can follow.
func choose(open agenda) (takes, gives, left agenda) {
	leaves := false
	for _, p := range open {
		switch p.Decision.Kind {
		case Delegate, Revoke, Fold, Return:
			gives = append(gives, p)
			continue
		case Yield:
			continue
		}
		goes := p.Decision.Kind == Retire || p.Decision.Kind == Evict
		if goes && leaves {
			left = append(left, p)
			continue
		}
		leaves = leaves || goes
		takes = append(takes, p)
	}
	return takes, gives, left
}

// verdict is a decision about an anchor as evidence.
func verdict(p *decided, now aweigh.Epoch) trust.Evidence {
	d := &p.Decision
	ev := trust.Evidence{Anchor: d.Subject, Epoch: now, Height: p.Carried, Proof: d.ID()}
	switch d.Kind {
	case Admit:
		ev.Kind, ev.Sponsor = trust.Admitted, d.Sponsor
	case Retire:
		ev.Kind = trust.Retired
	case Evict:
		ev.Kind = trust.Evicted
	case Attest:
		ev.Kind, ev.Score = trust.Attested, d.Score
	case Readmit:
		ev.Kind = trust.Readmitted
	}
	return ev
}

// terms are those of the epoch after e. An error is the reason why there can be none.
func (e *Epoch) terms(p Policy, l trust.Ledger, decided agenda) (Terms, error) {
	w, err := l.Next(p.Trust, e.Number+1, e.Roster.Weights)
	if err != nil {
		return Terms{}, err
	}
	peers := make(map[string]bool)
	if _, err := p.Rules.Check(w); err != nil {
		return Terms{}, err
	}
	r := Roster{Weights: w}
	for st := range l.Seated() {
		a, ok := e.identity(st.Anchor, decided)
		must.Hold(ok, "anchor %s has a seat and no identity", st.Anchor.Short())
		if a.Peer != "" && peers[a.Peer] || len(r.Anchors) >= p.Limits.Anchors {
			return Terms{}, fmt.Errorf("%w: more anchors than the policy takes, or two of one node", ErrInvalid)
		}
		peers[a.Peer] = true
		a.Score = st.Score
		r.Anchors = append(r.Anchors, a)
	}
	slices.SortFunc(r.Anchors, compareIDs)
	return r.terms(p), nil
}

// nonLeadingAfter is how many views an anchor must have led in vain, and none with
// success, so that it does not lead for an epoch.
const nonLeadingAfter = 4

// excludeFromLeading excludes from leading the anchors whose views gave no block in the epoch that ends, in the order
// of the roster, as long as the others weigh more than half. Safety does not depend on it, because leaders decide
// nothing. For trust, see trust.Attendance.
func (e *Epoch) excludeFromLeading(b *Bounds, t *Terms, c *tally) {
	var total, away uint64
	var vain []int
	for i, a := range t.Anchors {
		total += t.Weights[i]
		if seat, ok := e.Roster.Seat(a.Key.ID()); ok && t.Weights[i] > 0 && c.counts[seat].led == 0 && c.counts[seat].nullified >= b.NonLeadingAfter {
			vain = append(vain, i)
		}
	}
	for _, i := range vain {
		if away += t.Weights[i]; 2*away >= total {
			return
		}
		t.NonLeading[i] = true
	}
}

// identity returns the entry of an anchor of the next roster.
func (e *Epoch) identity(id aweigh.AnchorID, decided agenda) (Anchor, bool) {
	for i := range decided {
		if d := &decided[i].Decision; d.seats() && d.Subject == id {
			return *d.Anchor, true
		}
	}
	if seat, ok := e.Roster.Seat(id); ok {
		return e.Roster.Anchors[seat], true
	}
	return Anchor{}, false
}

// succeed counts the block, and begins the next epoch if it ends this one. s
// is the state before it.
func (x *execution) succeed(s *State) error {
	h := &x.block.Header
	if h.Epoch != x.epoch.Number {
		return nil // waits for the end of the epoch before, and is never applied
	}
	if h.Next.IsZero() {
		before := s.head.View
		if s.head.Block == x.epoch.Root {
			before = 0
		}
		x.tally.add(x.bounds, x.epoch, h, x.block.Hash(), before, x.block.Len())
		return nil
	}
	u := x.ends
	must.Hold(u.terms.Hash(x.epoch.Number+1) == h.Next, "block %d ends epoch %d under terms that do not follow from the chain", h.Height, x.epoch.Number)
	next, err := x.epoch.after(*h, u.terms)
	if err != nil {
		return err
	}
	raw := next.Encode()
	x.ops = append(x.ops, kv.Set(x.space.at(atEpoch), raw))
	x.next.head.Under, x.next.epoch = epochDigest(raw), next
	if err := x.recordTerms(next, h.Next); err != nil {
		return err
	}
	x.ledger = &u.ledger
	x.government = government{carried: u.left, loaded: true, changed: true}
	x.result.Trust = append(x.result.Trust, u.trust...)
	x.result.Next, x.result.Terms = next, u.terms
	if u.yields {
		x.next.head.Governed = next.Number
	}
	ended := x.tally
	x.tally = newTally(len(next.Roster.Anchors))
	x.tally.early = len(u.left) > 0
	for i := range u.gives {
		if d := &u.gives[i]; d.Decision.Kind == Fold && d.Decision.byItself() && len(u.takes) > 0 {
			if err := x.staysAway(d, errors.New("scope: other decisions take effect now")); err != nil {
				return err
			}
			continue
		}
		give := x.delegate
		switch u.gives[i].Decision.Kind {
		case Revoke, Fold:
			give = x.revoke
		case Return:
			give = x.comeHome
		}
		if err := give(&u.gives[i]); err != nil {
			return err
		}
	}
	if err := x.split(s, u); err != nil {
		return err
	}
	if err := x.conclude(u, next.Number); err != nil {
		return err
	}
	if u.closes {
		x.next.head.Closed = true
		if err := x.voidMotions(); err != nil {
			return err
		}
	}
	if err := x.endWarnings(next, &ended, u.yields || u.closes); err != nil {
		return err
	}
	return x.supersede(x.epoch.Domain().Policy, next.Domain().Policy)
}

// Forecast is the roster that would follow if the epoch ended now, and the trust
// that its anchors would gain and lose.
func (s *State) Forecast() (Roster, []trust.Change, error) {
	u, err := s.successor()
	if err != nil {
		return Roster{}, nil, err
	}
	r, err := u.terms.roster()
	return r, u.trust, err
}

// ForecastUnder is the roster that would follow under another policy, if that had been decided, and whether the weight
// that may fail could then stop the scope (P3). If the policy has another group, it is the one to which the scope comes
// in the end. Errors wrap ErrInvalid where a decision on it would be refused.
func (s *State) ForecastUnder(p Policy) (r Roster, stoppable bool, err error) {
	e, err := s.Epoch()
	if err != nil {
		return r, false, err
	}
	if err := p.Check(); err != nil {
		return r, false, err
	}
	failure, err := s.refusesPolicy(e, &p)
	if err != nil {
		return r, false, err
	}
	if failure != nil {
		if !errors.Is(failure, ErrInvalid) {
			failure = fmt.Errorf("%w: %w", ErrInvalid, failure)
		}
		return r, false, failure
	}
	u, err := s.successor()
	if err != nil {
		return r, false, err
	}
	counted, err := s.count()
	if err != nil {
		return r, false, err
	}
	turn := e.turn(s.bounds, &p, counted, s.head.Height)
	if p.Trust.Group != e.Policy.Trust.Group { // to which it comes step by step
		turn.Before, turn.Load = quorum.Weights{}, 0
	}
	grouped, _ := u.scores.Regroup(p.Trust, turn)
	t, err := e.terms(p, grouped, u.takes)
	if err != nil {
		return r, false, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r, err = t.roster(); err != nil {
		return r, false, err
	}
	stoppable, err = p.Rules.Check(r.Weights)
	return r, stoppable, err
}
