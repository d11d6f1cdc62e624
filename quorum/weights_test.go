package quorum_test

import (
	"errors"
	"math/rand"
	"slices"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"pgregory.net/rapid"
)

// anchor is the n-th anchor of a test: a readable, ordered identity.
func anchor(n int) aweigh.AnchorID { return aweigh.AnchorID{0: byte(n >> 8), 1: byte(n), 31: 0xaa} }

// weigh gives the anchors 1, 2, … the weights.
func weigh(tb rapid.TB, weights ...uint64) quorum.Weights {
	tb.Helper()
	w, err := quorum.NewWeights(sharesOf(weights)...)
	if err != nil {
		tb.Fatalf("NewWeights(%v): %v", weights, err)
	}
	return w
}

func sharesOf(weights []uint64) []quorum.Share {
	s := make([]quorum.Share, len(weights))
	for i, x := range weights {
		s[i] = quorum.Share{Anchor: anchor(i + 1), Weight: x}
	}
	return s
}

// someWeights draws the weights of 1 to 12 anchors: alike, or of all sizes.
func someWeights() *rapid.Generator[[]uint64] {
	return rapid.OneOf(
		rapid.SliceOfN(rapid.Uint64Range(1, 6), 1, 12),
		rapid.SliceOfN(rapid.Uint64Range(1, 1000), 1, 12),
		rapid.SliceOfN(rapid.Uint64Range(1, quorum.MaxTotal/12), 1, 12),
	)
}

func TestWeightsRefuseWhatCannotBeWeighed(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares []quorum.Share
		ok     bool
	}{
		{"nobody", nil, true},
		{"one", sharesOf([]uint64{1}), true},
		{"a weight of nothing", sharesOf([]uint64{1, 0}), false},
		{"an anchor twice", append(sharesOf([]uint64{1, 2}), quorum.Share{Anchor: anchor(1), Weight: 3}), false},
		{"the largest sum", sharesOf([]uint64{quorum.MaxTotal - 1, 1}), true},
		{"more than the largest sum", sharesOf([]uint64{quorum.MaxTotal, 1}), false},
		{"a sum that wraps around", sharesOf([]uint64{1, 1<<64 - 1}), false},
	} {
		if _, err := quorum.NewWeights(c.shares...); (err == nil) != c.ok || err != nil && !errors.Is(err, quorum.ErrWeights) {
			t.Errorf("%s: error %v, want none: %v", c.name, err, c.ok)
		}
	}
}

func TestWeightsDoNotDependOnTheOrderOfShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := someWeights().Draw(t, "weights")
		shares := sharesOf(weights)
		a := weigh(t, weights...)
		shuffled := rapid.Permutation(shares).Draw(t, "order")
		b, err := quorum.NewWeights(shuffled...)
		if err != nil || a.Hash() != b.Hash() || a.Total() != b.Total() {
			t.Fatalf("%v in another order: %v, hash %s for %s", weights, err, b.Hash().Short(), a.Hash().Short())
		}
		sum := uint64(0)
		for i, s := range shares {
			sum += s.Weight
			if seat, ok := b.Seat(s.Anchor); !ok || seat != i || b.At(seat) != s || b.Of(s.Anchor) != s.Weight {
				t.Fatalf("anchor %d: seat %d %v, weight %d of %d", i+1, seat, ok, b.Of(s.Anchor), s.Weight)
			}
		}
		if sum != b.Total() || b.Len() != len(shares) || b.Of(anchor(99)) != 0 {
			t.Fatalf("total %d of %d, %d anchors, a key that is not in the roster weighs %d", b.Total(), sum, b.Len(), b.Of(anchor(99)))
		}
	})
}

func TestWeightsKeepNoHoldOfTheSharesGiven(t *testing.T) {
	shares := sharesOf([]uint64{1, 2})
	w, _ := quorum.NewWeights(shares...)
	shares[0].Weight = 7
	if w.Of(anchor(1)) != 1 {
		t.Error("the caller's slice changed the weights")
	}
}

func TestWeightsHashNamesAnchorsAndWeights(t *testing.T) {
	seen := map[aweigh.Hash]string{}
	var zero quorum.Weights
	none, _ := quorum.NewWeights()
	if none.Hash() != zero.Hash() {
		t.Error("no shares and the zero value are equal, but their hashes are not")
	}
	for _, c := range []struct {
		name    string
		weights []uint64
	}{{"none", nil}, {"1", []uint64{1}}, {"2", []uint64{2}}, {"1,1", []uint64{1, 1}}, {"1,2", []uint64{1, 2}}, {"2,1", []uint64{2, 1}}} {
		h := weigh(t, c.weights...).Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", c.name, other)
		}
		seen[h] = c.name
	}
}

// TestP10LeadersLeadInProportionToWeight counts 20,000 views. The expected
// number is exact; a deviation of five standard deviations has a chance below
// one in a million for each anchor, and the draw is fixed.
func TestP10LeadersLeadInProportionToWeight(t *testing.T) {
	weights := []uint64{1, 2, 7, 10, 80}
	w := weigh(t, weights...)
	const views = 20_000
	led := map[aweigh.AnchorID]int{}
	for v := range views {
		led[quorum.Leader(w, aweigh.Sum([]byte("seed")), aweigh.View(v+1))]++
	}
	for i, x := range weights {
		want := views * int(x) / 100
		off := led[anchor(i+1)] - want
		if off*off > 25*want {
			t.Errorf("anchor %d of weight %d led %d of %d views, want about %d", i+1, x, led[anchor(i+1)], views, want)
		}
	}
}

// TestP10LeaderIsFixedByRosterSeedAndView also holds the draw itself fast: a
// change of it would split a network of two versions.
func TestP10LeaderIsFixedByRosterSeedAndView(t *testing.T) {
	w := weigh(t, 1, 2, 3, 4)
	seed := aweigh.Sum([]byte("golden"))
	var got []int
	for v := aweigh.View(1); v <= 12; v++ {
		seat, _ := w.Seat(quorum.Leader(w, seed, v))
		got = append(got, seat+1)
	}
	if want := []int{4, 1, 4, 1, 1, 3, 1, 2, 3, 3, 1, 4}; !slices.Equal(got, want) {
		t.Fatalf("leaders of views 1 to 12: %v, want %v", got, want)
	}
	var nobody quorum.Weights
	if a := quorum.Leader(nobody, seed, 1); !a.IsZero() {
		t.Errorf("nobody is led by %s", a.Short())
	}
	r := rand.New(rand.NewSource(1))
	same := 0
	for range 100 {
		var other aweigh.Hash
		r.Read(other[:])
		if quorum.Leader(w, other, 1) == quorum.Leader(w, seed, 1) {
			same++
		}
	}
	if same == 100 {
		t.Error("the seed does not matter")
	}
}
