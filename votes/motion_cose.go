package votes

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/aweigh/aweigh/internal/canon"
)

// Algorithm is a number of the IANA registry "COSE Algorithms".
type Algorithm int64

const (
	EdDSA       Algorithm = -8  // Ed25519 and Ed448: the key determines which (RFC 9053, section 2.2)
	COSEMLDSA65 Algorithm = -49 // ML-DSA-65, pure, with an empty context (RFC 9964)
)

const maxSignature = 3309 // of ML-DSA-65

func (a Algorithm) known() bool { return a == EdDSA || a == COSEMLDSA65 }

// Algorithm is the COSE algorithm of the key's signatures. The error wraps ErrKey.
func (k PublicKey) Algorithm() (Algorithm, error) {
	switch k.Scheme {
	case Ed25519, Ed448:
		return EdDSA, nil
	case MLDSA65:
		return COSEMLDSA65, nil
	}
	_, err := scheme(k.Scheme)
	return 0, err
}

// MotionContentType is the media type of a ballot's payload.
const MotionContentType = "application/vnd.aweigh.motion-ballot+cbor"

// The encoding is a tagged COSE_Sign1 (RFC 9052, section 4.2) with one form for
// each ballot:
//
//	18([ << {1: algorithm, 3: content type, 4: voter} >>, or with "offline": true
//	     {} or {"comment": text},
//	     << [format, network, scope, motion, choice, voter, comment hash] >>,
//	     signature ])
//
// Labels 1, 3 and 4 are alg, content type and kid. The writer and reader below
// know this form alone, as those of Ballot know theirs; package go-cose is the
// oracle in the tests.
const (
	simpleTrue = 7<<5 | 21

	tagSign1 = 6<<5 | 18

	labelAlgorithm   = 1
	labelContentType = 3
	labelKeyID       = 4
	labelComment     = "comment"
	labelOffline     = "offline"

	sigStructure = "Signature1" // RFC 9052, section 4.4
)

func appendText(b []byte, s string) []byte {
	return append(canon.AppendHead(b, canon.MajorText, uint64(len(s))), s...)
}

func appendBytes(b, v []byte) []byte {
	return append(canon.AppendHead(b, canon.MajorBytes, uint64(len(v))), v...)
}

func (b *MotionBallot) appendProtected(buf []byte) []byte {
	labels := uint64(3)
	if b.Offline {
		labels++
	}
	buf = canon.AppendHead(buf, canon.MajorMap, labels)
	buf = canon.AppendHead(buf, canon.MajorUint, labelAlgorithm)
	buf = canon.AppendHead(buf, canon.MajorNegative, uint64(-1-b.Algorithm))
	buf = canon.AppendHead(buf, canon.MajorUint, labelContentType)
	buf = appendText(buf, MotionContentType)
	buf = canon.AppendHead(buf, canon.MajorUint, labelKeyID)
	buf = appendHash(buf, &b.Voter)
	if b.Offline {
		buf = append(appendText(buf, labelOffline), simpleTrue)
	}
	return buf
}

func (b *MotionBallot) appendPayload(buf []byte) []byte {
	buf = canon.AppendHead(buf, canon.MajorArray, 7)
	buf = canon.AppendHead(buf, canon.MajorUint, Format)
	buf = appendHash(buf, &b.Network)
	buf = appendHash(buf, &b.Scope)
	buf = appendHash(buf, &b.Motion)
	buf = canon.AppendHead(buf, canon.MajorUint, uint64(b.Choice))
	buf = appendHash(buf, &b.Voter)
	return appendHash(buf, &b.CommentHash)
}

// SigningBytes are the bytes that the voter signs: the Sig_structure of RFC
// 9052, section 4.4, without external data. It begins with a byte that no
// Context begins with, so it needs none.
func (b MotionBallot) SigningBytes() []byte {
	var room [256]byte
	buf := canon.AppendHead(make([]byte, 0, 384), canon.MajorArray, 4)
	buf = appendText(buf, sigStructure)
	buf = appendBytes(buf, b.appendProtected(room[:0]))
	buf = canon.AppendHead(buf, canon.MajorBytes, 0)
	return appendBytes(buf, b.appendPayload(room[:0]))
}

