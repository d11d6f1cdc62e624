package quorum_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"pgregory.net/rapid"
)

func ExampleDefaultRules() {
	for _, m := range []quorum.Mode{quorum.BFT, quorum.Crash} {
		r := quorum.DefaultRules(m).Finalize
		fmt.Printf("%s: %s\n", m, r)
		for _, total := range []uint64{1, 3, 4, 100} {
			fmt.Printf("  of %d: %d, and %d may lie\n", total, r.Threshold(total), m.FaultBudget(total))
		}
	}
	// Output:
	// bft: > 2/3
	//   of 1: 1, and 0 may lie
	//   of 3: 3, and 0 may lie
	//   of 4: 3, and 1 may lie
	//   of 100: 67, and 33 may lie
	// crash: > 1/2
	//   of 1: 1, and 0 may lie
	//   of 3: 2, and 0 may lie
	//   of 4: 3, and 0 may lie
	//   of 100: 51, and 0 may lie
}

func rule(num, den uint64) quorum.Rule { return quorum.Rule{Num: num, Den: den} }

// slowlyMet is the oracle of Rule.Met, in exact fractions: more than num/den of
// the whole, or all of it.
func slowlyMet(r quorum.Rule, weight, total uint64, anchors int) bool {
	if total == 0 || anchors < int(r.MinAnchors) {
		return false
	}
	share := new(big.Rat).SetFrac(new(big.Int).SetUint64(weight), new(big.Int).SetUint64(total))
	asked := new(big.Rat).SetFrac(new(big.Int).SetUint64(r.Num), new(big.Int).SetUint64(r.Den))
	return share.Cmp(asked) > 0 || weight == total
}

func someRule() *rapid.Generator[quorum.Rule] {
	return rapid.Custom(func(t *rapid.T) quorum.Rule {
		den := rapid.OneOf(rapid.Uint64Range(1, 12), rapid.Uint64Range(1, quorum.MaxDen)).Draw(t, "den")
		return quorum.Rule{
			Num:        rapid.Uint64Range(0, den).Draw(t, "num"),
			Den:        den,
			MinAnchors: rapid.Uint32Range(0, 4).Draw(t, "anchors"),
		}
	})
}

func TestRuleAgreesWithExactFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someRule().Draw(t, "rule")
		total := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(1, quorum.MaxTotal)).Draw(t, "total")
		near := r.Threshold(total)
		weight := rapid.OneOf(rapid.Uint64Range(0, total), rapid.Uint64Range(near-min(near, 2), min(near+2, total))).Draw(t, "weight")
		anchors := rapid.IntRange(0, 5).Draw(t, "anchors")
		if got, want := r.Met(weight, total, anchors), slowlyMet(r, weight, total, anchors); got != want {
			t.Fatalf("%s: met by %d of %d from %d anchors: %v, want %v", r, weight, total, anchors, got, want)
		}
	})
}

func TestRuleTable(t *testing.T) {
	for _, c := range []struct {
		name          string
		rule          quorum.Rule
		weight, total uint64
		anchors       int
		met           bool
	}{
		{"nobody there", rule(2, 3), 0, 0, 0, false},
		{"nothing of something", rule(0, 1), 0, 3, 0, false},
		{"anything at all", rule(0, 1), 1, 3, 1, true},
		{"one alone", rule(2, 3), 1, 1, 1, true},
		{"exactly two thirds are not more than two thirds", rule(2, 3), 2, 3, 2, false},
		{"all of three", rule(2, 3), 3, 3, 3, true},
		{"three of four", rule(2, 3), 3, 4, 3, true},
		{"two of four", rule(1, 2), 2, 4, 2, false},
		{"unanimous, one short", rule(1, 1), 99, 100, 99, false},
		{"unanimous", rule(1, 1), 100, 100, 100, true},
		{"heavy enough, too few heads", quorum.Rule{Num: 2, Den: 3, MinAnchors: 3}, 90, 100, 2, false},
		{"heavy enough, heads enough", quorum.Rule{Num: 2, Den: 3, MinAnchors: 3}, 90, 100, 3, true},
		{"more heads than can be counted", quorum.Rule{Num: 2, Den: 3, MinAnchors: 1<<32 - 1}, 90, 100, 3, false},
		{"the largest products", rule(quorum.MaxDen-1, quorum.MaxDen), quorum.MaxTotal - 4294, quorum.MaxTotal, 1, true},
		{"the largest products, one short", rule(quorum.MaxDen-1, quorum.MaxDen), quorum.MaxTotal - 4295, quorum.MaxTotal, 1, false},
	} {
		if got := c.rule.Met(c.weight, c.total, c.anchors); got != c.met {
			t.Errorf("%s: %v, want %v", c.name, got, c.met)
		}
	}
}

