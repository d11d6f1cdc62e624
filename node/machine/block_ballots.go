package machine

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// ballots returns the encoded ballots for a block on top of s: the ballots that are due, and those that came before
// the motions that the block opens (P35).
func (m *Machine) ballots(s *scope.State, bundles []*scope.CheckedBundle) [][]byte {
	p := &m.polls
	all := p.due.all()
	if p.box.Early() > 0 {
		for _, c := range bundles {
			for i := range c.Mutations() {
				id := c.Mutations()[i].ID
				if p.box.On(id) == 0 {
					continue
				}
				err := p.box.Ballots(m.recent, id, func(c votes.CheckedMotionBallot) bool {
					all = append(all, c.Ballot())
					return true
				})
				must.OK(err, "reading the ballot box")
			}
		}
	}
	slices.SortFunc(all, func(a, b votes.MotionBallot) int {
		if c := bytes.Compare(a.Motion[:], b.Motion[:]); c != 0 {
			return c
		}
		if c := bytes.Compare(a.Voter[:], b.Voter[:]); c != 0 {
			return c
		}
		return int(a.Choice) - int(b.Choice)
	})
	all = slices.CompactFunc(all, func(a, b votes.MotionBallot) bool { // a bundle may repeat what opened a motion
		return a.MotionVote == b.MotionVote && a.Voter == b.Voter
	})
	var raws [][]byte
	size, motions := 0, 0
	var last votes.MotionID
	var voters votes.KeySet
	for i := range all {
		b := &all[i]
		if i == 0 || b.Motion != all[i-1].Motion {
			var err error
			voters, err = s.Voters(b.Motion)
			must.OK(err, "reading who may vote")
		}
		if _, ok := voters.Key(b.Voter); !ok {
			continue // the voter was an anchor when its ballot came, before the motion
		}
		have, err := s.HasBallot(b.MotionVote, b.Voter)
		must.OK(err, "reading a ballot")
		if have {
			continue
		}
		raw := b.Encode()
		if b.Motion != last {
			motions, last = motions+1, b.Motion
		}
		if size += len(raw); size > s.Bounds().BallotBytes || motions > s.Bounds().BallotMotions {
			break
		}
		raws = append(raws, raw)
	}
	return raws
}

// ballotsOf returns the IDs of the motion ballots in a block that was checked, or that is about to be checked.
func ballotsOf(b *scope.Block) (ids []aweigh.Hash) {
	for _, raw := range b.Ballots {
		v, err := votes.DecodeMotionBallot(raw)
		if err != nil {
			return ids
		}
		ids = append(ids, v.ID())
	}
	return ids
}
