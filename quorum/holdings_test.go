package quorum_test

import (
	"math/rand/v2"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// TestHoldingsAreTheVotesThatCame: anchors of a large roster vote, in any order
// and more than once; the engine holds the first vote of each, in the order of
// anchors.
func TestHoldingsAreTheVotesThatCame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, anchors := range []int{1, 63, 64, 65, 128, 200} {
		weights := make([]uint64, anchors)
		for i := range weights {
			weights[i] = 1
		}
		e := quorum.NewEngine(quorum.Config{Weights: weigh(t, weights...), Rules: quorum.DefaultRules(quorum.BFT)})
		first := make(map[aweigh.AnchorID]byte)
		var all []quorum.Vote
		for i := range byte(anchors / 2) { // fewer than make a certificate
			v := quorum.Vote{
				Subject:   quorum.Subject{Kind: quorum.Nullify, View: 1},
				Signature: quorum.Signature{Anchor: anchor(1 + r.IntN(anchors)), Bytes: []byte{i}},
			}
			if _, voted := first[v.Anchor]; !voted {
				first[v.Anchor] = i
			}
			e.Step(start, v)
		}
		all = e.Holdings().Votes
		if len(all) != len(first) {
			t.Errorf("of %d anchors %d voted, and %d votes are held", anchors, len(first), len(all))
		}
		for i, v := range all {
			if n, voted := first[v.Anchor]; !voted || v.Bytes[0] != n || i > 0 && string(all[i-1].Anchor[:]) >= string(v.Anchor[:]) {
				t.Errorf("of %d anchors, place %d holds vote %d of %s, who cast %d first, %v", anchors, i, v.Bytes[0], v.Anchor.Short(), n, voted)
			}
		}
	}
}
