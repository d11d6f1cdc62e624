package referral

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// TestAgreementNeedsAnHonestAnchor: whatever anchors of no more weight than may lie say, what
// is agreed an honest one said too, as of a revision that one had reached; and once all
// honest ones spoke, what they are asked for again is late enough, and not later than one
// of them was.
func TestAgreementNeedsAnHonestAnchor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shares []quorum.Share
		var total uint64
		for i := range rapid.IntRange(1, 9).Draw(t, "anchors") {
			w := rapid.Uint64Range(1, 3).Draw(t, "weight") // so that liars often have all that they may
			shares, total = append(shares, quorum.Share{Anchor: aweigh.AnchorID{byte(i + 1)}, Weight: w}), total+w
		}
		weights, err := quorum.NewWeights(shares...)
		if err != nil {
			t.Fatal(err)
		}
		budget := quorum.BFT.FaultBudget(total)
		liars, lied := make(map[aweigh.AnchorID]bool), uint64(0)
		for _, s := range shares {
			if rapid.Bool().Draw(t, "lies") && lied+s.Weight <= budget {
				liars[s.Anchor], lied = true, lied+s.Weight
			}
		}
		a := newAgreement(weights, quorum.BFT)
		said := make(map[aweigh.Hash]int64) // by honest ones: the latest revision of each
		least, most := int64(math.MaxInt64), int64(0)
		everybody := true
		for _, s := range rapid.Permutation(shares).Draw(t, "order") {
			if rapid.IntRange(0, 4).Draw(t, "mute") == 0 {
				everybody = everybody && liars[s.Anchor]
				continue
			}
			w := word{anchor: s.Anchor, sum: aweigh.Hash{byte(rapid.IntRange(0, 2).Draw(t, "sum"))}}
			if liars[s.Anchor] {
				w.revision = rapid.Int64().Draw(t, "revision of a liar")
			} else {
				w.revision = rapid.Int64Range(1, 20).Draw(t, "revision")
				said[w.sum] = max(said[w.sum], w.revision)
				least, most = min(least, w.revision), max(most, w.revision)
			}
			a.hear(w)
			a.hear(word{anchor: s.Anchor, sum: aweigh.Hash{9}, revision: math.MaxInt64}) // a second word counts for nothing
		}
		if sum, revision, ok := a.agreed(); ok {
			if at, honest := said[sum]; !honest || revision > at {
				t.Fatalf("%v is agreed on as of %d, and honest ones said %v", sum[0], revision, said)
			}
		}
		if floor, ok := a.floor(); ok && floor < least {
			t.Fatalf("as of %d, before what any honest one saw, %d", floor, least)
		} else if everybody && (!ok || floor > most) {
			t.Fatalf("as of %d (%v), where honest ones were at %d", floor, ok, most)
		}
	})
}
