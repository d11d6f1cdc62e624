package model

import (
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// bundle executes the mutations of a bundle.
func (m *Model) bundle(c *scope.CheckedBundle, outcomes []scope.Outcome) []scope.Outcome {
	h := &m.block.Header
	most := m.block.policy.Limits.ValidFor
	if c.Mutations()[0].Patient && m.block.policy.Limits.Pending > most {
		most = m.block.policy.Limits.Pending
	}
	early := c.ValidUntil().Sub(h.Time) > most
	spent, exceeded := false, false
	m.block.purse.reserve = c.Reserve()
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
		case m.execute(mut, &out):
			exceeded = true
			out.Code, out.Reason = scope.Exceeded, reason(scope.ErrTooMuch)
		default:
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

// execute does what a mutation asks for, and reports whether it exceeded what it declares.
func (m *Model) execute(mut *scope.CheckedMutation, out *scope.Outcome) (exceeds bool) {
	m.begin(mut)
	m.block.purse = purse{allowed: form(mut), reserve: m.block.purse.reserve}
	out.Code = scope.Applied
	failure := m.authorized(mut)
	if failure == nil && m.genesis.IsIsland() && !simple(mut) {
		failure = scope.ErrIslandTakes
	}
	if failure == nil || m.block.purse.empty {
		if exhausted := m.paced(mut); failure == nil {
			failure = exhausted
		}
	}
	if failure == nil {
		switch mut.Class {
		case scope.Write:
			failure = m.transact(mut, out)
		case scope.Act:
			failure = m.act(mut, out)
		case scope.Compact:
			failure = m.compact(mut.Comp.Revision)
		case scope.Lease:
			out.TTLs, failure = m.leasing(mut)
		case scope.Name:
			failure = m.name(mut, out)
		case scope.Permit:
			failure = m.permit(mut.Access)
		case scope.Withdraw:
			failure = m.withdraw(mut)
		case scope.Rejoin:
			failure = m.rejoin(mut)
		case scope.Bring:
			failure = m.bring(mut)
		case scope.Carry:
			failure = m.transfer(mut)
		default:
			m.govern(mut, out)
			return false
		}
	}
	m.Executed++
	m.commit()
	if out.Revision = m.view.Revision; failure == nil {
		return false
	}
	if m.block.purse.empty {
		m.Executed--
		return true
	}
	out.Code, out.Reason = scope.Failed, reason(failure)
	m.begin(mut)
	m.entry(lineage.Entry{Class: lineage.Failed, Reason: out.Reason}, nil)
	return false
}
