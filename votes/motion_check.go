package votes

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

// SignMotionBallot makes a voter's ballot, with a comment or "". The signature
// is verified before it is handed out, wherever it came from. The error wraps
// that of the signer, ErrKey, ErrMalformed, or ErrForged if the signer signed
// something else or with another key.
func SignMotionBallot(s Signer, v MotionVote, comment string) (MotionBallot, error) {
	return signMotionBallot(s, MotionBallot{MotionVote: v, Comment: comment})
}

// SignMotionBallotOffline is SignMotionBallot away from any node, which the ballot records.
func SignMotionBallotOffline(s Signer, v MotionVote, comment string) (MotionBallot, error) {
	return signMotionBallot(s, MotionBallot{MotionVote: v, Comment: comment, Offline: true})
}

// signMotionBallot sets the signer of a ballot, and signs it.
func signMotionBallot(s Signer, b MotionBallot) (MotionBallot, error) {
	key := s.Public()
	algorithm, err := key.Algorithm()
	if err != nil {
		return MotionBallot{}, err
	}
	b.Voter, b.CommentHash, b.Algorithm = key.ID(), commentOf(b.Comment), algorithm
	message := b.SigningBytes()
	if b.Signature, err = s.SignMessage(message); err != nil {
		return MotionBallot{}, fmt.Errorf("votes: sign %s: %w", b, err)
	}
	if err := b.valid(); err != nil {
		return MotionBallot{}, err
	}
	if err := Verify(key, ContextCOSE, message, b.Signature); err != nil {
		return MotionBallot{}, fmt.Errorf("votes: the signer's signature for %s: %w", b, err)
	}
	return b, nil
}

// Voters holds the keys of the voters. KeySet and Keyring implement it.
type Voters interface {
	// Key returns the key whose ID is voter, if that key may vote.
	Key(voter aweigh.Hash) (PublicKey, bool)
}

// CheckedMotionBallot is a motion ballot that was found well-formed and signed
// by a voter. CheckMotionBallot checks; StoredMotionBallot and Affirmed take what
// was checked before. The zero value holds the zero MotionBallot.
type CheckedMotionBallot struct{ b MotionBallot }

// Ballot is the ballot that was checked.
func (c CheckedMotionBallot) Ballot() MotionBallot { return c.b }

// CheckMotionBallot verifies a ballot for a scope of a network. The verifier
// may be nil, which stands for Verify. The error wraps ErrMalformed, ErrForeign,
// ErrOtherScope, ErrNotInRoster or ErrForged.
func CheckMotionBallot(b MotionBallot, network aweigh.NetworkID, scope aweigh.ScopeID, voters Voters, verify Verifier) (CheckedMotionBallot, error) {
	if err := b.Admissible(network, scope); err != nil {
		return CheckedMotionBallot{}, err
	}
	key, ok := voters.Key(b.Voter)
	if !ok {
		return CheckedMotionBallot{}, fmt.Errorf("%w: %s may not vote on motion %s", ErrNotInRoster, b.Voter.Short(), b.Motion.Short())
	}
	if algorithm, err := key.Algorithm(); err != nil {
		return CheckedMotionBallot{}, err
	} else if algorithm != b.Algorithm {
		return CheckedMotionBallot{}, fmt.Errorf("%w: COSE algorithm %d for a key of %s", ErrForged, b.Algorithm, key.Scheme)
	}
	if err := b.signedBy(key, voters, verify); err != nil {
		return CheckedMotionBallot{}, fmt.Errorf("%s: %w", b, err)
	}
	return CheckedMotionBallot{b}, nil
}

// StoredMotionBallot reads a ballot that was checked before it was stored, or
// before it became final in a block. Nothing is verified here; do not give it
// what came from a peer. Errors wrap ErrMalformed.
func StoredMotionBallot(data []byte) (CheckedMotionBallot, error) {
	b, err := DecodeMotionBallot(data)
	return CheckedMotionBallot{b}, err
}

// Affirmed is an approval that its voter gave in another signed form, to be counted
// like a ballot. It has no signature, and proves nothing.
func Affirmed(motion MotionID, voter aweigh.Hash) CheckedMotionBallot {
	return CheckedMotionBallot{MotionBallot{MotionVote: MotionVote{Motion: motion, Choice: Approve}, Voter: voter}}
}

// Admissible reports whether the ballot could count in a scope of a network, if
// its signature holds and its voter may vote. It costs next to nothing. The
// error wraps ErrMalformed, ErrForeign or ErrOtherScope.
func (b MotionBallot) Admissible(network aweigh.NetworkID, scope aweigh.ScopeID) error {
	switch err := b.valid(); {
	case err != nil:
		return err
	case b.Network != network:
		return fmt.Errorf("%w: %s, this is %s", ErrForeign, b.Network.Short(), network.Short())
	case b.Scope != scope:
		return fmt.Errorf("%w: %s, this is %s", ErrOtherScope, b.Scope.Short(), scope.Short())
	}
	return nil
}
