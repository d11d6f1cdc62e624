package quorum

import (
	"encoding/binary"

	"github.com/aweigh/aweigh"
)

// Leader returns the anchor that leads a view (P10). It is drawn by the hash of seed and view, in proportion to
// weight, so that all nodes name the same leader and no node can choose it. The bias of the draw is below 2^-32.
func Leader(w Weights, seed aweigh.Hash, v aweigh.View) aweigh.AnchorID {
	if w.Total() == 0 {
		return aweigh.AnchorID{}
	}
	var view [8]byte
	binary.BigEndian.PutUint64(view[:], uint64(v))
	h := aweigh.Sum([]byte("aweigh/leader/1"), seed[:], view[:])
	draw := binary.BigEndian.Uint64(h[:8]) % w.Total()
	for s := range w.All() {
		if draw < s.Weight {
			return s.Anchor
		}
		draw -= s.Weight
	}
	panic("unreachable: the draw is below the sum of all weights")
}
