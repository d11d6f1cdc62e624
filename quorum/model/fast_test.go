package model

import (
	"os"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// Mode fast (P56 to P60). Liars sign as many nullify ballots of a view as they like, which name any of its blocks, and
// show each anchor others; the leader's vote for a block is there once the block is.

// weights are those of the honest anchors, and of liars.
func weights(honest []uint64, liars ...uint64) quorum.Weights {
	var shares []quorum.Share
	for i, x := range append(honest[:len(honest):len(honest)], liars...) {
		if x > 0 {
			shares = append(shares, quorum.Share{Anchor: aweigh.AnchorID{byte(i + 1)}, Weight: x})
		}
	}
	w, err := quorum.NewWeights(shares...)
	must.OK(err, "the weights of a world")
	return w
}

// newFast is a world of mode fast with liars of some weights.
func newFast(honest, liars []uint64, views int) world {
	w := newWorld(fast, honest, sum(liars), views)
	e := &w.epochs[0]
	e.fast, e.lightest = fast.FastBounds(weights(honest, liars...)), 0
	for _, x := range liars {
		if e.lightest == 0 || x < e.lightest {
			e.lightest = x
		}
	}
	return w
}

var fast = quorum.DefaultRules(quorum.Fast)

// ballot is the vote to nullify a view of an anchor with some votes on record. In mode fast it names the block that the
// anchor notarized there.
func (w *world) ballot(x votes, v int) votes {
	if b := x.notarized(v); w.fast && b != 0 {
		return votes(0).name(b)
	}
	return votes(0).nullify(v)
}

// countFast is count in mode fast.
func (w *world) countFast(s *state, v int, e *epoch, c *certs) {
	var n, f [2]uint64
	for i, x := range e.honest {
		for k := range n {
			if b := block(2*v + k); s.anchors[i].votes.notarizes(b) {
				n[k] += x
			}
			if b := block(2*v + k); s.anchors[i].votes.finalizes(b) {
				f[k] += x
			}
		}
	}
	final := e.fast.Final
	if w.lightFinal {
		final--
	}
	for k := range n {
		if b := 2*v + k; s.parents[b] != 0 {
			c.notarized[b] = c.notarized[b] || n[k]+e.liars >= e.notarize
			c.finalized[b] = c.finalized[b] || f[k]+e.liars >= e.finalize || n[k]+e.liars >= final
		}
	}
	w.ballots(s, v, e, 0, 0, [2]uint64{}, c)
}

// ballots notes what the nullify ballots of a view allow, one of each anchor: an anchor that forgot may have signed
// several.
func (w *world) ballots(s *state, v int, e *epoch, i int, none uint64, by [2]uint64, c *certs) {
	if i == len(e.honest) {
		w.allows(s, v, e, none, by, c)
		return
	}
	x := s.anchors[i].votes
	if x.names(v, 0) {
		w.ballots(s, v, e, i+1, none+e.honest[i], by, c)
	}
	for k := range by {
		if x.names(v, block(2*v+k)) {
			more := by
			more[k] += e.honest[i]
			w.ballots(s, v, e, i+1, none, more, c)
		}
	}
	if !x.nullified(v) {
		w.ballots(s, v, e, i+1, none, by, c)
	}
}

// allows notes what ballots of a weight that name no block, and of one for each block, allow with those of liars (P58).
func (w *world) allows(s *state, v int, e *epoch, none uint64, by [2]uint64, c *certs) {
	x, all, most := e.fast, none+by[0]+by[1]+e.liars, max(by[0], by[1])
	beyond := x.Silent + x.Lying
	if w.limitLess {
		beyond--
	}
	led := e.lightest > 0 && all-e.lightest >= x.Leave // without the leader, which lies if there are two blocks
	if none+e.liars > beyond && none+e.liars+most >= x.Leave || led && all-most > beyond || w.nameless && all >= x.Leave {
		c.nullified[v] = true
	}
	for k := range by {
		b, named := block(2*v+k), by[k]+e.liars
		if s.parents[b] == 0 || named == 0 || !w.nowhere && !w.linked(s, c, b, s.parents[b]) {
			continue
		}
		limit := beyond
		if w.leaderTwice {
			limit -= e.lightest
		}
		c.carried[b] = c.carried[b] || none+named >= x.Leave || led && named > limit
	}
}

// madeUp visits the states in which a liar proposed a block that no anchor has voted for.
func (w *world) madeUp(s state, c *certs, visit func(state)) {
	for e := range w.epochs {
		for v := w.epochs[e].from; v <= w.epochs[e].to && w.epochs[e].liars > 0; v++ {
			if !w.nowhere {
				w.propose(s, c, v, func(t state, _ block) { visit(t) })
				continue
			}
			for b := block(2 * v); b <= block(2*v+1); b++ {
				for parent := root; parent < block(2*v) && s.parents[b] == 0; parent++ {
					if parent == root || s.parents[parent] != 0 {
						t := s
						t.parents[b] = parent
						visit(t)
					}
				}
			}
		}
	}
}

// TestFastDoesNotFork explores worlds of mode fast.
func TestFastDoesNotFork(t *testing.T) {
	for _, c := range []struct {
		name  string
		world world
		large bool
	}{
		{"four alike, one lies", newFast(alike, []uint64{1}, 2), false},
		{"four alike, none lies", newFast([]uint64{1, 1, 1, 1}, nil, 2), false},
		{"four alike, one lies, what is final is signed", attending(newFast(alike, []uint64{1}, 2)), false},
		{"2 2 1 and two liars of 1", newFast([]uint64{2, 2, 1}, []uint64{1, 1}, 2), false},
		{"3 2 1 1, both 1 lie", newFast([]uint64{3, 2}, []uint64{1, 1}, 2), false},
		{"3 2 1 1, both 1 lie, three views", newFast([]uint64{3, 2}, []uint64{1, 1}, 3), true},
		{"four alike, one lies, one forgets", forgetful(newFast(alike, []uint64{1}, 2)), true},
		{"five alike, one lies", newFast([]uint64{1, 1, 1, 1}, []uint64{1}, 2), true},
		{"4 3 2 and a liar of 4", newFast([]uint64{4, 3, 2}, []uint64{4}, 2), true},
		{"four alike, one lies, views are closed", closing(newFast(alike, []uint64{1}, 2)), true},
		{"seven alike, two lie", newFast([]uint64{1, 1, 1, 1, 1}, []uint64{1, 1}, 2), true},
		{"four alike, one lies, three views", newFast(alike, []uint64{1}, 3), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && os.Getenv("AWEIGH_MODEL") != "large" {
				t.Skip("AWEIGH_MODEL=large explores it")
			}
			if strings.HasPrefix(c.name, "2 2 1") {
				testshort.Skip(t) // it has the most states
			}
			states, found := c.world.explore(c.world.forked, c.world.contradicted, c.world.stuck)
			t.Logf("%d states, bounds %+v", states, c.world.epochs[0].fast)
			if found != nil {
				t.Errorf("fork, or no way on: %v", *found)
			}
		})
	}
}

