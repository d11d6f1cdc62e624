package votes

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// MotionEquivocation proves that a voter chose both things on one motion (P33,
// P36). It verifies alone, with the voter's key. Comments are left out of it.
type MotionEquivocation struct{ Approve, Reject MotionBallot }

// NewMotionEquivocation takes two ballots in any order. It fails with
// ErrMalformed if they prove nothing; it does not verify signatures.
func NewMotionEquivocation(a, b MotionBallot) (MotionEquivocation, error) {
	if a.Choice == Reject {
		a, b = b, a
	}
	e := MotionEquivocation{a.WithoutComment(), b.WithoutComment()}
	return e, e.valid()
}

func (e *MotionEquivocation) valid() error {
	for _, b := range []*MotionBallot{&e.Approve, &e.Reject} {
		if err := b.valid(); err != nil {
			return err
		}
	}
	want := e.Approve.MotionVote
	want.Choice = Reject
	if e.Approve.Choice != Approve || e.Reject.MotionVote != want || e.Approve.Voter != e.Reject.Voter {
		return fmt.Errorf("%w: %s and %s prove no fault", ErrMalformed, e.Approve, e.Reject)
	}
	if e.Approve.Comment != "" || e.Reject.Comment != "" {
		return fmt.Errorf("%w: a proof with comments", ErrMalformed)
	}
	return nil
}

// Voter is the one at fault.
func (e MotionEquivocation) Voter() aweigh.Hash { return e.Approve.Voter }

// Motion is the motion on which the voter contradicted itself.
func (e MotionEquivocation) Motion() MotionID { return e.Approve.Motion }

// Check verifies the proof. Errors are those of CheckMotionBallot.
func (e MotionEquivocation) Check(network aweigh.NetworkID, scope aweigh.ScopeID, voters Voters, verify Verifier) error {
	if err := e.valid(); err != nil {
		return err
	}
	for _, b := range []MotionBallot{e.Approve, e.Reject} {
		if _, err := CheckMotionBallot(b, network, scope, voters, verify); err != nil {
			return err
		}
	}
	return nil
}

// twoBallots is the encoding: an array of the two ballots' own, as byte strings.
type twoBallots struct {
	_               struct{} `cbor:",toarray"`
	Approve, Reject []byte
}

// Encode is the canonical encoding.
func (e MotionEquivocation) Encode() []byte {
	return canon.Encode(twoBallots{Approve: e.Approve.Encode(), Reject: e.Reject.Encode()})
}

// DecodeMotionEquivocation reads the form of Encode of a proof that
// NewMotionEquivocation could have made. Errors wrap ErrMalformed.
func DecodeMotionEquivocation(data []byte) (e MotionEquivocation, err error) {
	var raw twoBallots
	if len(data) > 2*MaxMotionBallot {
		return e, fmt.Errorf("%w: a proof of %d bytes, at most %d are taken", ErrMalformed, len(data), 2*MaxMotionBallot)
	}
	if err := canon.Decode(data, &raw); err != nil {
		return e, fmt.Errorf("%w: motion equivocation: %w", ErrMalformed, err)
	}
	if e.Approve, err = DecodeMotionBallot(raw.Approve); err != nil {
		return MotionEquivocation{}, err
	}
	if e.Reject, err = DecodeMotionBallot(raw.Reject); err != nil {
		return MotionEquivocation{}, err
	}
	if err := e.valid(); err != nil {
		return MotionEquivocation{}, err
	}
	return e, nil
}
