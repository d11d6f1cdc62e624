package scope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// Forbids returns why the policy's authors and the grants of a mutation do not permit it in the epoch, whatever the
// state is and whichever branches its transactions take; nil if they may.
func (e *Epoch) Forbids(m *CheckedMutation) error {
	return e.forbids(m, e.rightsFor(m))
}

// forbids is Forbids for a mutation whose author has some rights.
func (e *Epoch) forbids(m *CheckedMutation, r Rights) error {
	if !m.Class.needsAuthor() {
		return e.forbidsOutsider(m)
	}
	if _, acts := e.seats[m.Author]; m.Class == Permit && !acts {
		return denial{ErrAccessAuthor}
	}
	return r.forbids(m)
}

// forbidsOutsider is Forbids for what needs no entry of the policy, but an anchor.
func (e *Epoch) forbidsOutsider(m *CheckedMutation) error {
	anchor := aweigh.AnchorID(m.Author)
	if _, acts := e.seats[m.Author]; m.Class.alone() && !acts {
		return denial{errNoAnchorsNode}
	}
	switch {
	case m.Class != Govern || m.Decision.Kind == Admit: // any key can ask to become an anchor
		return nil
	case m.Decision.Kind == Retire:
		if _, seated := e.Roster.Seat(anchor); !seated || anchor != m.Decision.Subject {
			return denial{errRetires}
		}
	case e.Roster.Weights.Of(anchor) == 0:
		return denial{errNoWeight}
	}
	return nil
}

// denial is an error that wraps ErrDenied and the failure that would be on record.
type denial struct{ failure error }

func (d denial) Error() string   { return ErrDenied.Error() + ": " + reason(d.failure) }
func (d denial) Unwrap() []error { return []error{ErrDenied, d.failure} }

// rightsFor are the rights of the author of a mutation in the epoch.
func (e *Epoch) rightsFor(m *CheckedMutation) Rights {
	r := e.Rights(m.Principal())
	if len(m.grants) > 0 {
		r = r.Within(m.grants)
	}
	return r
}

// Admits returns ErrNoAuthor or another error that wraps ErrDenied if, by Forbids, most mutations of a bundle can
// change nothing in the epoch, and nil otherwise. A node does not spread such a bundle: what is denied would fail on
// record, and its authors, who may be anyone, would make the lineage grow at will. A few may be among others, since a
// policy may change while a node signs what its clients sent.
func (e *Epoch) Admits(b *CheckedBundle) error {
	n, first := e.forbidden(b)
	if 2*n <= len(b.mutations) {
		return nil
	}
	return first
}

// ForbidsAny reports whether some mutation of a bundle can change nothing in the epoch.
func (e *Epoch) ForbidsAny(b *CheckedBundle) bool {
	n, _ := e.forbidden(b)
	return n > 0
}

// ForbidsAll is Admits, but for bundles of which nothing is permitted.
func (e *Epoch) ForbidsAll(b *CheckedBundle) error {
	if n, first := e.forbidden(b); n == len(b.mutations) {
		return first
	}
	return nil
}

// forbidden returns how many mutations of a bundle are not permitted, and why the first of them is not.
func (e *Epoch) forbidden(b *CheckedBundle) (n int, first error) {
	r := e.rightsFor(&b.mutations[0]) // the same for all
	for i := range b.mutations {
		if why := e.forbids(&b.mutations[i], r); why != nil {
			if n++; first == nil {
				first = why
			}
		}
	}
	return n, first
}

// forbids returns why the rights do not suffice for a mutation by its form, whichever branches its transactions take.
func (r Rights) forbids(m *CheckedMutation) error {
	switch n, verb := m.Naming, m.Class.verbOfAll(); {
	case r.whole:
		return nil
	case r.None():
		return ErrNoAuthor
	case verb != "" && r.Entry(verb, nil) == nil:
		return r.unauthorized(verb, nil, nil)
	case m.Class == Act:
		return r.lacks(m.Action.Verb, m.Action.Key, nil)
	case m.Class == Write:
		return r.lacksFor(m, m.Txn)
	case m.Class == Name:
		verb := m.verb(OpPut)
		if len(n.Key) > 0 && !r.permits(verb, n.Key, nil) {
			return r.unauthorized(verb, n.Key, nil)
		}
		if len(n.makes()) > 0 && !r.permits(verb, n.To, nil) {
			return r.unauthorized(verb, n.To, nil)
		}
		return r.lacksSource(n)
	}
	return nil
}

// lacksSource returns why the rights do not suffice for what a fork copies.
func (r Rights) lacksSource(n *Naming) error {
	if n.Kind != Fork {
		return nil
	}
	return r.lacksCopy(n.From)
}

// lacksCopy returns why the rights do not suffice for a fork or a merge of what a key holds: it shows under another key
// what is there, so an author must be permitted to name it or to read it. That the state lists a reader does not count.
func (r Rights) lacksCopy(key []byte) error {
	if r.permits(VerbAlias, key, nil) || r.permits(VerbRead, key, nil) {
		return nil
	}
	reads := func(a *Author) bool { return a.covers(key, nil) }
	if slices.ContainsFunc(r.readers, reads) && !r.outside(VerbRead, key, nil) {
		return nil
	}
	return fmt.Errorf("%w, or to %s it", r.unauthorized(VerbAlias, key, nil), VerbRead)
}

// lacks returns why the rights do not suffice for a verb on a range of keys, in the sense of Op.
func (r Rights) lacks(verb string, key, end []byte) error {
	if r.permits(verb, key, end) {
		return nil
	}
	return r.unauthorized(verb, key, end)
}

