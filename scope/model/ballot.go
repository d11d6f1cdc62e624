package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// vote carries motions that wait for their turn, and counts the block's ballots, those on one motion together.
func (m *Model) vote() {
	for {
		all := slices.DeleteFunc(m.docket.open(), func(p *motion) bool { return p.due == 0 })
		if len(all) == 0 || !m.block.Header.Next.IsZero() || m.block.carries <= 0 || m.carry(all[0]) {
			break
		}
	}
	for rest := m.block.Ballots; len(rest) > 0; {
		var on []votes.MotionBallot
		for len(rest) > 0 {
			v, err := votes.DecodeMotionBallot(rest[0])
			if err != nil || len(on) > 0 && v.Motion != on[0].Motion {
				break
			}
			on, rest = append(on, v), rest[1:]
		}
		if len(on) == 0 {
			return
		}
		if p := m.docket.motions[on[0].Motion]; p != nil {
			m.voteOn(p, on)
		}
	}
}

// voteOn records ballots on one motion, and closes it if they decide it.
func (m *Model) voteOn(p *motion, on []votes.MotionBallot) {
	if p.ending == nil && p.due == 0 && p.Deadline <= m.block.Header.Time {
		m.begin(p.mut)
		m.close(p, scope.Ending{Fate: scope.MotionExpired})
	}
	late, fresh := p.ending != nil || p.due > 0, false
	for i := range on {
		v := &on[i]
		may := slices.ContainsFunc(p.Voters, func(e scope.Elector) bool { return e.Key.ID() == v.Voter })
		if !may || p.said(v.Voter, v.Choice) {
			continue
		}
		fresh = true
		class := lineage.Voted
		if late {
			class = lineage.Reconcile
		}
		m.recorded(p, v.Voter, v.Choice, scope.Recorded{Ballot: v.Encode(), Late: late}, lineage.Entry{Class: class, Posterior: v.ID()}, v.Comment, "")
	}
	if !late && fresh {
		m.settle(p)
	}
}

// recorded puts a ballot on record.
func (m *Model) recorded(p *motion, voter aweigh.Hash, c votes.Choice, r scope.Recorded, e lineage.Entry, comment, caller string) {
	m.begin(&scope.CheckedMutation{ID: p.mut.ID, Mutation: scope.Mutation{Author: voter, Justification: comment, Caller: caller}})
	e.Reason = c.String()
	r.Height, r.Time = m.block.Header.Height, m.block.Header.Time
	r.Entry = m.entry(e, nil)
	p.ballots = append(p.ballots, ballot{voter, c, r})
	if len(r.Ballot) > 0 {
		m.bothWays(p, voter)
	}
}

// said reports whether a ballot is on record.
func (p *motion) said(voter aweigh.Hash, c votes.Choice) bool {
	return slices.ContainsFunc(p.ballots, func(b ballot) bool { return b.voter == voter && b.choice == c })
}

// settle closes a motion that the ballots decide.
func (m *Model) settle(p *motion) {
	m.begin(p.mut)
	switch p.verdict() {
	case scope.Carried:
		waits := p.decision.IsZero() && m.docket.sum().Due > 0
		if waits || m.carry(p) {
			p.due = m.block.Header.Height
		}
	case scope.Rejected:
		m.close(p, scope.Ending{Fate: scope.Rejected})
	}
}

// verdict counts the ballots that came in time: Carried, Rejected or 0.
func (p *motion) verdict() scope.Fate {
	var yes, left uint64
	yesAnchors, leftAnchors, missing, lost := uint32(0), uint32(0), false, false
	in := func(id aweigh.Hash, c votes.Choice) bool {
		return slices.ContainsFunc(p.ballots, func(b ballot) bool { return b.voter == id && b.choice == c && !b.Late })
	}
	for i := range p.Voters {
		v := &p.Voters[i]
		rejects := in(v.Key.ID(), votes.Reject)
		approves := in(v.Key.ID(), votes.Approve) && !rejects
		if approves {
			if yes += v.Weight; v.Anchor {
				yesAnchors++
			}
		}
		if !rejects {
			if left += v.Weight; v.Anchor {
				leftAnchors++
			}
		}
		missing, lost = missing || v.Required && !approves, lost || v.Required && rejects
	}
	need := p.Rule.Num + 1 // of the whole weight, which is the rule's denominator
	switch {
	case yes >= need && yesAnchors >= p.Rule.MinAnchors && !missing:
		return scope.Carried
	case left < need || leftAnchors < p.Rule.MinAnchors || lost:
		return scope.Rejected
	}
	return 0
}

// carry applies a motion that has the approvals, or finds it void. It reports whether the motion waits for its turn.
func (m *Model) carry(p *motion) (waits bool) {
	if !p.decision.IsZero() {
		end := m.closing(p)
		if d := p.mut.Decision; end.Fate == scope.Carried && d.Kind == scope.Readmit && d.Anchor == nil {
			m.returns = append(m.returns, p.mut)
		}
		if d := p.mut.Decision; end.Fate == scope.Carried && d.Kind == scope.SetPolicy {
			m.warned(p, alteredPolicy(*m.block.policy, *d.Policy))
		}
		m.close(p, end)
		return false
	}
	left := m.block.carries
	m.begin(p.mut)
	m.block.purse = purse{reserve: left}
	failure := m.spend(form(p.mut) + lookCost(len(p.Mutation)))
	m.block.purse.allowed = form(p.mut)
	var apply func()
	if failure == nil {
		apply, failure = m.stands(p)
	}
	m.block.carries = m.block.purse.reserve
	if m.block.purse.empty && left < m.block.policy.Limits.BlockCost {
		return true
	}
	end := scope.Ending{Fate: scope.Void}
	if failure == nil {
		end.Fate, end.Succeeded = scope.Carried, p.Success
		before := m.keys()
		apply()
		m.commit()
		end.Revision = m.view.Revision
		m.warned(p, m.alteredKeys(before, m.keys()))
	} else {
		end.Reason = reason(failure)
	}
	m.begin(p.mut)
	m.close(p, end)
	return false
}

