package votes

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// Equivocation proves that an anchor contradicted itself (P36): two ballots of one anchor in one domain whose subjects
// conflict. It can be verified alone. First is the ballot with the lesser SigningBytes, so that two statements make
// one proof. A liar may sign one statement in several ways, or make many conflicting statements; so penalties should
// be counted per anchor, epoch and view.
type Equivocation struct {
	_             struct{} `cbor:",toarray"`
	First, Second Ballot
}

// NewEquivocation returns the proof of two ballots. It returns ErrMalformed if they prove nothing. It does not verify
// signatures.
func NewEquivocation(a, b Ballot) (Equivocation, error) {
	e := Equivocation{First: a, Second: b}
	if bytes.Compare(a.SigningBytes(), b.SigningBytes()) > 0 {
		e.First, e.Second = b, a
	}
	return e, e.valid()
}

// valid returns an error unless the proof has its one form and proves a fault, provided that the signatures hold.
func (e *Equivocation) valid() error {
	for _, b := range []*Ballot{&e.First, &e.Second} {
		if err := b.valid(); err != nil {
			return err
		}
	}
	switch {
	case e.First.Anchor != e.Second.Anchor:
		return fmt.Errorf("%w: ballots of two anchors prove no fault", ErrMalformed)
	case e.First.Domain != e.Second.Domain:
		return fmt.Errorf("%w: ballots of two domains prove no fault", ErrMalformed)
	case !e.First.Subject.Conflicts(e.Second.Subject):
		return fmt.Errorf("%w: %v and %v do not conflict", ErrMalformed, e.First.Subject, e.Second.Subject)
	case bytes.Compare(e.First.SigningBytes(), e.Second.SigningBytes()) > 0:
		return fmt.Errorf("%w: ballots of a proof out of order", ErrMalformed)
	}
	return nil
}

// Check verifies the proof with the keyring of its domain. Errors are those of
// Keyring.Check.
func (e Equivocation) Check(k *Keyring) error {
	if err := e.valid(); err != nil {
		return err
	}
	if _, err := k.Check(e.First); err != nil {
		return err
	}
	_, err := k.Check(e.Second)
	return err
}

// Anchor returns the anchor at fault.
func (e Equivocation) Anchor() aweigh.AnchorID { return e.First.Anchor }

// Encode is the canonical encoding.
func (e Equivocation) Encode() []byte { return canon.Encode(e) }

// DecodeEquivocation reads the form of Encode of a proof that NewEquivocation
// could have made. Errors wrap ErrMalformed.
func DecodeEquivocation(data []byte) (Equivocation, error) {
	var e Equivocation
	if len(data) > 2*MaxBallot {
		return Equivocation{}, fmt.Errorf("%w: a proof of %d bytes, at most %d are taken", ErrMalformed, len(data), 2*MaxBallot)
	}
	if err := canon.Decode(data, &e); err != nil {
		return Equivocation{}, fmt.Errorf("%w: equivocation: %w", ErrMalformed, err)
	}
	if err := e.valid(); err != nil {
		return Equivocation{}, err
	}
	return e, nil
}