// TestP2ExactlyTwoThirdsRoundedUpIsRefused: ⌈2W/3⌉ would do for most totals,
// and fork where a third of the weight divides evenly and lies.
func TestP2ExactlyTwoThirdsRoundedUpIsRefused(t *testing.T) {
	for third := uint64(1); third <= 1000; third++ {
		total := 3 * third
		r := rule(2*total-1, 3*total) // its threshold is ⌊(2W−1)/3⌋+1 = ⌈2W/3⌉
		if got := r.Threshold(total); got != 2*third {
			t.Fatalf("the threshold meant is %d, not %d", 2*third, got)
		}
		if quorums := 2*r.Threshold(total) - total; quorums > third {
			t.Fatalf("W=%d: two such quorums share %d, more than a third", total, quorums)
		}
		if need := quorum.DefaultRules(quorum.BFT).Notarize.Threshold(total); need != 2*third+1 {
			t.Errorf("W=%d: the default asks %d, want %d", total, need, 2*third+1)
		}
	}
	// With exactly a third lying, f would be W/3. The budget is W/3 less one,
	// so the same rule passes only because it does not promise the full third.
	if f := quorum.BFT.FaultBudget(3); f != 0 {
		t.Errorf("of weight 3, %d may lie", f)
	}
}

// slowlySafe is the oracle of P3: it looks for two sets of anchors that meet
// the rules and share no more weight than may lie. Whole weights are sums of
// anchors here, so it is exact where the arithmetic is allowed to be stricter.
func slowlySafe(r quorum.Rules, weights []uint64) bool {
	total := uint64(0)
	for _, w := range weights {
		total += w
	}
	sum := func(set int) (s uint64) {
		for i, w := range weights {
			if set>>i&1 == 1 {
				s += w
			}
		}
		return s
	}
	met := func(x quorum.Rule, set int) bool {
		r := x
		r.MinAnchors = 0 // heads never make up for weight
		return slowlyMet(r, sum(set), total, 0)
	}
	for a := range 1 << len(weights) {
		for b := range 1 << len(weights) {
			conflict := met(r.Notarize, a) && met(r.Notarize, b) || met(r.Finalize, a) && met(r.Nullify, b)
			if conflict && sum(a&b) <= r.Mode.FaultBudget(total) {
				return false
			}
		}
	}
	return true
}

func TestP3AcceptsOnlyRulesWhoseQuorumsShareMoreThanMayLie(t *testing.T) {
	safe, unsafe := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 9), 1, 5).Draw(t, "weights")
		r := quorum.Rules{
			Mode:     rapid.SampledFrom([]quorum.Mode{quorum.BFT, quorum.Crash}).Draw(t, "mode"),
			Notarize: someRule().Draw(t, "notarize"),
			Finalize: someRule().Draw(t, "finalize"),
			Nullify:  someRule().Draw(t, "nullify"),
		}
		if differ := rapid.IntRange(0, 2).Draw(t, "none, one or all differ from the default"); differ < 2 { // few free ones are safe
			free := r
			r = quorum.DefaultRules(r.Mode)
			if differ == 1 {
				rapid.SampledFrom([]func(){
					func() { r.Notarize = free.Notarize }, func() { r.Finalize = free.Finalize }, func() { r.Nullify = free.Nullify },
				}).Draw(t, "which")()
			}
		}
		_, err := r.Check(weigh(t, weights...))
		if err == nil {
			safe++
			if !slowlySafe(r, weights) {
				t.Fatalf("accepted, but two quorums share too little: %v of %v", r, weights)
			}
		} else {
			unsafe++
		}
		// With single units of weight the arithmetic is exact, both ways.
		units := make([]uint64, min(len(weights), 4)+1)
		for i := range units {
			units[i] = 1
		}
		r.Notarize.MinAnchors, r.Finalize.MinAnchors, r.Nullify.MinAnchors = 0, 0, 0
		if _, err := r.Check(weigh(t, units...)); (err == nil) != slowlySafe(r, units) {
			t.Fatalf("%v of %d units: %v, the oracle says %v", r, len(units), err, slowlySafe(r, units))
		}
	})
	if safe == 0 || unsafe == 0 {
		t.Errorf("%d accepted, %d refused: one side was never seen", safe, unsafe)
	}
}

