package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// maxApplications bounds the bundles that wait and ask to make a key an anchor: any key may sign one, and what a block
// or the scope has no room for fails on record.
const maxApplications = 16

// admit puts a bundle into the pool. from is the peer that sent it, "" for a client of this node.
func (m *Machine) admit(b *scope.CheckedBundle, from Peer) error {
	lim, head := m.chain.policy.Limits, m.chain.state.Head().Time
	switch at := max(m.now, head); {
	case b.Scope() != m.id:
		return ErrOtherScope
	case m.Closed():
		return scope.ErrElsewhere
	case b.ValidUntil() > m.latest(&lim, b) && b.Patient():
		return errTooPatient
	case b.ValidUntil() > m.latest(&lim, b):
		return errTooLong
	case b.ValidUntil() < at:
		return &ExpiredError{Time: head}
	}
	if from != "" && m.pool.get(b.ID()) != nil || m.applied(b) {
		return nil // it came late, or twice
	}
	wanted := m.wants.lacks(b.ID()) // then execution denies what its author may not: a leader that took it keeps its view
	denied, err := m.chain.state.Admits(b, max(m.now, head))
	must.OK(err, "reading what a bundle is permitted")
	if denied != nil && !wanted && !(m.cfg.TakesDenied && m.guard != nil) {
		return denied
	}
	if b.Patient() && !m.chain.policy.AsksOfKeys() && !wanted {
		return errPatient
	}
	if !b.CheckedWithin(lim) { // under another policy
		var err error
		if b, err = verified(b.Raw(), lim); err != nil {
			return err
		}
	}
	counts, failure := m.paces(b, max(m.now, head))
	if failure != nil && !wanted {
		return failure
	}
	if err := m.patientRoom(b, from); err != nil && !wanted {
		return err
	}
	if err := m.shareRoom(b, from); err != nil && !wanted {
		return err
	}
	applies := m.chain.terms.Applies(b)
	if applies && m.pool.applications >= maxApplications && !wanted {
		return ErrBusy
	}
	scarce := from != "" && m.anchors[from] == (aweigh.AnchorID{})
	if err := m.pool.add(b, from, !m.isAnchorNode(b.Mutations()[0].Principal()), scarce, wanted, m.now); err != nil {
		return err
	}
	e := m.pool.entries[b.ID()]
	if applies && !e.applies {
		e.applies = true
		m.pool.applications++
	}
	m.pool.pace(e, counts, +1)
	m.wants.arrived(b.ID())
	return nil
}

// latest returns the latest ValidUntil of a bundle that is accepted now.
func (m *Machine) latest(lim *scope.Limits, b *scope.CheckedBundle) aweigh.Instant {
	return max(m.now, m.chain.state.Head().Time).Add(lim.Patience(b.Patient()) + lim.Drift)
}

// applied reports whether, for each mutation of a bundle, the chain has an outcome: its own, or that the bundle
// exceeded what it declares.
func (m *Machine) applied(b *scope.CheckedBundle) bool {
	for i := range b.Mutations() {
		_, ok, err := m.chain.state.OutcomeIn(b.ID(), b.Mutations()[i].ID)
		must.OK(err, "reading the outcome of a mutation")
		if !ok {
			return false
		}
	}
	return true
}
