package votes

import (
	"bytes"
	"fmt"
	"math"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// MaxBallot bounds the encoding of a Ballot, in bytes: the longest signature
// known, of ML-DSA-65, fits.
const MaxBallot = 4096

// Ballot is one subject signed by one anchor within a Domain (P5). It stands
// on its own: with the roster at hand, anyone can check it.
type Ballot struct {
	_         struct{} `cbor:",toarray"`
	Format    uint16
	Domain    Domain
	Subject   quorum.Subject
	Anchor    aweigh.AnchorID
	Signature []byte // in ContextBallot, over SigningBytes
}

// SigningBytes is what the anchor signs: the canonical encoding of an array of
// all fields but the signature. Two ballots say the same exactly if their
// SigningBytes are equal.
func (b Ballot) SigningBytes() []byte {
	buf := appendHead(make([]byte, 0, 256), majorArray, 4)
	return b.appendStatement(buf)
}

func (b *Ballot) appendStatement(buf []byte) []byte {
	buf = appendHead(buf, majorUint, uint64(b.Format))
	buf = appendDomain(buf, &b.Domain)
	buf = appendSubject(buf, &b.Subject)
	return appendHash(buf, &b.Anchor)
}

// Encode is the canonical encoding.
func (b Ballot) Encode() []byte {
	buf := appendHead(make([]byte, 0, 256+len(b.Signature)), majorArray, 5)
	buf = b.appendStatement(buf)
	buf = appendHead(buf, majorBytes, uint64(len(b.Signature)))
	return append(buf, b.Signature...)
}

// DecodeBallot reads the form of Encode, which must fill data entirely, and
// keeps nothing of data. The ballot is not checked; that is Keyring.Check's.
// Errors wrap ErrMalformed.
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

// Vote is the ballot as package quorum counts it.
func (b Ballot) Vote() quorum.Vote {
	return quorum.Vote{Subject: b.Subject, Signature: quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature}}
}

// valid says whether the ballot is of a form that could count somewhere.
func (b *Ballot) valid() error {
	if b.Format != Format {
		return fmt.Errorf("%w: ballot format %d, this program knows %d", ErrMalformed, b.Format, Format)
	}
	if !b.Subject.Valid() {
		return fmt.Errorf("%w: subject %v", ErrMalformed, b.Subject)
	}
	return nil
}

// Checked is a ballot that a Keyring has found well-formed, of its domain, and
// signed by one of its anchors. Nothing else makes one, so what takes a Checked
// cannot be given unverified input. The zero Checked holds the zero Ballot.
type Checked struct{ b Ballot }

// Ballot is the ballot that was checked.
func (c Checked) Ballot() Ballot { return c.b }

// Domain is what the ballot is bound to.
func (c *Checked) Domain() Domain { return c.b.Domain }

// Vote is the ballot as package quorum counts it.
func (c Checked) Vote() quorum.Vote { return c.b.Vote() }
