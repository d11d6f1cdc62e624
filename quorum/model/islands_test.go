package model

import (
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// An island (P53) is a scope of its own: anchors of the scope sign in it as well, at any time and in any order, with
// other weights and thresholds. Here it is an epoch that follows none and that none follows. Its blocks stand on the
// root, as its genesis follows from a final block. Liars sign everything in both.
//
// An anchor has one guard for each scope, so that closing and forgetting in one mean nothing in another: worlds with
// islands have neither.

// island adds one, with the members' weights.
func (w world) island(r quorum.Rules, honest []uint64, liars uint64, views int) world {
	w = w.then(r, honest, liars, views)
	w.islands++
	return w
}

// last is the number of the last epoch that is the scope's own: those above it are islands.
func (w *world) last() int { return len(w.epochs) - w.islands - 1 }

// oneScope reports whether the blocks are of one scope that agrees. One with more lies than its budget need not.
func (w *world) oneScope(x, y block) bool {
	a, b := w.of(x.view()), w.of(y.view())
	if max(a, b) <= w.last() || w.takesIslands {
		return true
	}
	e := &w.epochs[a]
	return a == b && e.liars <= quorum.BFT.FaultBudget(e.liars+sum(e.honest))
}

// twins calls use with the view of the same number in each other scope.
func (w *world) twins(v int, use func(u int)) {
	own := w.of(v)
	for n := range w.epochs {
		e := &w.epochs[n]
		if u := e.from + v - w.epochs[own].from; n != own && max(n, own) > w.last() && u <= e.to {
			use(u)
		}
	}
}

// elsewhere reports whether an anchor nullified the view of this number in another scope. A nullification names no
// block. Ballots that name one count for no block of another scope, whatever their domain says.
func (w *world) elsewhere(x votes, v int) (null bool) {
	w.twins(v, func(u int) { null = null || x.nullified(u) })
	return null
}

// share takes certificates of each scope for those of the others.
func (w *world) share(c *certs) {
	own := *c
	for v := 1; v <= w.views; v++ {
		w.twins(v, func(u int) { c.nullified[v] = c.nullified[v] || own.nullified[u] })
	}
}

// foreign reports whether a nullification counts that the anchors of its scope have not signed in it.
func (w *world) foreign(s *state, c *certs) bool {
	for v := 1; v <= w.views; v++ {
		e := &w.epochs[w.of(v)]
		signed := e.liars
		for i, weight := range e.honest {
			if s.anchors[i].votes.nullified(v) {
				signed += weight
			}
		}
		if c.nullified[v] && signed < e.nullify {
			return true
		}
	}
	return false
}

// alone is the world of one epoch of another.
func (w *world) alone(n int) world {
	e := w.epochs[n]
	a := world{honest: w.honest, views: e.to - e.from + 1, oneRound: w.oneRound, named: w.named}
	e.from, e.to = 1, a.views
	a.epochs = []epoch{e}
	return a
}

// TestIslandsChangeNothingInTheirScope explores every state of scopes with islands. Agreement holds in each scope with
// no more lies than its budget. What one scope signs neither allows nor forbids anything in another: each state of one
// can be together with each state of the others.
func TestIslandsChangeNothingInTheirScope(t *testing.T) {
	for _, c := range []struct {
		name  string
		world world
	}{
		{"bft, 3 2 1 1, both 1 lie, an island of 3 and a liar", heavy(2).island(bft, []uint64{3, 0}, 1, 2)},
		{"bft, 3 2 1 1, both 1 lie, an island of 2 and both liars", heavy(2).island(bft, []uint64{0, 2}, 2, 2)},
		{"bft, 3 2 1 1, both 1 lie, islands of 3 and a liar, and of 2 and both", heavy(2).island(bft, []uint64{3, 0}, 1, 1).island(bft, []uint64{0, 2}, 2, 1)},
		{"bft, 3 2 1 1, both 1 lie, islands of 3 and a liar each", heavy(1).island(bft, []uint64{3, 0}, 1, 1).island(bft, []uint64{3, 0}, 1, 2)},
		{"crash, four alike, islands of two each", newWorld(crash, []uint64{1, 1, 1, 1}, 0, 2).island(crash, []uint64{1, 1, 0, 0}, 0, 1).island(crash, []uint64{0, 0, 1, 1}, 0, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.world.oneRound { // this world has the most states
				testshort.Skip(t)
			}
			c.world.named = true
			states, found := c.world.explore(c.world.forked, c.world.foreign)
			t.Logf("%d states", states)
			if found != nil {
				t.Fatalf("fork: %v", *found)
			}
			product := 1
			for n := range c.world.epochs {
				a := c.world.alone(n)
				each, _ := a.explore()
				product *= each
			}
			if states != product {
				t.Errorf("%d states, where those of each scope alone make %d", states, product)
			}
		})
	}
}

// heavy is a scope in which two that weigh 1 lie.
func heavy(views int) world { return newWorld(bft, []uint64{3, 2}, 2, views) }

// TestEveryBrokenRuleOfIslandsForks breaks one rule at a time.
func TestEveryBrokenRuleOfIslandsForks(t *testing.T) {
	agrees := heavy(2).island(bft, []uint64{3, 0}, 1, 1)  // one view of the island has no fork
	mostLie := heavy(2).island(bft, []uint64{0, 2}, 2, 1) // this one may have a fork
	longer := heavy(1).island(bft, []uint64{3, 0}, 1, 2)  // one view of the scope has no fork
	two := heavy(1).island(bft, []uint64{3, 0}, 1, 1).island(bft, []uint64{3, 0}, 1, 2)
	for _, c := range []struct {
		name  string
		world world
	}{
		{"ballots of an island count in the scope", breaking(agrees, broken{noDomain: true})},
		{"ballots of the scope count in an island", breaking(longer, broken{noDomain: true})},
		{"ballots of an island count in another", breaking(two, broken{noDomain: true})},
		{"certificates of an island count in the scope", breaking(mostLie, broken{foreignProofs: true})},
		{"certificates of the scope count in an island", breaking(longer, broken{foreignProofs: true})},
		{"certificates of an island count in another", breaking(two, broken{foreignProofs: true})},
		{"what an island decides is applied in the scope", breaking(agrees, broken{takesIslands: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			states, found := c.world.explore(c.world.forked)
			if found == nil {
				t.Fatalf("no fork in %d states: the checker is blind", states)
			}
			t.Logf("forks within %d states", states)
			if _, found := c.world.explore(c.world.foreign); found == nil && !c.world.takesIslands {
				t.Error("no certificate lacks signatures of its own scope")
			}
		})
	}
}
