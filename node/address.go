package node

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// tagScope begins a frame, or a request, of any scope other than the root scope. The first bytes of the scope's
// identity follow, and then the frame.
const tagScope = 'S'

// addressBytes is how many bytes of a scope's identity precede its frames: as many as precede its keys in the store,
// so that an attacker cannot make two scopes with the same address.
const addressBytes = 16

// address is the prefix that tells a scope's frames from those of others. It is empty for the root scope, whose frames
// have no prefix.
type address []byte

func addressOf(id aweigh.ScopeID) address {
	return append(address{tagScope}, id[:addressBytes]...)
}

// on returns a frame with the address.
func (a address) on(frame []byte) []byte {
	if a == nil {
		return frame
	}
	return slices.Concat(a, frame)
}

// place is the address as it is found on a frame.
type place [addressBytes]byte

func placeOf(id aweigh.ScopeID) (p place) {
	copy(p[:], id[:])
	return p
}

// addressed splits a frame, or a request, with an address; ok is false for one of the root scope.
func addressed(frame []byte) (to place, rest []byte, ok bool) {
	if len(frame) < 1+addressBytes || frame[0] != tagScope {
		return to, frame, false
	}
	copy(to[:], frame[1:])
	return to, frame[1+addressBytes:], true
}
