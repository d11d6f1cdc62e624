package machine

import "github.com/aweigh/aweigh/internal/refusal"

// errOversized is wrapped by errors about frames that hold more items than are accepted.
var errOversized = refusal.New(refusal.Oversized, "node: oversized")

// DroppedFrame returns the note that input of a peer was refused because of err.
func DroppedFrame(from Peer, err error) Dropped {
	return Dropped{From: from, Class: refusal.Of(err), Why: err.Error()}
}