// Encode is the canonical encoding.
func (b MotionBallot) Encode() []byte {
	var room [256]byte
	buf := append(make([]byte, 0, 320+len(b.Comment)+len(b.Signature)), tagSign1)
	buf = canon.AppendHead(buf, canon.MajorArray, 4)
	buf = appendBytes(buf, b.appendProtected(room[:0]))
	if b.Comment == "" {
		buf = canon.AppendHead(buf, canon.MajorMap, 0)
	} else {
		buf = canon.AppendHead(buf, canon.MajorMap, 1)
		buf = appendText(buf, labelComment)
		buf = appendText(buf, b.Comment)
	}
	buf = appendBytes(buf, b.appendPayload(room[:0]))
	return appendBytes(buf, b.Signature)
}

// DecodeMotionBallot reads the form of Encode, which must fill data entirely,
// and keeps nothing of data. The signature is not checked; CheckMotionBallot
// does. Errors wrap ErrMalformed, and io.ErrUnexpectedEOF where data ends early.
func DecodeMotionBallot(data []byte) (MotionBallot, error) {
	if len(data) > MaxMotionBallot {
		return MotionBallot{}, fmt.Errorf("%w: a motion ballot of %d bytes, at most %d are taken", ErrMalformed, len(data), MaxMotionBallot)
	}
	b, n, err := decodeMotionBallot(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%w: %d bytes after a motion ballot", ErrMalformed, len(data)-n)
	}
	if err != nil {
		return MotionBallot{}, err
	}
	return b, nil
}

// decodeMotionBallot reads the ballot that data begins with, and its length.
func decodeMotionBallot(data []byte) (b MotionBallot, n int, err error) {
	d := decoder{rest: data}
	if first := d.take(1); d.bad || first[0] != tagSign1 {
		d.bad = true
	}
	d.array(4)
	protected := decoder{rest: d.bytes(), bad: d.bad}
	protected.protected(&b)
	d.bad = d.bad || protected.bad || len(protected.rest) > 0
	b.Comment = d.comment()
	payload := decoder{rest: d.bytes(), bad: d.bad}
	payload.motion(&b)
	d.bad = d.bad || payload.bad || len(payload.rest) > 0
	b.Signature = bytes.Clone(d.bytes())
	switch {
	case d.short && len(data) < MaxMotionBallot:
		return b, 0, fmt.Errorf("%w: a motion ballot is cut off: %w", ErrMalformed, io.ErrUnexpectedEOF)
	case d.bad:
		return b, 0, fmt.Errorf("%w: not the canonical encoding of a motion ballot", ErrMalformed)
	}
	return b, len(data) - len(d.rest), b.valid()
}

// protected reads the protected header.
func (d *decoder) protected(b *MotionBallot) {
	labels := d.head(canon.MajorMap, 4)
	d.bad = d.bad || labels < 3
	d.exactly(canon.MajorUint, labelAlgorithm)
	b.Algorithm = -1 - Algorithm(d.head(canon.MajorNegative, math.MaxInt32))
	d.exactly(canon.MajorUint, labelContentType)
	if d.text(uint64(len(MotionContentType))) != MotionContentType {
		d.bad = true
	}
	d.exactly(canon.MajorUint, labelKeyID)
	b.Voter = d.hash()
	if b.Offline = labels == 4; b.Offline {
		if d.text(uint64(len(labelOffline))) != labelOffline {
			d.bad = true
		}
		if last := d.take(1); d.bad || last[0] != simpleTrue {
			d.bad = true
		}
	}
}

// comment reads the unprotected header.
func (d *decoder) comment() string {
	if d.head(canon.MajorMap, 1) == 0 {
		return ""
	}
	if d.text(uint64(len(labelComment))) != labelComment {
		d.bad = true
	}
	s := d.text(MaxComment)
	d.bad = d.bad || s == ""
	return s
}

// motion reads the payload, whose voter must be that of the header.
func (d *decoder) motion(b *MotionBallot) {
	d.array(7)
	d.exactly(canon.MajorUint, Format)
	b.Network, b.Scope, b.Motion = d.hash(), d.hash(), d.hash()
	b.Choice = Choice(d.uint(math.MaxUint8))
	voter := d.hash()
	d.bad = d.bad || voter != b.Voter
	b.CommentHash = d.hash()
}

// exactly reads a head with one argument that may stand there.
func (d *decoder) exactly(major byte, n uint64) { d.bad = d.head(major, n) != n || d.bad }

func (d *decoder) text(limit uint64) string { return string(d.take(d.head(canon.MajorText, limit))) }
