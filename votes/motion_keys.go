package votes

import (
	"fmt"

	"github.com/cloudflare/circl/sign"

	"github.com/aweigh/aweigh"
)

// KeySet is Voters made of keys: of anchors, approvers, or both. Immutable. The
// zero value has none.
type KeySet struct{ keys members }

// NewKeySet makes a set of keys; one that stands twice, as that of an anchor
// that is an approver too, is taken once. Errors wrap ErrKey.
func NewKeySet(keys ...PublicKey) (KeySet, error) {
	s := KeySet{newMembers(len(keys))}
	for _, k := range keys {
		if _, err := s.keys.add(k); err != nil {
			return KeySet{}, fmt.Errorf("votes: voter %s: %w", k.ID().Short(), err)
		}
	}
	return s, nil
}

// Key implements Voters.
func (s KeySet) Key(voter aweigh.Hash) (PublicKey, bool) { return s.keys.key(voter) }

// Len returns the number of keys.
func (s KeySet) Len() int { return len(s.keys.list) }

// ready is implemented by Voters with parsed keys: for some schemes, to parse a key takes longer than to verify with
// it.
type ready interface {
	parsed(voter aweigh.Hash) sign.PublicKey
}

func (s KeySet) parsed(voter aweigh.Hash) sign.PublicKey   { return s.keys.parsed(voter) }
func (k *Keyring) parsed(voter aweigh.Hash) sign.PublicKey { return k.keys.parsed(voter) }

// signedBy verifies a ballot's signature with the key of its voter.
func (b MotionBallot) signedBy(key PublicKey, voters Voters, v Verifier) error {
	message := b.SigningBytes()
	if v != nil {
		return v(key, ContextCOSE, message, b.Signature)
	}
	if r, ok := voters.(ready); ok {
		return verify(r.parsed(b.Voter), ContextCOSE.wrap(message), b.Signature)
	}
	return Verify(key, ContextCOSE, message, b.Signature)
}
