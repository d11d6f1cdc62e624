package box

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// CheckStored reports whether a pair of the store is one of a scope's box: a ballot in its
// place, with its entry in the index, or such an entry with its ballot. ballot looks at the
// content of the former. Errors wrap ErrDamaged, or are those of r and ballot.
func CheckStored(r kv.Reader, network aweigh.NetworkID, scope aweigh.ScopeID, key, value []byte, ballot func(raw []byte) error) error {
	b := &Box{network: network, scope: scope}
	wrong := func() error { return fmt.Errorf("%w: key %x", ErrDamaged, key) }
	var p place
	switch ballots, index := b.prefix(atBallot), b.prefix(atIndex); {
	case bytes.HasPrefix(key, ballots) && len(key) == len(ballots)+len(p):
		copy(p[:], key[len(ballots):])
		m, err := votes.DecodeMotionBallot(value)
		if err != nil {
			return fmt.Errorf("%w: %w", wrong(), err)
		}
		if placeOf(&m) != p {
			return wrong()
		}
		have, ok, err := r.Get(b.indexKey(b.id(&p)))
		if err != nil {
			return err
		}
		if !ok || !bytes.Equal(have, p[:]) {
			return wrong()
		}
		return ballot(value)
	case bytes.HasPrefix(key, index) && len(key) == len(index)+len(aweigh.Hash{}) && len(value) == len(p):
		copy(p[:], value)
		if !bytes.Equal(b.indexKey(b.id(&p)), key) {
			return wrong()
		}
		if _, ok, err := r.Get(b.ballotKey(p)); err != nil || !ok {
			return fmt.Errorf("%w: %w", wrong(), err)
		}
		return nil
	}
	return wrong()
}
