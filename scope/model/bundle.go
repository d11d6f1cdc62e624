package model

import (
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// bundle executes the mutations of a bundle.
func (m *Model) bundle(c *scope.CheckedBundle, outcomes []scope.Outcome) []scope.Outcome {
	h := &m.block.Header
	early := c.ValidUntil().Sub(h.Time) > m.block.policy.Limits.ValidFor
	spent, exceeded := false, false
	if r := m.receipts[c.ID()]; r != nil && r.forgotten == 0 {
		spent = true
	}
	first := len(outcomes)
	for i := range c.Mutations() {
		mut := &c.Mutations()[i]
		out := scope.Outcome{Mutation: mut.ID, Revision: m.view.Revision}
		before := m.receipts[mut.ID]
		switch {
		case mut.Scope != m.id, mut.ValidUntil >= h.Time && early:
			out.Code = scope.Refused
		case mut.ValidUntil < h.Time:
			out.Code = scope.Expired
		case before != nil && before.forgotten == 0:
			out.Code, out.Reason, out.Revision, out.Succeeded = scope.Duplicate, before.Reason, before.Revision, before.Succeeded
			if before.Code == scope.Pending {
				out.Code = scope.Pending
			}
		case spent:
			r := m.receipts[c.ID()]
			out.Code, out.Reason, out.Revision = scope.Exceeded, r.Reason, r.Revision
		case m.exceeds(c, mut):
			exceeded = true
			out.Code, out.Reason = scope.Exceeded, reason(scope.ErrTooMuch)
			m.unmodelled("cost")
		default:
			m.execute(mut, &out)
			m.remember(mut.ID, mut.ValidUntil, scope.Receipt{
				Code: out.Code, Succeeded: out.Succeeded, Height: h.Height, Index: uint32(len(outcomes)), Revision: out.Revision, Reason: out.Reason,
			})
			m.outcomes[mut.ID], m.order = out, append(m.order, mut.ID)
		}
		outcomes = append(outcomes, out)
	}
	if exceeded {
		m.remember(c.ID(), c.ValidUntil(), scope.Receipt{
			Code: scope.Exceeded, Height: h.Height, Index: uint32(first), Revision: m.view.Revision, Reason: reason(scope.ErrTooMuch),
		})
	}
	return outcomes
}

// execute does what a mutation asks for.
func (m *Model) execute(mut *scope.CheckedMutation, out *scope.Outcome) {
	m.begin(mut)
	m.Executed++
	var failure error
	out.Code = scope.Applied
	switch mut.Class {
	case scope.Write:
		failure = m.transact(mut, out)
	case scope.Compact:
		failure = m.compact(mut.Comp.Revision)
	case scope.Lease:
		out.TTLs, failure = m.leasing(mut)
	case scope.Name:
		out.Responses, failure = m.name(mut)
	default:
		m.believe(mut, out)
		return
	}
	m.commit()
	if out.Revision = m.view.Revision; failure != nil {
		out.Code, out.Reason = scope.Failed, reason(failure)
		m.begin(mut)
		m.entry(lineage.Entry{Class: lineage.Failed, Reason: out.Reason}, nil)
	}
}

// believe takes the outcome of a mutation that is not reckoned from a node; it changes no key.
func (m *Model) believe(mut *scope.CheckedMutation, out *scope.Outcome) {
	m.Executed--
	m.unmodelled("outcome of " + mut.Class.String())
	out.Revision = m.view.Revision
	if r, ok := m.block.told.Outcome(mut.ID, mut.ID); ok {
		out.Code, out.Reason, out.Revision = r.Code, r.Reason, r.Revision
	}
	for i := range m.block.told.Log {
		if e := &m.block.told.Log[i]; e.Class == lineage.Failed && e.Mutation == mut.ID {
			out.Code, out.Reason = scope.Failed, e.Reason
			m.entry(lineage.Entry{Class: lineage.Failed, Reason: e.Reason}, nil)
		}
	}
}

// exceeds reports whether a mutation cost more than its bundle declares, as a node says. It is not believed where
// that cannot be.
func (m *Model) exceeds(c *scope.CheckedBundle, mut *scope.CheckedMutation) bool {
	if c.Reserve() >= m.most(mut) {
		return false
	}
	r, ok := m.block.told.Outcome(c.ID(), mut.ID)
	return ok && r.Code == scope.Exceeded
}

// most is more than what a mutation can cost: as if each of its ranges met all versions that were ever written, each
// of its puts wrote the largest value under as many names as an object may have, and all was given to the client.
func (m *Model) most(mut *scope.CheckedMutation) int64 {
	look := 2 + m.largest>>10
	one, ranged := 16+scope.MaxAliases*look, 64+m.versions*(8+look)
	switch {
	case mut.Txn != nil:
		return 64 + most(mut.Txn, one, ranged)
	case mut.Lease != nil:
		return 64 + int64(len(mut.Lease.IDs)) + ranged
	}
	return 64 + 2*one
}

func most(t *scope.Txn, one, ranged int64) (n int64) {
	of := func(end []byte) int64 {
		if len(end) > 0 {
			return ranged
		}
		return one
	}
	for i := range t.Compare {
		n += of(t.Compare[i].End)
	}
	for _, ops := range [][]scope.Op{t.Success, t.Failure} {
		for i := range ops {
			if n += of(ops[i].End); ops[i].Txn != nil {
				n += most(ops[i].Txn, one, ranged)
			}
		}
	}
	return n
}
