package votes

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// Certificate is a quorum.Certificate with the domain that its signers meant, so that files, receipts and other
// programs can hold it.
type Certificate struct {
	_          struct{} `cbor:",toarray"`
	Format     uint16
	Domain     Domain
	Subject    quorum.Subject
	Signatures []quorum.Signature // ordered by anchor
}

// Certificate returns c with the keyring's domain. It does not check c.
func (k *Keyring) Certificate(c quorum.Certificate) Certificate {
	return Certificate{Format: Format, Domain: k.domain, Subject: c.Subject, Signatures: c.Signatures}
}

// Quorum returns the certificate in the form of package quorum, without the domain.
func (c Certificate) Quorum() quorum.Certificate {
	return quorum.Certificate{Subject: c.Subject, Signatures: c.Signatures}
}

// Check verifies the certificate with the keyring of its domain. Errors are
// those of Keyring.Check and Keyring.CheckCertificate.
func (c Certificate) Check(k *Keyring) error {
	if c.Format != Format {
		return fmt.Errorf("%w: certificate format %d, this program knows %d", ErrMalformed, c.Format, Format)
	}
	if err := k.domain.Admits(c.Domain); err != nil {
		return err
	}
	return k.CheckCertificate(c.Quorum())
}

// CheckCertificate verifies a certificate of this domain (P6): a valid subject of a kind that has a rule, signed by
// distinct anchors with weight, in their order, that meet the rule, every signature valid. Cheap checks come first.
// The error wraps ErrMalformed, ErrNotInRoster, ErrTooLight or ErrForged.
func (k *Keyring) CheckCertificate(c quorum.Certificate) error {
	if !k.rules.Allows(c.Subject) || c.Subject.Kind == quorum.Nullify && k.rules.Mode == quorum.Fast {
		return fmt.Errorf("%w: certificate of %v", ErrMalformed, c.Subject)
	}
	var weight uint64
	for i := range c.Signatures {
		s := &c.Signatures[i]
		if i > 0 && !before(&c.Signatures[i-1].Anchor, &s.Anchor) {
			return fmt.Errorf("%w: signers are not distinct and in order", ErrMalformed)
		}
		w := k.weights.Of(s.Anchor)
		if w == 0 {
			return fmt.Errorf("%w: %s has no weight", ErrNotInRoster, s.Anchor.Short())
		}
		weight += w
	}
	if rule := k.rules.For(c.Subject.Kind); !rule.Met(weight, k.weights.Total(), len(c.Signatures)) {
		return fmt.Errorf("%w: %d anchors of weight %d of %d, %s asks %s",
			ErrTooLight, len(c.Signatures), weight, k.weights.Total(), c.Subject.Kind, rule)
	}
	statement := k.statement(&c.Subject)
	for i := range c.Signatures {
		if err := k.signed(statement, &c.Signatures[i]); err != nil {
			return err
		}
	}
	return nil
}

// CheckFinal verifies a certificate that makes a block of a view final: a finalization, or in mode fast a notarization
// that weighs enough (P56). Errors are those of CheckCertificate.
func (k *Keyring) CheckFinal(c quorum.Certificate, view aweigh.View, block aweigh.Hash) error {
	want := quorum.Subject{Kind: quorum.Finalize, View: view, Block: block}
	if c.Subject.Kind == quorum.Notarize && k.rules.Mode == quorum.Fast {
		want.Kind = quorum.Notarize
	}
	if c.Subject != want {
		return fmt.Errorf("%w: a certificate of %s where %s is needed", ErrMalformed, c.Subject, want)
	}
	if !k.Decides(c) {
		return fmt.Errorf("%w: a notarization of %d anchors, which does not decide", ErrTooLight, len(c.Signatures))
	}
	return k.CheckCertificate(c)
}

// Decides reports whether a certificate is one that makes its block final, if it holds.
func (k *Keyring) Decides(c quorum.Certificate) bool { return k.rules.Decides(c, k.weights, k.fast) }

// Encode is the canonical encoding.
func (c Certificate) Encode() []byte { return canon.Encode(c) }

// DecodeCertificate reads the form of Encode. It does not check the certificate. Errors wrap ErrMalformed. Callers
// bound the length of data.
func DecodeCertificate(data []byte) (Certificate, error) {
	var c Certificate
	if err := canon.Decode(data, &c); err != nil {
		return Certificate{}, fmt.Errorf("%w: certificate: %w", ErrMalformed, err)
	}
	return c, nil
}