func TestP3DefaultRulesAreSafeForEveryRoster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := weigh(t, someWeights().Draw(t, "weights")...)
		for _, m := range []quorum.Mode{quorum.BFT, quorum.Crash} {
			if _, err := quorum.DefaultRules(m).Check(w); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestP3Table(t *testing.T) {
	bft, crash := quorum.DefaultRules(quorum.BFT), quorum.DefaultRules(quorum.Crash)
	with := func(r quorum.Rules, n, f, s quorum.Rule) quorum.Rules {
		r.Notarize, r.Finalize, r.Nullify = n, f, s
		return r
	}
	heads := func(r quorum.Rules, n uint32) quorum.Rules {
		r.Finalize.MinAnchors = n
		return r
	}
	for _, c := range []struct {
		name      string
		rules     quorum.Rules
		weights   []uint64
		stoppable bool
		err       string // part of it; none if empty
	}{
		{"the default, four alike", bft, []uint64{1, 1, 1, 1}, false, ""},
		{"the default, three alike: every one is needed", bft, []uint64{1, 1, 1}, true, ""},
		{"the default, one heavier than what may be missing", bft, []uint64{40, 20, 20, 20}, true, ""},
		{"one alone", bft, []uint64{1}, false, ""},
		{"one alone, one head asked", heads(bft, 1), []uint64{1}, false, ""},
		{"crash, three alike", crash, []uint64{1, 1, 1}, false, ""},
		{"crash, two alike: both are needed", crash, []uint64{1, 1}, true, ""},
		{"90 % to finalize can be stopped", with(bft, rule(2, 3), rule(9, 10), rule(2, 3)), []uint64{1, 1, 1, 1}, true, ""},
		{"two thirds to finalize, an easy nullify", with(bft, rule(2, 3), rule(2, 3), rule(1, 3)), []uint64{1, 1, 1, 1}, false, "finalization"},
		{"an easy nullify beside a hard finalize", with(bft, rule(2, 3), rule(1, 1), rule(1, 3)), []uint64{1, 1, 1, 1}, true, ""},
		{"a bare majority where a third may lie", with(bft, rule(1, 2), rule(2, 3), rule(2, 3)), []uint64{10, 10, 10, 10}, false, "notarizations"},
		{"49 % where that is three of five", with(crash, rule(49, 100), rule(1, 2), rule(1, 2)), []uint64{1, 1, 1, 1, 1}, false, ""},
		{"49 % where that is three of six", with(crash, rule(49, 100), rule(1, 2), rule(1, 2)), []uint64{1, 1, 1, 1, 1, 1}, false, "notarizations"},
		{"as many heads as there are", heads(bft, 4), []uint64{1, 1, 1, 1}, true, ""},
		{"more heads than a third can leave", heads(bft, 5), []uint64{30, 30, 30, 3, 3, 3}, true, ""},
		{"heads enough without the lightest third", heads(bft, 3), []uint64{30, 30, 30, 3, 3, 3}, false, ""},
		{"more heads than there are", heads(bft, 5), []uint64{1, 1, 1, 1}, false, "5 anchors"},
		{"nobody", bft, nil, false, "no anchors"},
		{"no such mode", quorum.Rules{Mode: 9, Notarize: rule(2, 3), Finalize: rule(2, 3), Nullify: rule(2, 3)}, []uint64{1}, false, "mode"},
		{"the zero value", quorum.Rules{}, []uint64{1}, false, "mode"},
		{"by nothing", with(bft, rule(2, 0), rule(2, 3), rule(2, 3)), []uint64{1}, false, "notarize"},
		{"more than all", with(bft, rule(2, 3), rule(4, 3), rule(2, 3)), []uint64{1}, false, "finalize"},
		{"too fine a share", with(bft, rule(2, 3), rule(2, 3), rule(1_000_000, 1_000_001)), []uint64{1}, false, "nullify"},
	} {
		stoppable, err := c.rules.Check(weigh(t, c.weights...))
		switch {
		case c.err == "" && err != nil, c.err != "" && (!errors.Is(err, quorum.ErrUnsafe) || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		case stoppable != c.stoppable:
			t.Errorf("%s: stoppable %v", c.name, stoppable)
		}
	}
}

func TestTallyCountsEachAnchorOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := someWeights().Draw(t, "weights")
		w := weigh(t, weights...)
		r := someRule().Draw(t, "rule")
		voices := rapid.SliceOfN(rapid.IntRange(0, len(weights)+1), 0, 30).Draw(t, "voices")
		tally := func(voices []int) (y quorum.Tally) {
			for _, i := range voices {
				before := y.Has(anchor(i))
				if added := y.Add(w, anchor(i)); added != (!before && w.Of(anchor(i)) > 0) {
					t.Fatalf("anchor %d of weight %d added: %v", i, w.Of(anchor(i)), added)
				}
			}
			return y
		}
		got := tally(voices)
		sum, heads := uint64(0), map[int]bool{}
		for _, i := range voices {
			if i > 0 && i <= len(weights) && !heads[i] {
				heads[i] = true
				sum += weights[i-1]
			}
		}
		if got.Weight() != sum || got.Len() != len(heads) {
			t.Fatalf("%v: weight %d of %d anchors, want %d of %d", voices, got.Weight(), got.Len(), sum, len(heads))
		}
		if got.Meets(r, w) != slowlyMet(r, sum, w.Total(), len(heads)) {
			t.Fatalf("%v meets %s of %v: %v", voices, r, weights, got.Meets(r, w))
		}
		again := tally(rapid.Permutation(voices).Draw(t, "order"))
		if again.Weight() != got.Weight() || again.Len() != got.Len() {
			t.Fatal("the order of arrival matters")
		}
	})
}

