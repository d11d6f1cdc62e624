package node

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// tagScope begins a frame, or a request, of another scope than the root's: the first
// bytes of the scope's identity follow, and then the frame.
const tagScope = 'S'

// addressBytes is how much of a scope's identity stands before its frames: as much
// as before its keys in the store, so that nobody can make two scopes share one.
const addressBytes = 16

// address puts a scope's frames apart from those of others, by what stands before each
// of them: nothing for the root scope, whose frames stand as they are.
type address []byte

func addressOf(id aweigh.ScopeID) address {
	return append(address{tagScope}, id[:addressBytes]...)
}

// on is a frame with the address.
func (a address) on(frame []byte) []byte {
	if a == nil {
		return frame
	}
	return slices.Concat(a, frame)
}

// place is the address as others find it on a frame.
type place [addressBytes]byte

func placeOf(id aweigh.ScopeID) (p place) {
	copy(p[:], id[:])
	return p
}

// addressed takes a frame, or a request, with an address apart; ok is false for one
// of the root scope.
func addressed(frame []byte) (to place, rest []byte, ok bool) {
	if len(frame) < 1+addressBytes || frame[0] != tagScope {
		return to, frame, false
	}
	copy(to[:], frame[1:])
	return to, frame[1+addressBytes:], true
}
