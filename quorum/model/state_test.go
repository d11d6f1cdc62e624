package model

import "slices"

const (
	maxAnchors = 5
	maxViews   = 4
)

// block names one of two blocks of a view: 0 is none, 1 the root, and 2v and
// 2v+1 are those of view v, from 1.
type block uint8

const root block = 1

func (b block) view() int { return int(b) / 2 }

// votes are the votes of one anchor: for each view five bits. Bits 0 and 1:
// which block it notarized, 0 none. Bit 2: nullified. Bits 3 and 4: finalized.
type votes uint32

func (x votes) notarized(v int) block { return named(x>>(5*(v-1))&3, v) }
func (x votes) nullified(v int) bool  { return x>>(5*(v-1)+2)&1 == 1 }
func (x votes) finalized(v int) block { return named(x>>(5*(v-1)+3)&3, v) }

func (x votes) notarize(b block) votes { return x | bits(b)<<(5*(b.view()-1)) }
func (x votes) nullify(v int) votes    { return x | 1<<(5*(v-1)+2) }
func (x votes) finalize(b block) votes { return x | bits(b)<<(5*(b.view()-1)+3) }

func named(bits votes, v int) block {
	if bits == 0 {
		return 0
	}
	return block(2*v) + block(bits) - 1
}

func bits(b block) votes { return votes(b&1) + 1 }

// position is the lowest view that the anchor can still be in, by what it
// signed: whoever finalizes what was notarized has left its view.
func (x votes) position(w *world) int {
	at := 1
	for v := 1; v <= w.views; v++ {
		if x.notarized(v) != 0 || x.nullified(v) {
			at = max(at, v)
		}
		switch {
		case x.finalized(v) == 0:
		case w.oneRound:
			at = max(at, v)
		default:
			at = max(at, v+1)
		}
	}
	return at
}

// state is one state of a world: all votes of honest anchors, and the parents
// of the blocks proposed so far, by block.
type state struct {
	votes   [maxAnchors]votes
	parents [2*maxViews + 2]block
}

// descends reports whether b stands on a, or is a.
func (s *state) descends(b, a block) bool {
	for ; b != a; b = s.parents[b] {
		if b <= root {
			return false
		}
	}
	return true
}

// canonical orders anchors of one weight by their votes: their names do not
// matter, and one state then stands for all that differ by names alone.
func (s *state) canonical(weights []uint64) {
	for from := 0; from < len(weights); {
		to := from + 1
		for to < len(weights) && weights[to] == weights[from] {
			to++
		}
		slices.Sort(s.votes[from:to])
		from = to
	}
}

// sortStates puts states into an order that does not hang on how they were found.
func sortStates(all []state) {
	slices.SortFunc(all, func(a, b state) int {
		if c := slices.Compare(a.votes[:], b.votes[:]); c != 0 {
			return c
		}
		return slices.Compare(a.parents[:], b.parents[:])
	})
}
