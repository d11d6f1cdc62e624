package votes

import (
	"fmt"

	"github.com/aweigh/aweigh"
)

// Format is the version of the encodings in this package.
const Format = 1

// Domain is what every ballot is bound to (P5), so that a ballot counts in no other network, scope or epoch, nor under
// another roster or policy.
type Domain struct {
	_       struct{} `cbor:",toarray"`
	Network aweigh.NetworkID
	Scope   aweigh.ScopeID
	Epoch   aweigh.Epoch
	Roster  aweigh.Hash // of the anchors, their keys and weights
	Policy  aweigh.Hash
}

// String is like "scope 4bf5122f epoch 3".
func (d Domain) String() string { return fmt.Sprintf("scope %s epoch %d", d.Scope.Short(), d.Epoch) }

// Admits returns nil if something bound to other can count in d, and otherwise ErrForeign, ErrOtherScope, ErrStale or
// ErrAhead.
func (d Domain) Admits(other Domain) error {
	switch {
	case other == d:
		return nil
	case other.Network != d.Network:
		return fmt.Errorf("%w: %s, this is %s", ErrForeign, other.Network.Short(), d.Network.Short())
	case other.Scope != d.Scope:
		return fmt.Errorf("%w: %s, this is %s", ErrOtherScope, other.Scope.Short(), d.Scope.Short())
	case other.Epoch < d.Epoch:
		return fmt.Errorf("%w: epoch %d, this is %d", ErrStale, other.Epoch, d.Epoch)
	case other.Epoch > d.Epoch:
		return fmt.Errorf("%w: epoch %d, this is %d", ErrAhead, other.Epoch, d.Epoch)
	}
	return fmt.Errorf("%w: another roster or policy of epoch %d", ErrStale, d.Epoch)
}