// stuck reports whether all honest anchors nullified a view, and their ballots alone do not end it: P58 leaves no third
// case. If they name two blocks, the leader lied.
func (w *world) stuck(s *state, c *certs) bool {
	e := &w.epochs[0]
	x := e.fast
	for v := 1; v <= w.views; v++ {
		none, by, all := uint64(0), [2]uint64{}, true
		for i, weight := range e.honest {
			at := s.anchors[i].votes
			switch all = all && at.nullified(v); {
			case at.names(v, 0):
				none += weight
			case at.names(v, block(2*v)):
				by[0] += weight
			case at.names(v, block(2*v+1)):
				by[1] += weight
			}
		}
		total, most := none+by[0]+by[1], max(by[0], by[1])
		passed := none > x.Silent+x.Lying || by[0] > 0 && by[1] > 0 && total-most+e.lightest > x.Silent+x.Lying
		stands := func(k int) bool {
			return by[k] > 0 && (none+by[k] == total || by[k]+e.lightest > x.Silent+x.Lying) && c.carried[2*v+k]
		}
		if all && !passed && !stands(0) && !stands(1) {
			return true
		}
	}
	return false
}

// TestEveryBrokenRuleOfFastForks breaks one rule at a time.
func TestEveryBrokenRuleOfFastForks(t *testing.T) {
	testshort.Skip(t)
	four := newFast(alike, []uint64{1}, 2)
	for _, c := range []struct {
		name  string
		world world
	}{
		{"nullify ballots without a name", breaking(four, broken{nameless: true})},
		{"the ballot of a leader that lied counts", breaking(four, broken{leaderTwice: true})},
		{"a limit that is one too low", breaking(four, broken{limitLess: true})},
		{"one vote too few is final", breaking(four, broken{lightFinal: true})},
		{"notarize after nullify", breaking(four, broken{lateNotarize: true})},
		{"finalize after nullify", breaking(newFast([]uint64{3, 2}, []uint64{1, 1}, 2), broken{noExclusion: true})},
		{"a block that stands nowhere", breaking(newFast(alike, []uint64{1}, 3), broken{nowhere: true})},
		{"more lies than the budget", newWorld(fast, []uint64{1, 1}, 2, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			states, found := c.world.explore(c.world.forked)
			if found == nil {
				t.Fatalf("no fork in %d states: the checker is blind", states)
			}
			t.Logf("forks within %d states", states)
		})
	}
}
