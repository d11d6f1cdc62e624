package scope

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Attended holds ballots to finalize one earlier block of the epoch that no earlier block recorded (P27). They change
// no outcome; they record which anchors took part.
type Attended struct {
	_          struct{} `cbor:",toarray"`
	Height     aweigh.Height
	Signatures []quorum.Signature // in the order of anchors
}

// MaxAttendedBytes bounds the signatures that one block reconciles.
const MaxAttendedBytes = 512 << 10

// Open visits the recent blocks of which the state lacks the ballot of an
// anchor: the subjects to finalize, oldest first, with their heights.
func (s *State) Open(use func(at aweigh.Height, subject quorum.Subject, lacks func(aweigh.AnchorID) bool)) error {
	e, err := s.Epoch()
	if err != nil {
		return err
	}
	if s.head.Epoch != e.Number { // the epoch has no block yet, or the next has begun
		return nil
	}
	t, err := s.count()
	if err != nil {
		return err
	}
	for i := range t.recent {
		r := &t.recent[i]
		if r.full(len(t.counts)) {
			continue
		}
		at := s.head.Height - aweigh.Height(len(t.recent)-1-i)
		use(at, quorum.Subject{Kind: e.Policy.Rules.Mode.Attends(), View: r.view, Block: r.block}, func(a aweigh.AnchorID) bool {
			seat, ok := e.Roster.Seat(a)
			return ok && !r.has(seat)
		})
	}
	return nil
}

// CheckAttended verifies the ballots that a block on top of the state
// reconciles: none is recorded yet, and all are valid. known reports whether
// this node has verified a vote. Errors wrap ErrInvalid.
func (s *State) CheckAttended(b *Block, k *votes.Keyring, known func(quorum.Vote) bool) error {
	if len(b.Attended) == 0 {
		return nil
	}
	t, err := s.count()
	if err != nil {
		return err
	}
	e, err := s.Epoch()
	if err != nil {
		return err
	}
	size := 0
	for i := range b.Attended {
		a := &b.Attended[i]
		r := t.at(a.Height, s.head.Height)
		switch {
		case r == nil || s.head.Epoch != e.Number:
			return fmt.Errorf("%w: ballots on block %d in block %d", ErrInvalid, a.Height, b.Header.Height)
		case i > 0 && a.Height <= b.Attended[i-1].Height || len(a.Signatures) == 0:
			return fmt.Errorf("%w: ballots reconciled out of order", ErrInvalid)
		}
		for j := range a.Signatures {
			sig := &a.Signatures[j]
			seat, ok := e.Roster.Seat(sig.Anchor)
			if !ok || r.has(seat) || j > 0 && bytes.Compare(a.Signatures[j-1].Anchor[:], sig.Anchor[:]) >= 0 {
				return fmt.Errorf("%w: a ballot of %s on block %d, which is out of order, on record or of no anchor", ErrInvalid, sig.Anchor.Short(), a.Height)
			}
			if size += len(sig.Bytes); size > s.bounds.AttendedBytes {
				return fmt.Errorf("%w: more than %d bytes of ballots to reconcile", ErrInvalid, s.bounds.AttendedBytes)
			}
			v := quorum.Vote{Subject: quorum.Subject{Kind: e.Policy.Rules.Mode.Attends(), View: r.view, Block: r.block}, Signature: *sig}
			if known(v) {
				continue
			}
			if err := k.CheckVote(v); err != nil {
				return fmt.Errorf("%w: a ballot on block %d: %w", ErrInvalid, a.Height, err)
			}
		}
	}
	return nil
}

// attend records the ballots that the block reconciles.
func (x *execution) attend() {
	head := x.next.head.Height
	for i := range x.block.Attended {
		a := &x.block.Attended[i]
		r := x.tally.at(a.Height, head)
		if r == nil {
			continue // a quorum accepted the block, so every node must
		}
		for j := range a.Signatures {
			if seat, ok := x.epoch.Roster.Seat(a.Signatures[j].Anchor); ok && !r.has(seat) {
				x.tally.record(x.bounds, seat, a.Height, head, x.block.Header.Height)
				r = x.tally.at(a.Height, head)
			}
		}
	}
}