// TestP4ThresholdsAreOfTheWholeWeight: a missing anchor still counts in the
// denominator. A tally requires the same weight however few anchors voted.
func TestP4ThresholdsAreOfTheWholeWeight(t *testing.T) {
	w := weigh(t, 1, 1, 1, 1)
	var y quorum.Tally
	for i, want := range []bool{false, false, true, true} {
		y.Add(w, anchor(i+1))
		if got := y.Meets(quorum.DefaultRules(quorum.BFT).Notarize, w); got != want {
			t.Errorf("%d of 4: %v, want %v", i+1, got, want)
		}
	}
}

// TestDecisionsDoNotChangeWithNamesOrScale: relabelling anchors changes nothing,
// and for a rule that no subset meets or misses by rounding alone, neither does
// measuring all weights in a smaller unit.
func TestDecisionsDoNotChangeWithNamesOrScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 1000), 1, 12).Draw(t, "weights")
		r := someRule().Draw(t, "rule")
		scale := rapid.Uint64Range(1, 1000).Draw(t, "scale")
		names := rapid.Permutation(func() (n []int) {
			for i := range weights {
				n = append(n, i+1)
			}
			return n
		}()).Draw(t, "names")

		voices := rapid.SliceOfN(rapid.Bool(), len(weights), len(weights)).Draw(t, "voices")
		decide := func(name func(int) aweigh.AnchorID, scale uint64) bool {
			var shares []quorum.Share
			for i, x := range weights {
				shares = append(shares, quorum.Share{Anchor: name(i), Weight: x * scale})
			}
			w, err := quorum.NewWeights(shares...)
			if err != nil {
				t.Fatal(err)
			}
			var y quorum.Tally
			for i, said := range voices {
				if said {
					y.Add(w, name(i))
				}
			}
			return y.Meets(r, w)
		}
		plain := func(i int) aweigh.AnchorID { return anchor(i + 1) }
		want := decide(plain, 1)
		if got := decide(func(i int) aweigh.AnchorID { return anchor(names[i]) }, 1); got != want {
			t.Fatal("the names of anchors matter")
		}
		// weight·den > total·num is the same question at every scale.
		if got := decide(plain, scale); got != want {
			t.Fatalf("%s of %v decides %v at scale 1 and %v at scale %d", r, weights, want, got, scale)
		}
	})
}

func TestModesReadWhatTheyWrite(t *testing.T) {
	for _, m := range quorum.Modes() {
		if got, err := quorum.ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := quorum.ParseMode("BFT"); err == nil {
		t.Error("another spelling was read")
	}
}

func TestSubjectsConflict(t *testing.T) {
	a, b := aweigh.Hash{1}, aweigh.Hash{2}
	at := func(k quorum.Kind, v aweigh.View, h aweigh.Hash) quorum.Subject {
		return quorum.Subject{Kind: k, View: v, Block: h}
	}
	none := aweigh.Hash{}
	for _, c := range []struct {
		name string
		s, t quorum.Subject
		want bool
	}{
		{"the same notarize", at(quorum.Notarize, 1, a), at(quorum.Notarize, 1, a), false},
		{"two blocks notarized", at(quorum.Notarize, 1, a), at(quorum.Notarize, 1, b), true},
		{"two blocks in two views", at(quorum.Notarize, 1, a), at(quorum.Notarize, 2, b), false},
		{"two finalized", at(quorum.Finalize, 1, a), at(quorum.Finalize, 1, b), true},
		{"nullify and finalize", at(quorum.Nullify, 1, none), at(quorum.Finalize, 1, a), true},
		{"nullify and finalize of another view", at(quorum.Nullify, 1, none), at(quorum.Finalize, 2, a), false},
		{"notarize and nullify", at(quorum.Notarize, 1, a), at(quorum.Nullify, 1, none), false},
		{"notarize one and finalize another", at(quorum.Notarize, 1, a), at(quorum.Finalize, 1, b), false},
	} {
		if c.s.Conflicts(c.t) != c.want || c.t.Conflicts(c.s) != c.want {
			t.Errorf("%s: %v, %v, want %v", c.name, c.s.Conflicts(c.t), c.t.Conflicts(c.s), c.want)
		}
	}
}
