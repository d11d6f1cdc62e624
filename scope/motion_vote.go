package scope

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

const (
	// MaxBallotBytes bounds the ballots on motions in one block.
	MaxBallotBytes = 512 << 10
	// MaxBallotMotions bounds the motions that a block's ballots are about: each may
	// be carried by them.
	MaxBallotMotions = 16
)

// CheckBallots verifies the ballots on motions that a block on top of the state
// carries: none is recorded yet, and all are valid. known reports whether this
// node has verified an encoding. Errors wrap ErrInvalid and the reason, an error
// of package votes, or are those of the store.
func (s *State) CheckBallots(b *Block, known func(votes.MotionBallot) bool) error {
	if len(b.Ballots) == 0 {
		return nil
	}
	size, motions := 0, 0
	var keys votes.KeySet
	var last []byte
	for i, raw := range b.Ballots {
		v, err := votes.DecodeMotionBallot(raw)
		if err == nil {
			err = v.Admissible(s.head.Network, s.head.Scope)
		}
		if err != nil {
			return fmt.Errorf("%w: motion ballot %d: %w", ErrInvalid, i, err)
		}
		place := s.space.voted(v.Motion, v.Voter, v.Choice)
		first := last == nil || !bytes.Equal(last[:len(place)-33], place[:len(place)-33])
		if first {
			motions++
		}
		size += len(raw)
		switch {
		case last != nil && bytes.Compare(last, place) >= 0:
			return fmt.Errorf("%w: motion ballots out of order", ErrInvalid)
		case size > s.bounds.BallotBytes || motions > s.bounds.BallotMotions:
			return fmt.Errorf("%w: motion ballots of %d bytes or more, on %d motions or more, at most %d and %d are taken", ErrInvalid, size, motions, s.bounds.BallotBytes, s.bounds.BallotMotions)
		}
		last = place
		if first {
			if keys, err = s.Voters(v.Motion); err != nil {
				return err
			}
		}
		if have, err := s.HasBallot(v.MotionVote, v.Voter); err != nil {
			return err
		} else if have {
			return fmt.Errorf("%w: %s is on record", ErrInvalid, v)
		}
		if _, may := keys.Key(v.Voter); may && known(v) {
			continue
		}
		if _, err := votes.CheckMotionBallot(v, s.head.Network, s.head.Scope, keys, nil); err != nil {
			return fmt.Errorf("%w: motion ballot %d: %w", ErrInvalid, i, err)
		}
	}
	return nil
}

// Voters are the keys whose ballots on a motion a block on top of the state may
// carry; for a motion that is not on record, all that may vote on one that opens now.
func (s *State) Voters(id votes.MotionID) (votes.KeySet, error) {
	rec, ok, err := s.motion(id)
	if err != nil {
		return votes.KeySet{}, err
	}
	if ok {
		return rec.Motion.Keys()
	}
	e, err := s.Epoch()
	if err != nil {
		return votes.KeySet{}, err
	}
	return e.Electors()
}

// vote closes motions that were carried before and had to wait, records the block's ballots on motions, and
// closes those that they decide (P31). All ballots of a block on one motion count together.
func (x *execution) vote() error {
	if err := x.carryDue(); err != nil {
		return err
	}
	for rest := x.block.Ballots; len(rest) > 0; {
		var on []votes.CheckedMotionBallot
		for len(rest) > 0 {
			c, err := votes.StoredMotionBallot(rest[0])
			if err != nil || len(on) > 0 && c.Ballot().Motion != on[0].Ballot().Motion {
				break
			}
			on, rest = append(on, c), rest[1:]
		}
		if len(on) == 0 {
			return nil // a quorum accepted the block, so every node must
		}
		if err := x.voteOn(on); err != nil {
			return err
		}
	}
	return nil
}

// voteOn records ballots on one motion. Ballots that are not of its electorate,
// or recorded already, have no effect and leave no record.
func (x *execution) voteOn(on []votes.CheckedMotionBallot) error {
	rec, ok, err := x.motion(on[0].Ballot().Motion)
	if err != nil || !ok {
		return err
	}
	e, err := rec.Motion.Electorate()
	if err != nil {
		return err
	}
	if rec.Ending == nil && rec.Due == 0 && rec.Motion.Deadline <= x.block.Header.Time { // expireMotions closes so many in a block
		err := x.about(&rec.Motion)
		if err == nil {
			err = x.close(&rec, Ending{Fate: MotionExpired})
		}
		if err != nil {
			return err
		}
	}
	late, fresh := rec.Ending != nil || rec.Due > 0, false
	for i := range on {
		v := on[i].Ballot()
		if _, voter := e.Of(v.Voter); !voter {
			continue
		}
		k := x.space.voted(v.Motion, v.Voter, v.Choice)
		if _, have, err := x.r.Get(k); err != nil || have {
			if err != nil {
				return err
			}
			continue
		}
		fresh = true
		x.record(k, &v, late)
		if err := x.contradiction(&rec.Motion, &v); err != nil {
			return err
		}
	}
	if late || !fresh {
		return nil
	}
	return x.settle(&rec)
}

