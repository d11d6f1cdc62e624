package admission

import "github.com/aweigh/aweigh/node/machine"

// Members are the anchors of a scope, in its newest epoch. Safe for concurrent use.
type Members interface {
	// Anchor reports whether a peer is the node of one of them.
	Anchor(machine.Peer) bool
	// Seats returns how many there are.
	Seats() int
}
