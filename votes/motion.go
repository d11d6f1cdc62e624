package votes

import (
	"fmt"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
)

// MotionID names a motion: the identity of the mutation that opened it (P28).
type MotionID = aweigh.Hash

// Choice is a vote on a motion.
type Choice uint8

const (
	Approve Choice = 1
	Reject  Choice = 2
)

// Valid reports whether c is one of the two choices.
func (c Choice) Valid() bool { return c == Approve || c == Reject }

// Other returns the opposite choice.
func (c Choice) Other() Choice { return Approve + Reject - c }

// String returns "approve" or "reject".
func (c Choice) String() string {
	switch c {
	case Approve:
		return "approve"
	case Reject:
		return "reject"
	}
	return fmt.Sprintf("choice(%d)", uint8(c))
}

// ParseChoice reads the form of Choice.String.
func ParseChoice(s string) (Choice, error) {
	for _, c := range []Choice{Approve, Reject} {
		if s == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%w: a choice is %s or %s, not %q", ErrMalformed, Approve, Reject, s)
}

// MaxComment bounds the comment of a MotionBallot, in bytes of UTF-8.
const MaxComment = 1024

// MaxMotionBallot bounds the encoding of a MotionBallot, in bytes: the longest
// signature known, of ML-DSA-65, and the longest comment fit.
const MaxMotionBallot = 5120

// MotionVote is a vote on one motion. It names no epoch, view or time, so it can be signed on a machine without a
// network, before the motion opens or days later (P29).
type MotionVote struct {
	Network aweigh.NetworkID
	Scope   aweigh.ScopeID
	Motion  MotionID
	Choice  Choice
}

// MotionBallot is a MotionVote signed by one voter, an anchor or an approver. It is sent as a COSE_Sign1 message (RFC
// 9052), which generic tools can check.
type MotionBallot struct {
	MotionVote
	Voter       aweigh.Hash // the ID of the key
	CommentHash aweigh.Hash // zero: no comment
	Algorithm   Algorithm   // of the signature; follows from the key
	Offline     bool        // it was signed away from any node, according to its signer; this affects nothing
	Signature   []byte      // over SigningBytes

	// Comment travels beside the signed content: valid UTF-8 of at most MaxComment
	// bytes whose commentOf is CommentHash, or empty where it was left out.
	Comment string
}

// commentOf is the hash of a comment that a ballot signs: its SHA-256, or zero
// for none. Short comments can be guessed from it.
func commentOf(comment string) aweigh.Hash {
	if comment == "" {
		return aweigh.Hash{}
	}
	return aweigh.Sum([]byte(comment))
}

// ID is the identity of the ballot's content: of network, scope, motion, choice
// and voter alone. A voter may sign one choice many times, with other comments
// and (a liar) other signatures: all of these are one ballot, so that a voter
// has at most two on a motion, and two are an equivocation (P33).
func (b MotionBallot) ID() aweigh.Hash { return b.MotionVote.ID(b.Voter) }

// ID is the identity of a voter's ballot for v.
func (v MotionVote) ID(voter aweigh.Hash) aweigh.Hash {
	return aweigh.Sum([]byte("aweigh/motion-ballot/1\x00"), v.Network[:], v.Scope[:], v.Motion[:], []byte{byte(v.Choice)}, voter[:])
}

// WithoutComment is the ballot with its comment left out. Its content and its
// signature stay valid.
func (b MotionBallot) WithoutComment() MotionBallot {
	b.Comment = ""
	return b
}

// String is like "approve of motion 4bf5122f by 9c56cc51".
func (b MotionBallot) String() string {
	return fmt.Sprintf("%s of motion %s by %s", b.Choice, b.Motion.Short(), b.Voter.Short())
}

// valid reports whether the ballot is of a form that could count somewhere.
// Encode writes every valid ballot in a form that DecodeMotionBallot takes.
func (b *MotionBallot) valid() error {
	switch {
	case !b.Choice.Valid():
		return fmt.Errorf("%w: %s", ErrMalformed, b.Choice)
	case !b.Algorithm.known():
		return fmt.Errorf("%w: COSE algorithm %d; %d and %d are taken", ErrMalformed, b.Algorithm, EdDSA, COSEMLDSA65)
	case len(b.Signature) == 0 || len(b.Signature) > maxSignature:
		return fmt.Errorf("%w: a signature of %d bytes", ErrMalformed, len(b.Signature))
	case b.Comment == "":
		return nil
	case len(b.Comment) > MaxComment:
		return fmt.Errorf("%w: a comment of %d bytes, at most %d are taken", ErrMalformed, len(b.Comment), MaxComment)
	case !utf8.ValidString(b.Comment):
		return fmt.Errorf("%w: a comment that is not UTF-8", ErrMalformed)
	case commentOf(b.Comment) != b.CommentHash:
		return fmt.Errorf("%w: a comment that was not signed", ErrMalformed)
	}
	return nil
}
