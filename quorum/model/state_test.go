package model

import (
	"cmp"
	"slices"
)

const (
	maxAnchors = 5
	maxViews   = 4
)

// block names one of two blocks of a view: 0 is none, 1 the root, and 2v and
// 2v+1 are those of view v, from 1.
type block uint8

const root block = 1

func (b block) view() int { return int(b) / 2 }

// votes are the votes of one anchor: for each view seven bits, of which each says that it voted so: it notarized the
// first block, or the second, nullified without naming a block, finalized the first, or the second, nullified and named
// the first, or the second (mode fast). Views are counted through all epochs.
type votes uint32

const bitsOfView = 7

func (x votes) notarized(v int) block { return named(x>>(bitsOfView*(v-1))&3, v) }
func (x votes) finalized(v int) block { return named(x>>(bitsOfView*(v-1)+3)&3, v) }
func (x votes) nullified(v int) bool  { return x>>(bitsOfView*(v-1))&(1<<2|3<<5) != 0 }

// names reports whether an anchor nullified a view and named a block of it, or none: 0.
func (x votes) names(v int, b block) bool {
	if b == 0 {
		return x&votes(0).nullify(v) != 0
	}
	return x&votes(0).name(b) != 0
}

// notarizes and finalizes report whether an anchor voted so, though it may have voted otherwise as well.
func (x votes) notarizes(b block) bool { return x&votes(0).notarize(b) != 0 }
func (x votes) finalizes(b block) bool { return x&votes(0).finalize(b) != 0 }

func (x votes) notarize(b block) votes { return x | bits(b)<<(bitsOfView*(b.view()-1)) }
func (x votes) nullify(v int) votes    { return x | 1<<(bitsOfView*(v-1)+2) }
func (x votes) finalize(b block) votes { return x | bits(b)<<(bitsOfView*(b.view()-1)+3) }
func (x votes) name(b block) votes     { return x | bits(b)<<(bitsOfView*(b.view()-1)+5) }

// in are the votes in one view, and from those in it and later ones.
func (x votes) in(v int) votes   { return x & ((1<<bitsOfView - 1) << (bitsOfView * (v - 1))) }
func (x votes) from(v int) votes { return x &^ (1<<(bitsOfView*(max(v, 1)-1)) - 1) }

func named(bits votes, v int) block {
	if bits == 0 {
		return 0
	}
	return block(2*v) + block(bits) - 1
}

func bits(b block) votes { return votes(b&1) + 1 }

// anchor is one that does not lie: the votes that it cast, and those of them that stand on its record.
type anchor struct {
	votes, record votes
	floor         uint8 // it closed the views below, and forgot what it voted there, as quorum.Engine and votes.Guard do
	since         uint8 // it forgot, listened, and was in this view then (P9); 0: it never forgot
}

// vote casts one more.
func (a anchor) vote(x votes) anchor {
	a.votes |= x
	a.record |= x
	return a
}

// position is the lowest view of an epoch that the anchor can still be in, by what is on record: an anchor that
// finalizes what was notarized has left its view.
func (a anchor) position(w *world, e int) int {
	at := w.epochs[e].from
	if !w.signsClosed {
		at = max(at, int(a.floor))
	}
	if !w.noSince {
		at = max(at, int(a.since))
	}
	for v := w.epochs[e].from; v <= w.epochs[e].to; v++ {
		x := a.record
		if x.in(v) != 0 {
			at = max(at, v)
		}
		if x.finalized(v) != 0 && !w.oneRound {
			at = max(at, v+1)
		}
	}
	return at
}

// state is one state of a world: the honest anchors, and the parents of the blocks
// proposed so far, by block.
type state struct {
	anchors [maxAnchors]anchor
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

func compareAnchors(a, b anchor) int {
	return cmp.Or(cmp.Compare(a.votes, b.votes), cmp.Compare(a.record, b.record),
		cmp.Compare(a.floor, b.floor), cmp.Compare(a.since, b.since))
}

// canonical orders anchors that are alike: their names do not matter, and one
// state then stands for all that differ by names alone.
func (s *state) canonical(w *world) {
	for from := 0; from < w.honest; {
		to := from + 1
		for to < w.honest && w.alike(from, to) {
			to++
		}
		slices.SortFunc(s.anchors[from:to], compareAnchors)
		from = to
	}
}

// sortStates puts states into an order that does not hang on how they were found.
func sortStates(all []state) {
	slices.SortFunc(all, func(a, b state) int {
		if c := slices.CompareFunc(a.anchors[:], b.anchors[:], compareAnchors); c != 0 {
			return c
		}
		return slices.Compare(a.parents[:], b.parents[:])
	})
}
