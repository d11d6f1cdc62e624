package model

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// bothWays makes an approver void whose ballots of both choices are on record of a motion.
func (m *Model) bothWays(p *motion, voter aweigh.Hash) {
	var two []votes.MotionBallot
	for _, b := range p.ballots {
		if v, err := votes.DecodeMotionBallot(b.Ballot); err == nil && b.voter == voter {
			two = append(two, v)
		}
	}
	at := slices.IndexFunc(p.Approval.Approvers, func(a scope.Approver) bool { return a.Key.ID() == voter })
	if len(two) < 2 || at < 0 || m.void[voter] != nil {
		return
	}
	proof, err := votes.NewMotionEquivocation(two[0], two[1])
	if err != nil {
		m.block.differ = append(m.block.differ, "two ballots that prove nothing: "+err.Error())
		return
	}
	a, h := &p.Approval.Approvers[at], &m.block.Header
	m.void[voter] = &scope.Voided{
		Name: a.Name, Key: a.Key, Motion: p.mut.ID, Height: h.Height, Time: h.Time,
		Proof: aweigh.Sum([]byte("aweigh/motion-proof/1"), proof.Encode()),
	}
}

// voidOf are the approvers of an approval that are void, and whether one of them is required: then no motion opens,
// but one on the readmission of an approver. lost is their weight.
func (m *Model) voidOf(a *scope.Approval, r *scope.Roster) (all []aweigh.Hash, lost uint64, required bool) {
	for i := range a.Approvers {
		p := &a.Approvers[i]
		if m.void[p.Key.ID()] == nil {
			continue
		}
		all = append(all, p.Key.ID())
		if !a.StepUp {
			w := r.Weights.Total() * uint64(p.Share) / 1_000_000
			lost, required = lost+w, required || p.Required || w == 0
		}
	}
	return all, lost, required
}

// readmitted takes up the decisions that make approvers voters again, as the epoch ends.
func (m *Model) readmitted() {
	if m.block.Header.Next.IsZero() {
		return
	}
	for _, mut := range m.returns {
		dropped := func(e lineage.Entry) bool { return e.Class == lineage.Failed && e.Mutation == mut.ID }
		if !slices.ContainsFunc(m.block.told.Log, dropped) {
			delete(m.void, mut.Decision.Subject)
		}
	}
	m.returns = nil
}

// compareVoid compares the approvers that are void.
func (m *Model) compareVoid(d *Differences, s *scope.State) {
	got, err := s.Voided()
	if d.fail(err, "void approvers") {
		return
	}
	var want []scope.Voided
	for _, v := range m.void { // order-free: sorted below
		want = append(want, *v)
	}
	slices.SortFunc(want, func(a, b scope.Voided) int {
		x, y := a.Key.ID(), b.Key.ID()
		return bytes.Compare(x[:], y[:])
	})
	d.look(bytes.Equal(canon.Encode(got), canon.Encode(want)), "void approvers %+v, want %+v", got, want)
}
