package monitor

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// view is the votes of anchors that do not lie in one view.
type view struct {
	cast      []cast // by seat
	nullified tally
	nameless  uint64      // weight that nullified and named no block, in mode fast
	spoken    tally       // nullified or finalized
	blocks    []candidate // those voted for
}

// cast is the votes of one anchor in a view; the places are those of blocks, from 1.
type cast struct {
	notarized, finalized int
	nullified            bool
}

// candidate is the votes for one block.
type candidate struct {
	hash                 aweigh.Hash
	notarized, finalized tally
	named                uint64 // weight that nullified and named it, in mode fast
}

// tally is so much weight of so many anchors.
type tally struct {
	weight  uint64
	anchors int
}

func (t *tally) add(weight uint64) {
	t.weight += weight
	t.anchors++
}

// with is what two tallies are together.
func (t tally) with(o tally) tally { return tally{t.weight + o.weight, t.anchors + o.anchors} }

// in is the record of a view.
func (e *Epoch) in(v aweigh.View) *view {
	x := e.views[v]
	if x == nil {
		x = &view{cast: make([]cast, len(e.anchors))}
		e.views[v] = x
	}
	return x
}

// place is the place of a block among those of a view, from 1.
func (x *view) place(hash aweigh.Hash) int {
	i := slices.IndexFunc(x.blocks, func(c candidate) bool { return c.hash == hash })
	if i < 0 {
		i = len(x.blocks)
		x.blocks = append(x.blocks, candidate{hash: hash})
	}
	return i + 1
}

// can reports whether there can be a certificate, with the signatures of all liars.
func (e *Epoch) can(k quorum.Kind, t tally) bool { return e.met(k, t.with(e.lying)) }

// certified reports whether there can be a certificate of a kind for a block.
func (e *Epoch) certified(k quorum.Kind, v aweigh.View, hash aweigh.Hash) bool {
	var t tally
	if x := e.views[v]; x != nil {
		for i := range x.blocks {
			if c := &x.blocks[i]; c.hash == hash && k == quorum.Notarize {
				t = c.notarized
			} else if c.hash == hash {
				t = c.finalized
			}
		}
	}
	return e.can(k, t)
}

// passed reports whether there can be a nullification of a view.
func (e *Epoch) passed(v aweigh.View) bool {
	x := e.views[v]
	if x == nil {
		x = new(view)
	}
	if e.rules.Mode == quorum.Fast {
		return e.skips(x)
	}
	return e.can(quorum.Nullify, x.nullified)
}

// ended reports whether a view can be left (P11).
func (e *Epoch) ended(v aweigh.View) bool {
	x := e.views[v]
	if x == nil {
		x = new(view)
	}
	if e.passed(v) {
		return true
	}
	for i := range x.blocks {
		if e.stands(x, &x.blocks[i]) {
			return true
		}
		if c := &x.blocks[i]; !e.oneRound && e.can(quorum.Notarize, c.notarized) || e.can(quorum.Finalize, c.finalized) {
			return true
		}
	}
	return e.oneRound && e.can(quorum.Nullify, x.spoken) && e.can(quorum.Finalize, x.spoken)
}

// begun reports whether an anchor can be in the epoch: the last block of the one before is final (P25), or was never
// seen to be proposed.
func (e *Epoch) begun() bool {
	return e.before == nil || e.before.blocks[e.root] == nil || e.before.final(e.root)
}
