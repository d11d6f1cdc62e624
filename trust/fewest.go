package trust

import (
	"slices"

	"github.com/aweigh/aweigh/quorum"
)

// Fewest is the smallest number of anchors whose weights add up to at least
// need: for the weight that stops a scope, its Nakamoto coefficient. It is 0 for
// a need of 0, and one more than there are anchors where all together fall short.
func Fewest(w quorum.Weights, need uint64) int {
	weights := make([]uint64, 0, w.Len())
	for s := range w.All() {
		weights = append(weights, s.Weight)
	}
	slices.Sort(weights)
	n := 0
	for sum := uint64(0); sum < need; n++ {
		if n == len(weights) {
			return n + 1
		}
		sum += weights[len(weights)-1-n]
	}
	return n
}
