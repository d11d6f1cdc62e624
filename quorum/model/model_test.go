package model

import (
	"os"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

func rules(m quorum.Mode, notarize, finalize, nullify quorum.Rule) quorum.Rules {
	return quorum.Rules{Mode: m, Notarize: notarize, Finalize: finalize, Nullify: nullify}
}

func above(num, den uint64) quorum.Rule { return quorum.Rule{Num: num, Den: den} }

// checked is what Rules.Check says of a world's weights (P3).
func checked(t *testing.T, r quorum.Rules, honest, liars []uint64) error {
	t.Helper()
	var shares []quorum.Share
	for i, x := range append(append([]uint64{}, honest...), liars...) {
		shares = append(shares, quorum.Share{Anchor: aweigh.AnchorID{byte(i + 1)}, Weight: x})
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Check(w)
	return err
}

func sum(weights []uint64) (total uint64) {
	for _, x := range weights {
		total += x
	}
	return total
}

// TestNoForkWithinTheFaultBudget explores every state of each world.
func TestNoForkWithinTheFaultBudget(t *testing.T) {
	for _, c := range []struct {
		name          string
		rules         quorum.Rules
		honest, liars []uint64
		views         int
		large         bool
	}{
		{"bft, four alike, one lies", bft, []uint64{1, 1, 1}, []uint64{1}, 2, false},
		{"bft, four alike, none lies", bft, []uint64{1, 1, 1, 1}, nil, 2, false},
		{"bft, 3 2 1 1, the 2 lies", bft, []uint64{3, 1, 1}, []uint64{2}, 2, false},
		{"bft, 3 2 1 1, both 1 lie", bft, []uint64{3, 2}, []uint64{1, 1}, 3, false},
		{"bft, 4 3 2 1, the 3 lies", bft, []uint64{4, 2, 1}, []uint64{3}, 2, false},
		{"bft, 4 3 2 1, 2 and 1 lie", bft, []uint64{4, 3}, []uint64{2, 1}, 3, false},
		{"bft, 90 % to finalize, one lies", rules(quorum.BFT, above(2, 3), above(9, 10), above(2, 3)), []uint64{1, 1, 1}, []uint64{1}, 2, false},
		{"bft, all to finalize, half to nullify, one lies", rules(quorum.BFT, above(2, 3), above(1, 1), above(1, 4)), []uint64{1, 1, 1}, []uint64{1}, 2, false},
		{"crash, three alike", crash, []uint64{1, 1, 1}, nil, 3, false},
		{"crash, four alike", crash, []uint64{1, 1, 1, 1}, nil, 3, false},
		{"crash, all to finalize, one to nullify", rules(quorum.Crash, above(1, 2), above(1, 1), above(0, 1)), []uint64{1, 1, 1}, nil, 3, false},
		{"crash, 2 1 1 1", crash, []uint64{2, 1, 1, 1}, nil, 3, false},
		{"bft, four alike, one lies, three views", bft, []uint64{1, 1, 1}, []uint64{1}, 3, true},
		{"crash, three alike, four views", crash, []uint64{1, 1, 1}, nil, 4, true},
		{"crash, five alike, three views", crash, []uint64{1, 1, 1, 1, 1}, nil, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && os.Getenv("AWEIGH_MODEL") != "large" {
				t.Skip("AWEIGH_MODEL=large explores it")
			}
			if c.honest[0] == 4 { // these worlds have the most states
				testshort.Skip(t)
			}
			if err := checked(t, c.rules, c.honest, c.liars); err != nil {
				t.Fatal(err)
			}
			w := newWorld(c.rules, c.honest, sum(c.liars), c.views)
			if f := c.rules.Mode.FaultBudget(sum(c.honest) + sum(c.liars)); sum(c.liars) > f {
				t.Fatalf("weight %d lies, the budget is %d", sum(c.liars), f)
			}
			states, fork := w.explore(w.forked, w.contradicted)
			t.Logf("%d states", states)
			if fork != nil {
				t.Errorf("fork: %v", *fork)
			}
		})
	}
}

// TestEveryBrokenRuleForks breaks one rule at a time.
func TestEveryBrokenRuleForks(t *testing.T) {
	four := newWorld(bft, alike, 1, 2)

	noExclusion := four
	noExclusion.noExclusion = true

	noSkipProof := four
	noSkipProof.noSkipProof = true

	// Two of four count themselves alone: ⌊2·2/3⌋ + 1 = 2 is now enough.
	reduced := newWorld(bft, []uint64{1, 1, 1, 1}, 0, 2)
	left := bft.Notarize.Threshold(2)
	reduced.epochs[0].notarize, reduced.epochs[0].nullify, reduced.epochs[0].finalize = left, left, left

	// W = 6, the liar holds exactly a third, ⌈2W/3⌉ = 4.
	third := newWorld(bft, []uint64{2, 1, 1}, 2, 2)
	third.epochs[0].notarize, third.epochs[0].nullify, third.epochs[0].finalize = 4, 4, 4

	easyNotarize := rules(quorum.BFT, above(1, 4), above(2, 3), above(2, 3))
	easyNullify := rules(quorum.BFT, above(2, 3), above(2, 3), above(1, 4))

	// One round of votes, where no anchor lies.
	oneRound := newWorld(quorum.DefaultRules(quorum.Crash), []uint64{1, 1, 1}, 0, 2)
	bothVotes, bare, twice := oneRound, oneRound, oneRound
	bothVotes.noExclusion = true
	bare.noSkipProof = true
	twice.twoBlocks = true
	light := newWorld(quorum.DefaultRules(quorum.Crash), []uint64{1, 1, 1}, 0, 2)
	light.epochs[0].nullify = 1

	for _, c := range []struct {
		name  string
		world world
	}{
		{"one round, no exclusion of nullify and finalize", bothVotes},
		{"one round, a proposal without its skip certificates", bare},
		{"one round, leaders propose twice", twice},
		{"one round, thresholds that miss P3: F + S − W ≤ 0", light},
		{"no exclusion of nullify and finalize", noExclusion},
		{"a proposal without its skip certificates", noSkipProof},
		{"quorum recomputed from reduced weight", reduced},
		{"⌈2W/3⌉ with exactly a third lying", third},
		{"thresholds that miss P3: 2N − W ≤ f", newWorld(easyNotarize, []uint64{1, 1, 1}, 1, 2)},
		{"thresholds that miss P3: F + S − W ≤ f", newWorld(easyNullify, []uint64{1, 1, 1}, 1, 2)},
		{"more lies than the budget", newWorld(bft, []uint64{1, 1}, 2, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			states, fork := c.world.explore(c.world.forked)
			if fork == nil {
				t.Fatalf("no fork in %d states: the checker is blind", states)
			}
			t.Logf("forks within %d states", states)
		})
	}
	for name, r := range map[string]quorum.Rules{"2N − W": easyNotarize, "F + S − W": easyNullify} {
		if checked(t, r, []uint64{1, 1, 1}, []uint64{1}) == nil {
			t.Errorf("Rules.Check accepts the rules that miss P3 by %s", name)
		}
	}
}
