package model

import (
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// govern takes from a node whether a decision may be proposed or approved, and reckons what follows: a motion that
// opens, or an approval of one that is open.
func (m *Model) govern(mut *scope.CheckedMutation, out *scope.Outcome) {
	m.unmodelled("outcome of " + mut.Class.String())
	r, _ := m.block.told.Outcome(mut.ID, mut.ID)
	if out.Code, out.Reason, out.Revision = r.Code, r.Reason, m.view.Revision; out.Code == scope.Failed {
		m.entry(lineage.Entry{Class: lineage.Failed, Reason: out.Reason}, nil)
		return
	}
	d := mut.Decision
	if d.Kind == scope.Retire {
		return
	}
	var p *motion
	for _, o := range m.docket.open() {
		if p == nil && o.decision == d.ID() && o.Deadline > m.block.Header.Time {
			p = o
		}
	}
	opens, weighs := p == nil, m.block.told.Epoch.Roster.Weights.Of(aweigh.AnchorID(mut.Author)) > 0
	if opens {
		if !weighs {
			m.displaceApplication()
		}
		p = &motion{mut: mut, decision: d.ID(), outside: !weighs, Motion: scope.Motion{Approval: *m.decides(d)}}
		if failure := m.open(p); failure != nil {
			m.block.differ = append(m.block.differ, "a decision is open, and cannot be: "+failure.Error())
			return
		}
		m.folding[mut.ID] = d.Kind == scope.Fold // the motion may be forgotten before the epoch ends
	}
	if !opens || weighs {
		e := lineage.Entry{Class: lineage.Voted, Posterior: mut.ID}
		m.recorded(p, mut.Author, votes.Approve, scope.Recorded{By: mut.Author}, e, mut.Justification, mut.Caller)
		m.settle(p)
	}
}

// displaceApplication closes the first open application without an approval, if there are too many for another one.
func (m *Model) displaceApplication() {
	all := slices.DeleteFunc(m.docket.open(), func(p *motion) bool { return !p.outside })
	if len(all) < m.bounds.OutsideAtOnce {
		return
	}
	for _, p := range all {
		approved := slices.ContainsFunc(p.ballots, func(b ballot) bool { return b.choice == votes.Approve })
		if !approved && m.block.Header.Time.Sub(p.Opened) >= m.bounds.UnlistedMotionStay {
			m.closeForRoom(p)
			return
		}
	}
	m.block.differ = append(m.block.differ, "an application is open for which there is no room")
}

// decides is the approval that a decision takes.
func (m *Model) decides(d *scope.Decision) *scope.Approval {
	a := scope.Approval{Matter: scope.Membership, Window: week}
	if d.Kind == scope.SetPolicy || d.Kind == scope.Delegate || d.Kind == scope.Revoke || d.Kind == scope.Fold {
		a.Matter = scope.Policies
	}
	for _, is := range m.block.policy.Approvals {
		if is.Matter == a.Matter {
			a = is
		}
	}
	if a.Finalize = m.block.policy.Rules.Finalize; d.Kind == scope.Admit {
		a.Sponsor = d.Sponsor
	}
	return &a
}

// closing is how a decision that has the approvals ends, as a node says: carried, or void.
func (m *Model) closing(p *motion) scope.Ending {
	for i := range m.block.told.Log {
		e := &m.block.told.Log[i]
		if why, void := strings.CutPrefix(e.Reason, scope.Void.String()+": "); void && e.Class == lineage.Closed && e.Mutation == p.mut.ID {
			return scope.Ending{Fate: scope.Void, Reason: why}
		}
	}
	return scope.Ending{Fate: scope.Carried, Revision: m.view.Revision, Succeeded: true}
}

// decided takes from a node which decisions do not take effect as the epoch ends.
func (m *Model) decided() {
	for i := range m.block.told.Log {
		e := &m.block.told.Log[i]
		p := m.docket.motions[votes.MotionID(e.Mutation)]
		if p != nil && p.ending != nil && p.ending.Fate == scope.Carried && e.Class == lineage.Failed && m.dismisses(e) {
			m.unwarned(p.mut.ID)
			p.ending.Fate = scope.Void
			p.ending.Reason = "it had the approvals, but could not take effect with what was decided before: " + e.Reason
		}
	}
}

// superseded takes from a node which motions about policies are closed, since another one takes effect. That is the
// last that an epoch's end does.
func (m *Model) superseded() {
	for i := range m.block.told.Log {
		e := &m.block.told.Log[i]
		why, ok := strings.CutPrefix(e.Reason, scope.Superseded.String()+": ")
		if p := m.docket.motions[votes.MotionID(e.Mutation)]; ok && e.Class == lineage.Closed && p != nil && p.ending == nil && p.mut.Decision.Kind == scope.SetPolicy {
			m.begin(p.mut)
			m.close(p, scope.Ending{Fate: scope.Superseded, Reason: why})
		}
	}
}
