package scope

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Finality is a block's header with the certificate that makes it final: its
// own finalization, or that of a descendant together with the headers between
// (P16).
type Finality struct {
	_           struct{} `cbor:",toarray"`
	Header      Header
	Descendants []Header // from the block's child to the block finalized, if not itself
	Certificate quorum.Certificate
}

// MaxDescendants is how far the certificate may be from the block.
const MaxDescendants = 1024

// CheckIn verifies the finality of a block of an epoch, as Check does.
func (f Finality) CheckIn(e *Epoch) error {
	k, err := e.Keyring()
	if err != nil {
		return err
	}
	return f.Check(k)
}

// Check verifies the finality of a block of the keyring's epoch. Errors wrap
// ErrInvalid, and the one of package votes if the certificate does not hold.
func (f Finality) Check(k *votes.Keyring) error {
	if len(f.Descendants) > MaxDescendants {
		return fmt.Errorf("%w: a certificate %d blocks away, at most %d are taken", ErrInvalid, len(f.Descendants), MaxDescendants)
	}
	last, hash := f.Header, f.Header.Hash()
	if last.Format != Format {
		return fmt.Errorf("%w: block format %d, this program knows %d", ErrInvalid, last.Format, Format)
	}
	if err := k.Domain().Admits(last.Domain()); err != nil {
		return fmt.Errorf("%w: the finality of a block: %w", ErrInvalid, err)
	}
	for i, h := range f.Descendants {
		if h.Parent != hash || h.Height != last.Height+1 || h.Domain() != last.Domain() || h.Format != Format {
			return fmt.Errorf("%w: descendant %d does not follow", ErrInvalid, i)
		}
		last, hash = h, h.Hash()
	}
	if err := k.CheckFinal(f.Certificate, last.View, hash); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Signer is an anchor that signed for a block, with its weight then.
type Signer struct {
	Anchor aweigh.AnchorID
	Name   string // that the roster gives it
	Weight uint64
}

// Attestation lists the anchors that signed a final block.
type Attestation struct {
	Block   aweigh.Hash
	Epoch   aweigh.Epoch
	Height  aweigh.Height
	Time    aweigh.Instant
	Signers []Signer
	Weight  uint64 // of the signers
	Total   uint64 // of the roster
	Needed  uint64 // least weight of signers that makes a block final so
	// OneRound: votes to notarize made the block final (P56).
	OneRound bool
}

// attestation lists the signers of a certificate that was checked.
func (f *Finality) attestation(e *Epoch) Attestation {
	r, rules := e.Roster, e.Policy.Rules
	a := Attestation{
		Block: f.Header.Hash(), Epoch: f.Header.Epoch, Height: f.Header.Height, Time: f.Header.Time, Total: r.Weights.Total(),
		Needed: rules.Finalize.Threshold(r.Weights.Total()), OneRound: f.Certificate.Subject.Kind == quorum.Notarize,
	}
	if a.OneRound {
		a.Needed = rules.FastBounds(r.Weights).Final
	}
	for i := range f.Certificate.Signatures {
		id := f.Certificate.Signatures[i].Anchor
		s := Signer{Anchor: id, Weight: r.Weights.Of(id)}
		for _, anchor := range r.Anchors {
			if anchor.Key.ID() == id {
				s.Name = anchor.Name
			}
		}
		a.Signers = append(a.Signers, s)
		a.Weight += s.Weight
	}
	return a
}
