package model

import (
	"os"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

var (
	alike = []uint64{1, 1, 1}
	bft   = quorum.DefaultRules(quorum.BFT)
	crash = quorum.DefaultRules(quorum.Crash)
)

func closing(w world) world            { w.closes = true; return w }
func attending(w world) world          { w.attends = true; return w }
func forgetful(w world) world          { w.forgets = true; return w }
func breaking(w world, b broken) world { w.broken = b; return w }

// TestClosingForgettingAndEpochsDoNotFork explores worlds in which anchors close views and forget what they voted
// there, in which one loses its record, and in which one epoch follows another, with other weights.
func TestClosingForgettingAndEpochsDoNotFork(t *testing.T) {
	testshort.Skip(t)
	for _, c := range []struct {
		name  string
		world world
		large bool
	}{
		{"bft, four alike, one lies, views are closed", closing(newWorld(bft, alike, 1, 2)), !testshort.All()},
		{"bft, 3 2 1 1, both 1 lie, views are closed", closing(newWorld(bft, []uint64{3, 2}, 2, 3)), true},
		{"crash, three alike, views are closed", closing(newWorld(crash, alike, 0, 3)), false},
		{"crash, three alike, what is final is signed", attending(newWorld(crash, alike, 0, 3)), false},
		{"crash, three alike, views are closed, what is final is signed", attending(closing(newWorld(crash, alike, 0, 2))), false},
		{"bft, four alike, one lies, one forgets", forgetful(newWorld(bft, alike, 1, 2)), false},
		{"bft, four alike, one lies, one forgets, views are closed", closing(forgetful(newWorld(bft, alike, 1, 2))), true},
		{"crash, four alike, one forgets", forgetful(newWorld(crash, []uint64{1, 1, 1, 1}, 0, 3)), true},
		{"crash, three alike, one forgets", forgetful(newWorld(crash, alike, 0, 3)), false},
		{"crash, three alike, one forgets, views are closed", closing(forgetful(newWorld(crash, alike, 0, 2))), false},
		{"crash, three alike, two epochs", newWorld(crash, alike, 0, 2).then(crash, alike, 0, 1), false},
		{"crash, three alike, then 2 1 and 1 that is new",
			newWorld(crash, []uint64{1, 1, 1, 0}, 0, 2).then(crash, []uint64{2, 1, 0, 1}, 0, 1), false},
		{"bft, 3 2 1 1, both 1 lie, then 3 2 and 2 that lies",
			newWorld(bft, []uint64{3, 2}, 2, 2).then(bft, []uint64{3, 2}, 2, 1), false},
		{"crash, three alike, two epochs, one forgets",
			forgetful(newWorld(crash, alike, 0, 2).then(crash, alike, 0, 1)), false},
		{"crash, three alike, two epochs of two views", newWorld(crash, alike, 0, 2).then(crash, alike, 0, 2), true},
		{"crash, three alike, two epochs of two views, one forgets",
			forgetful(newWorld(crash, alike, 0, 2).then(crash, alike, 0, 2)), true},
		{"bft, four alike, one lies, two epochs, of two views and one",
			newWorld(bft, alike, 1, 2).then(bft, alike, 1, 1), true},
		{"bft, four alike, one lies, two epochs", newWorld(bft, alike, 1, 1).then(bft, alike, 1, 1), false},
		{"bft, four alike, one lies, two epochs, one forgets",
			forgetful(newWorld(bft, alike, 1, 1).then(bft, alike, 1, 1)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && os.Getenv("AWEIGH_MODEL") != "large" {
				t.Skip("AWEIGH_MODEL=large explores it, or AWEIGH_TESTS=all")
			}
			states, found := c.world.explore(c.world.forked, c.world.contradicted)
			t.Logf("%d states", states)
			if found != nil {
				t.Errorf("fork: %v", *found)
			}
		})
	}
}

// TestEveryBrokenRuleOfClosingForgettingAndEpochsForks breaks one rule at a time.
func TestEveryBrokenRuleOfClosingForgettingAndEpochsForks(t *testing.T) {
	testshort.Skip(t)
	four, three := newWorld(bft, alike, 1, 2), newWorld(crash, alike, 0, 2)
	heavy := newWorld(bft, []uint64{3, 2}, 2, 2) // two that weigh 1 lie
	epochs := newWorld(crash, alike, 0, 2).then(crash, alike, 0, 2)
	for _, c := range []struct {
		name  string
		world world
		long  bool
	}{
		{"bft, votes in views that were closed", breaking(closing(four), broken{signsClosed: true}), false},
		{"crash, votes in an epoch that was left", breaking(epochs, broken{signsClosed: true}), false},
		{"bft, no listening", breaking(forgetful(heavy), broken{noListening: true}), false},
		{"bft, votes after a reminder", breaking(forgetful(heavy), broken{deaf: true}), false},
		{"bft, listens to less than a quorum", breaking(forgetful(four), broken{noQuorum: true}), true},
		{"bft, votes in views before the one that it is in", breaking(forgetful(four), broken{noSince: true}), false},
		{"crash, no listening", breaking(forgetful(three), broken{noListening: true}), false},
		{"crash, votes after a reminder", breaking(forgetful(three), broken{deaf: true}), false},
		{"crash, listens to less than a quorum", breaking(forgetful(three), broken{noQuorum: true}), false},
		{"crash, listens in one epoch alone", breaking(forgetful(epochs), broken{listensOnce: true}), false},
		{"crash, an epoch begins before the last one's end is final", breaking(epochs, broken{notFinal: true}), false},
		{"crash, what stands above the end of an epoch is applied", breaking(epochs, broken{applied: true}), false},
		{"crash, votes of one epoch count in another", breaking(epochs, broken{mixed: true}), false},
		{"bft, the weights of the epoch before count",
			breaking(newWorld(bft, []uint64{1, 1, 1}, 1, 1).then(bft, []uint64{4, 1, 1}, 1, 2), broken{oldWeights: true}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				testshort.SkipUnlessLong(t)
			}
			states, found := c.world.explore(c.world.forked)
			if found == nil {
				t.Fatalf("no fork in %d states: the checker is blind", states)
			}
			t.Logf("forks within %d states", states)
		})
	}
}
