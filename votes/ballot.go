package votes

import (
	"bytes"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
)

// MaxBallot bounds the encoding of a Ballot, in bytes: the longest signature
// known, of ML-DSA-65, fits.
const MaxBallot = 4096

// Ballot is one subject signed by one anchor within a Domain (P5). It can be checked by itself, with the roster.
type Ballot struct {
	_         struct{} `cbor:",toarray"`
	Format    uint16
	Domain    Domain
	Subject   quorum.Subject
	Anchor    aweigh.AnchorID
	Signature []byte // in ContextBallot, over SigningBytes
}

// SigningBytes returns the bytes that the anchor signs: the canonical encoding of an array of all fields except the
// signature. Two ballots state the same if and only if their SigningBytes are equal.
func (b Ballot) SigningBytes() []byte {
	buf := canon.AppendHead(make([]byte, 0, 256), canon.MajorArray, 4)
	return b.appendStatement(buf)
}

func (b *Ballot) appendStatement(buf []byte) []byte {
	buf = canon.AppendHead(buf, canon.MajorUint, uint64(b.Format))
	buf = appendDomain(buf, &b.Domain)
	buf = appendSubject(buf, &b.Subject)
	return appendHash(buf, &b.Anchor)
}

// Encode returns the canonical encoding.
func (b Ballot) Encode() []byte {
	buf := canon.AppendHead(make([]byte, 0, 256+len(b.Signature)), canon.MajorArray, 5)
	buf = b.appendStatement(buf)
	buf = canon.AppendHead(buf, canon.MajorBytes, uint64(len(b.Signature)))
	return append(buf, b.Signature...)
}

// DecodeBallot reads the form of Encode, which must fill data entirely, and keeps nothing of data. It does not check
// the ballot; see Keyring.Check. Errors wrap ErrMalformed.
func DecodeBallot(data []byte) (Ballot, error) {
	if len(data) > MaxBallot {
		return Ballot{}, fmt.Errorf("%w: a ballot of %d bytes, at most %d are taken", ErrMalformed, len(data), MaxBallot)
	}
	d := decoder{rest: data}
	d.array(5)
	b := Ballot{
		Format:    uint16(d.uint(math.MaxUint16)),
		Domain:    d.domain(),
		Subject:   d.subject(),
		Anchor:    d.hash(),
		Signature: bytes.Clone(d.bytes()),
	}
	if d.bad || len(d.rest) > 0 {
		return Ballot{}, fmt.Errorf("%w: not the canonical encoding of a ballot", ErrMalformed)
	}
	return b, nil
}

// Vote returns the ballot in the form that package quorum counts.
func (b Ballot) Vote() quorum.Vote {
	return quorum.Vote{Subject: b.Subject, Signature: quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature}}
}

// valid returns an error if the ballot has a form that can count nowhere.
func (b *Ballot) valid() error {
	if b.Format != Format {
		return fmt.Errorf("%w: ballot format %d, this program knows %d", ErrMalformed, b.Format, Format)
	}
	if !b.Subject.Valid() {
		return fmt.Errorf("%w: subject %v", ErrMalformed, b.Subject)
	}
	return nil
}

// Checked is a ballot that a Keyring has found well-formed, of its domain, and signed by one of its anchors. Only a
// Keyring makes one, so a function that takes a Checked cannot be given unverified input. The zero Checked holds the
// zero Ballot.
type Checked struct{ b Ballot }

// Ballot returns the ballot that was checked.
func (c Checked) Ballot() Ballot { return c.b }

// Domain returns the domain that the ballot is bound to.
func (c *Checked) Domain() Domain { return c.b.Domain }

// Vote returns the ballot in the form that package quorum counts.
func (c Checked) Vote() quorum.Vote { return c.b.Vote() }