// stands reports why a motion cannot be applied as it was approved.
func (m *Model) stands(p *motion) (apply func(), failure error) {
	if failure = m.authorized(p.mut); failure != nil {
		return nil, failure
	}
	if p.mut.Naming != nil {
		return m.standsAsName(p)
	}
	var path []bool
	if m.elsewhere(p.mut.Txn) {
		return nil, scope.ErrElsewhere
	}
	m.block.room, m.block.grows, m.block.reach = make(map[int64]volume), 0, p.mut.Txn.Reach
	if path, failure = m.plan(p.mut.Txn); failure != nil {
		return nil, failure
	}
	if failure = m.unchanged(p, path[0]); failure != nil {
		return nil, failure
	}
	all := m.flat(p.mut.Txn, path)
	if m.crowded(all) {
		return nil, scope.ErrNoSpace
	}
	if failure = cmp.Or(m.mayMerge(p.mut, path[0]), m.permitted(p.mut, all)); failure != nil {
		return nil, failure
	}
	asked, failure := m.askedFor(p.mut, all, path)
	if failure == nil {
		failure = p.asks(asked)
	}
	if failure == nil {
		failure = m.goesBeyond(p)
	}
	return func() { m.run(p.mut.Txn, &path) }, failure
}

// standsAsName is stands for a change of names.
func (m *Model) standsAsName(p *motion) (apply func(), failure error) {
	if failure = m.nameable(p.mut); failure != nil {
		return nil, failure
	}
	if failure = m.sameNames(p); failure != nil {
		return nil, failure
	}
	asked, failure := m.mayName(p.mut)
	if failure == nil {
		failure = p.asks(asked)
	}
	if failure == nil {
		failure = m.goesBeyond(p)
	}
	if failure != nil {
		return nil, failure
	}
	named, failure := m.naming(p.mut.Naming)
	return func() { named() }, failure
}

// asks reports whether the policy now asks for another approval than when a motion opened.
func (p *motion) asks(now *scope.Approval) error {
	if now != nil && !bytes.Equal(canon.Encode(*now), canon.Encode(p.Approval)) {
		return errors.New("scope: the policy asks for another approval by now; propose it again")
	}
	return nil
}

// unchanged reports what is not as it was when a motion opened.
func (m *Model) unchanged(p *motion, yes bool) error {
	if yes != p.Success {
		return errors.New("scope: the conditions of its transaction hold no more as they did when it opened")
	}
	now, n := m.basis(p.mut.Txn, yes), 0
	for _, op := range branch(p.mut.Txn, yes) {
		if op.Kind != scope.OpPut && op.Kind != scope.OpDelete {
			continue
		}
		if now[n] != p.Basis[n] || m.newer(&op, p.Revision) {
			return fmt.Errorf("scope: %q was changed after it opened; propose it again", op.Key)
		}
		n++
	}
	return nil
}

// newer reports whether something is stored of the keys of an operation that is newer than a revision.
func (m *Model) newer(op *scope.Op, revision int64) bool {
	for _, key := range m.stored.within(op.Key, op.End) {
		if all := m.stored.of[key]; all[len(all)-1].revision > revision {
			return true
		}
	}
	return false
}

// compareMotions compares the motions on record, with their ballots. When a decision takes effect is not reckoned.
func (m *Model) compareMotions(d *Differences, s *scope.State) {
	m.compareVoid(d, s)
	m.compareWarnings(d, s)
	for _, p := range append(m.docket.open(), m.docket.closed()...) {
		id := p.mut.ID
		got, end, err := s.Motion(id)
		all, err2 := s.Ballots(id)
		due, err3 := s.ApprovedAt(id)
		if d.fail(errors.Join(err, err2, err3), "motion") {
			continue
		}
		if d.look(got != nil, "motion %s is not on record", id.Short()); got == nil {
			continue
		}
		d.look(bytes.Equal(canon.Encode(*got), canon.Encode(p.Motion)), "motion %s\n got %+v\nwant %+v", id.Short(), got, p.Motion)
		ended := (end == nil) == (p.ending == nil) && (end == nil || !p.decision.IsZero() || *end == *p.ending)
		d.look(ended, "motion %s ended %+v, want %+v", id.Short(), end, p.ending)
		d.look(end != nil || due == p.due, "motion %s waits since height %d, want %d", id.Short(), due, p.due)
		slices.SortFunc(p.ballots, func(a, b ballot) int {
			return cmp.Or(bytes.Compare(a.voter[:], b.voter[:]), cmp.Compare(a.choice, b.choice))
		})
		d.look(slices.EqualFunc(all, p.ballots, func(r scope.Recorded, b ballot) bool { return same(r, b.Recorded) }),
			"motion %s has the ballots\n %+v\nwant %+v", id.Short(), all, p.ballots)
	}
}
