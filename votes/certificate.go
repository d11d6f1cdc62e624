package votes

import (
	"fmt"

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