// lacksFor returns why the rights do not suffice for either branch of a transaction. One without compares has the
// first branch alone.
func (r Rights) lacksFor(m *CheckedMutation, t *Txn) error {
	why := r.lacksIn(m, t.Success)
	if why == nil || len(t.Compare) > 0 && r.lacksIn(m, t.Failure) == nil {
		return nil
	}
	return why
}

func (r Rights) lacksIn(m *CheckedMutation, branch []Op) (why error) {
	for i := range branch {
		switch op := &branch[i]; op.Kind {
		case OpTxn:
			why = r.lacksFor(m, op.Txn)
		case OpMerge:
			why = r.lacksCopy(op.Key)
		case OpPut, OpDelete:
			why = r.lacksOp(m, op)
		}
		if why != nil {
			return why
		}
	}
	return nil
}

// Admits is Epoch.Admits by the state. It also refuses what acts by a grant whose record does not name the object that
// the grant names. The record may be on its way, as may be a motion that is withdrawn: a node looks again once it has
// the newest state. Where the state has delegated keys that a denied mutation is about, the error is ErrElsewhere.
func (s *State) Admits(b *CheckedBundle, now aweigh.Instant) (failure, err error) {
	e, err := s.Epoch()
	if err != nil {
		return nil, err
	}
	if e.Home != nil {
		return ErrElsewhere, nil
	}
	if failure, err = s.Revoked(b.Grants()); failure != nil || err != nil {
		return failure, err
	}
	n, failure := e.forbidden(b)
	applied := false
	var ended []votes.MotionID // by the bundle
	for i := range b.mutations {
		m := &b.mutations[i]
		why, err := s.withdraws(e, m, ended)
		if m.Class == Withdraw {
			ended = append(ended, m.Motion)
		}
		if e.applies(m) {
			if why, err = errApplied, nil; !applied {
				why, err = s.fails(m, now)
			}
			applied = true
		}
		if err != nil {
			return nil, err
		}
		if why != nil {
			n++
			failure = cmp.Or(failure, error(denial{why}))
		}
	}
	if 2*n <= len(b.mutations) {
		return nil, nil
	}
	own, err := s.region()
	if err != nil {
		return nil, err
	}
	for i := range b.mutations {
		b.mutations[i].Names(func(key, end []byte) bool {
			if own.owns(key, end) != nil {
				failure = ErrElsewhere
			}
			return failure != ErrElsewhere
		})
	}
	return failure, nil
}

// withdraws returns why a mutation cannot withdraw a motion: another author proposed it, or, unless an anchor signed,
// execution would refuse it as well, by what the state knows and by those that the bundle has ended before.
func (s *State) withdraws(e *Epoch, m *CheckedMutation, ended []votes.MotionID) (failure, err error) {
	if m.Class != Withdraw {
		return nil, nil
	}
	rec, there, err := s.motion(m.Motion)
	if err != nil {
		return nil, err
	}
	_, acts := e.seats[m.Author]
	if !there {
		if acts {
			return nil, nil
		}
		return errNoMotion, nil
	}
	var of Mutation
	if err := of.decode(rec.Motion.Mutation); err != nil {
		return nil, err
	}
	switch {
	case of.Author != m.Author:
		return errOthers(&of), nil
	case acts:
		return nil, nil
	case rec.Ending != nil || slices.Contains(ended, m.Motion):
		return errEnded, nil
	case of.Class == Govern:
		return errDecision, nil
	}
	return nil, nil
}

// errEnded is why a motion that is not open cannot be withdrawn.
var errEnded = errors.New("the motion is closed already")

// errApplied is why a bundle has one application only.
var errApplied = errors.New("another application of this node is before it")

// applies reports whether a mutation asks to make a key an anchor, and no anchor asks for it.
func (e *Epoch) applies(m *CheckedMutation) bool {
	return m.Class == Govern && m.Decision.Kind == Admit && e.Roster.Weights.Of(aweigh.AnchorID(m.Author)) == 0
}

// Applies reports whether a bundle has an application: any key may sign one.
func (e *Epoch) Applies(b *CheckedBundle) bool {
	return slices.ContainsFunc(b.mutations, func(m CheckedMutation) bool { return e.applies(&m) })
}

// fails returns why a mutation would fail in the next block, nil if it would not.
func (s *State) fails(m *CheckedMutation, now aweigh.Instant) (failure, err error) {
	x, err := s.trial(now, m.allowed)
	if err != nil {
		return nil, err
	}
	var out Outcome
	if err := x.execute(m, &out); err != nil {
		return nil, err
	}
	return Failure(out.Reason), nil
}

// Revoked returns why one of some grants has no record, nil if all have one.
func (s *State) Revoked(all []Grant) (failure, err error) {
	for i := 0; i < len(all) && failure == nil && err == nil; i++ {
		failure, err = s.revoked(&all[i])
	}
	return failure, err
}

// Grants are the grants by which a bundle acts, the same for all of its mutations. They share no memory with its
// encoding.
func (c *CheckedBundle) Grants() []Grant { return c.mutations[0].grants }

// Recorded reports whether a bundle acts by a grant that has a record.
func (c *CheckedBundle) Recorded() bool {
	return slices.ContainsFunc(c.Grants(), func(g Grant) bool { return len(g.Record) > 0 })
}

// revoked returns why a grant has no record: it is revoked, or was never on record as far as the state knows.
func (s *State) revoked(g *Grant) (failure, err error) {
	if len(g.Record) == 0 {
		return nil, nil
	}
	v, there, err := s.newest(g.Record)
	if err != nil || there && v.UID == g.Object {
		return nil, err
	}
	return fmt.Errorf("%w: the grant %q is revoked", ErrDenied, g.Name), nil
}
