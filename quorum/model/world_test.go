package model

import "github.com/aweigh/aweigh/quorum"

// world is what does not change during a run: who weighs what, and the rules,
// whole or broken.
type world struct {
	honest []uint64 // weights, descending
	liars  uint64   // the weight of all liars together
	views  int

	notarize, nullify, finalize uint64 // thresholds

	oneRound bool // anchors finalize what is proposed, as where nobody lies

	named bool // anchors are told apart by name: none stands for others alike

	noExclusion bool // an anchor may both nullify and finalize a view
	twoBlocks   bool // leaders of one round propose twice
	noSkipProof bool // the views between a block and its parent need no nullification
}

// newWorld takes the thresholds from the rules, as the engine does.
func newWorld(r quorum.Rules, honest []uint64, liars uint64, views int) world {
	total := liars
	for _, x := range honest {
		total += x
	}
	return world{
		honest: honest, liars: liars, views: views,
		oneRound: r.Mode == quorum.Crash,
		notarize: r.Notarize.Threshold(total), nullify: r.Nullify.Threshold(total), finalize: r.Finalize.Threshold(total),
	}
}

// certs says which certificates the votes of a state can make.
type certs struct {
	notarized, finalized [2*maxViews + 2]bool
	nullified            [maxViews + 1]bool
	divided              [maxViews + 1]bool // of one round: whoever is left may have voted
}

func (w *world) certs(s *state) (c certs) {
	var n, f [2*maxViews + 2]uint64
	for v := 1; v <= w.views; v++ {
		nulls, voted := w.liars, w.liars
		for i, x := range w.honest {
			if s.votes[i].nullified(v) || s.votes[i].finalized(v) != 0 {
				voted += x
			}
			n[s.votes[i].notarized(v)] += x
			f[s.votes[i].finalized(v)] += x
			if s.votes[i].nullified(v) {
				nulls += x
			}
		}
		c.nullified[v] = nulls >= w.nullify
		c.divided[v] = w.oneRound && voted >= w.nullify && voted >= w.finalize
		for b := block(2 * v); b <= block(2*v+1); b++ {
			if s.parents[b] != 0 {
				c.notarized[b] = n[b]+w.liars >= w.notarize
				c.finalized[b] = f[b]+w.liars >= w.finalize
			}
		}
	}
	return c
}

// ended reports whether a view can be left (P11).
func (c *certs) ended(v int) bool {
	return v == 0 || c.nullified[v] || c.notarized[2*v] || c.notarized[2*v+1] || c.divided[v]
}

// forked reports whether two final blocks stand on different branches.
func (w *world) forked(s *state, c *certs) bool {
	for a := block(2); a <= block(2*w.views+1); a++ {
		for b := a + 1; b <= block(2*w.views+1); b++ {
			if c.finalized[a] && c.finalized[b] && !s.descends(b, a) {
				return true
			}
		}
	}
	return false
}

// linked reports whether P12 lets b be proposed on a parent.
func (w *world) linked(c *certs, b, parent block) bool {
	if parent != root && !c.notarized[parent] && !w.oneRound {
		return false
	}
	for v := parent.view() + 1; v < b.view() && !w.noSkipProof; v++ {
		if !c.nullified[v] {
			return false
		}
	}
	return true
}

// next calls visit with every state that one more vote leads to.
func (w *world) next(s state, c *certs, visit func(state)) {
	cast := func(i int, x votes) {
		t := s
		t.votes[i] = x
		visit(t)
	}
	for i := range w.honest {
		if !w.named && i > 0 && w.honest[i] == w.honest[i-1] && s.votes[i] == s.votes[i-1] {
			continue // the same by another name
		}
		x := s.votes[i]
		for v := 1; v < x.position(w) && w.oneRound; v++ {
			if !x.nullified(v) && (x.finalized(v) == 0 || w.noExclusion) {
				cast(i, x.nullify(v)) // left without a vote
			}
		}
		for v := x.position(w); v <= w.views && c.ended(v-1); v++ {
			if x.nullified(v) && !(w.oneRound && w.noExclusion) {
				continue
			}
			if x.finalized(v) == 0 || w.noExclusion {
				cast(i, x.nullify(v)) // P15
			}
			if w.oneRound {
				if x.finalized(v) == 0 {
					w.propose(s, c, v, func(t state, b block) { // P13
						t.votes[i] = x.finalize(b)
						visit(t)
					})
				}
				continue
			}
			if x.notarized(v) == 0 {
				w.propose(s, c, v, func(t state, b block) { // P13
					t.votes[i] = x.notarize(b)
					visit(t)
				})
			}
		}
		for b := block(2); b <= block(2*w.views+1) && !w.oneRound; b++ { // P14
			if v := b.view(); c.notarized[b] && x.finalized(v) == 0 && (!x.nullified(v) || w.noExclusion) {
				cast(i, x.finalize(b))
			}
		}
	}
}

// propose calls use with every block that may be voted for in a view: one that
// was proposed, or the next of the two on any parent.
func (w *world) propose(s state, c *certs, v int, use func(state, block)) {
	for b := block(2 * v); b <= block(2*v+1); b++ {
		if s.parents[b] != 0 {
			use(s, b)
			if w.oneRound && !w.twoBlocks {
				return // who does not lie, nor forget, proposes once
			}
			continue
		}
		for parent := root; parent < block(2*v); parent++ {
			if (parent == root || s.parents[parent] != 0) && w.linked(c, b, parent) {
				t := s
				t.parents[b] = parent
				use(t, b)
			}
		}
		return // the second of two blocks only after the first: names do not matter
	}
}

// explore visits every reachable state, breadth first, until it finds a fork
// or has seen them all. It returns how many states it saw.
func (w *world) explore() (states int, fork *state) {
	seen := map[state]struct{}{{}: {}}
	for frontier := []state{{}}; len(frontier) > 0; {
		var later []state
		for _, s := range frontier {
			c := w.certs(&s)
			if w.forked(&s, &c) {
				return len(seen), &s
			}
			w.next(s, &c, func(t state) {
				t.canonical(w.honest)
				if _, ok := seen[t]; !ok {
					seen[t] = struct{}{}
					later = append(later, t)
				}
			})
		}
		frontier = later
	}
	return len(seen), nil
}