// settle closes a motion that is decided.
func (x *execution) settle(rec *motionRecord) error {
	t, err := x.view.tally(&rec.Motion)
	if err != nil {
		return err
	}
	if err := x.about(&rec.Motion); err != nil {
		return err
	}
	switch t.Verdict {
	case votes.Carried:
		waits := x.next.head.Docket.Due > 0 && rec.Motion.Approval.ofKeys() // behind those before it
		if !waits {
			if waits, err = x.carry(rec); err != nil {
				return err
			}
		}
		if waits {
			return x.await(rec)
		}
		return nil
	case votes.Rejected:
		return x.close(rec, Ending{Fate: Rejected})
	}
	return nil
}

// approve records that the author of a mutation approves a decision, as by a ballot.
func (x *execution) approve(rec *motionRecord, m *CheckedMutation) (failure, err error) {
	id := rec.Motion.ID()
	e, err := rec.Motion.Electorate()
	if err != nil {
		return nil, err
	}
	if _, voter := e.Of(m.Author); !voter {
		return errors.New("this anchor had no weight when the decision was proposed, so it has no vote on it"), nil
	}
	k := x.space.voted(id, m.Author, votes.Approve)
	if _, have, err := x.r.Get(k); err != nil || have {
		return errors.New("this anchor has approved it already"), err
	}
	if _, have, err := x.r.Get(x.space.voted(id, m.Author, votes.Reject)); err != nil || have {
		return errors.New("this anchor has rejected it already"), err
	}
	h := &x.block.Header
	x.begin(&CheckedMutation{ID: id, Mutation: Mutation{Author: m.Author, Justification: m.Justification, Caller: m.Caller}})
	x.setRecord(k, canon.Encode(Recorded{Height: h.Height, Time: h.Time, Entry: x.nextEntry(), By: m.Author}))
	x.enter(lineage.Entry{Class: lineage.Voted, Reason: votes.Approve.String(), Posterior: m.ID})
	return nil, x.settle(rec)
}

// record writes one ballot down.
func (x *execution) record(k []byte, v *votes.MotionBallot, late bool) {
	h := &x.block.Header
	x.begin(&CheckedMutation{ID: v.Motion, Mutation: Mutation{Author: v.Voter, Justification: v.Comment}})
	x.setRecord(k, canon.Encode(Recorded{Ballot: v.Encode(), Height: h.Height, Time: h.Time, Entry: x.nextEntry(), Late: late}))
	class := lineage.Voted
	if late {
		class = lineage.Reconcile // P34
	}
	x.enter(lineage.Entry{Class: class, Reason: v.Choice.String(), Posterior: v.ID()})
}

// contradiction records a fault of a voter that cast the opposite vote before (P33, P36, P51).
func (x *execution) contradiction(mo *Motion, v *votes.MotionBallot) error {
	raw, ok, err := x.r.Get(x.space.voted(v.Motion, v.Voter, v.Choice.Other()))
	if err != nil || !ok {
		return err
	}
	var other Recorded
	if err := canon.Decode(raw, &other); err != nil {
		return fmt.Errorf("%w: a ballot on motion %s: %w", ErrCorrupt, v.Motion.Short(), err)
	}
	if len(other.Ballot) == 0 {
		return nil // approved by a mutation: both are void, but no two ballots prove it
	}
	before, err := votes.DecodeMotionBallot(other.Ballot)
	if err != nil {
		return fmt.Errorf("%w: a ballot on motion %s: %w", ErrCorrupt, v.Motion.Short(), err)
	}
	proof, err := votes.NewMotionEquivocation(before, *v)
	if err != nil {
		return fmt.Errorf("%w: two ballots on motion %s: %w", ErrCorrupt, v.Motion.Short(), err)
	}
	named := aweigh.Sum([]byte("aweigh/motion-proof/1"), proof.Encode())
	if err := x.avoid(mo, v.Voter, named); err != nil {
		return err
	}
	if _, seated := x.epoch.Roster.Seat(aweigh.AnchorID(v.Voter)); !seated {
		return nil // an approver, or an anchor that left: no trust to lose here
	}
	h := &x.block.Header
	return x.convict(trust.Evidence{Anchor: aweigh.AnchorID(v.Voter), Kind: trust.Equivocated, Epoch: h.Epoch, Height: h.Height, Proof: named})
}
