package monitor

import (
	"math/bits"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Epoch holds the votes of one epoch.
type Epoch struct {
	rules    quorum.Rules
	oneRound bool
	weights  quorum.Weights
	root     aweigh.Hash
	before   *Epoch // nil: this is the first
	fast     quorum.FastBounds
	lying    tally
	anchors  []anchor // by seat
	views    map[aweigh.View]*view
	blocks   map[aweigh.Hash]*block
	top      aweigh.View // the highest one with a vote
}

// Config describes an epoch to a monitor.
type Config struct {
	Weights quorum.Weights
	Rules   quorum.Rules
	Root    aweigh.Hash                // the block that the epoch begins with
	Before  *Epoch                     // of which Root is the last block; nil: Root is the genesis
	Lies    func(aweigh.AnchorID) bool // anchors whose votes are not checked
}

// anchor is one that does not lie.
type anchor struct {
	lies, left, listens bool
	at                  aweigh.View // the lowest view that it can be in, by its votes
	floor               aweigh.View // it closed the views below
	since               aweigh.View // it was in this view when it had listened (P9)
}

// block is one that was proposed.
type block struct {
	parent aweigh.Hash
	view   aweigh.View
	linked bool // P12 was seen to hold
	final  bool
}

// New begins an epoch.
func New(c Config) *Epoch {
	e := &Epoch{
		rules: c.Rules, oneRound: c.Rules.Mode.Vouch() == quorum.Finalize, weights: c.Weights, fast: c.Rules.FastBounds(c.Weights), root: c.Root, before: c.Before,
		anchors: make([]anchor, c.Weights.Len()), views: make(map[aweigh.View]*view), blocks: make(map[aweigh.Hash]*block),
	}
	for seat := range e.anchors {
		if e.anchors[seat] = (anchor{at: 1}); c.Lies != nil && c.Lies(c.Weights.At(seat).Anchor) {
			e.anchors[seat].lies = true
			e.lying.add(c.Weights.At(seat).Weight)
		}
	}
	return e
}

// Propose notes that a block was proposed in a view on top of a parent.
func (e *Epoch) Propose(hash, parent aweigh.Hash, v aweigh.View) {
	if e.blocks[hash] != nil {
		return
	}
	e.blocks[hash] = &block{parent: parent, view: v}
	if e.certified(quorum.Finalize, v, hash) || e.decided(v, hash) {
		e.finalize(hash)
	}
}

// final reports whether a block is final, by the votes or by a descendant's.
func (e *Epoch) final(hash aweigh.Hash) bool {
	b := e.blocks[hash]
	return b != nil && b.final
}

// Close notes that an anchor closed the views below one, in which it signs nothing any more.
func (e *Epoch) Close(a aweigh.AnchorID, below aweigh.View) {
	if seat, ok := e.weights.Seat(a); ok {
		e.anchors[seat].floor = max(e.anchors[seat].floor, below)
	}
}

// Leave notes that an anchor is in a later epoch, and signs nothing in this one any more (P25).
func (e *Epoch) Leave(a aweigh.AnchorID) {
	if seat, ok := e.weights.Seat(a); ok {
		e.anchors[seat].left = true
	}
}

// Restart notes that an anchor starts again in this epoch. It may have forgotten which views it closed, and it listens
// before it signs (P9).
func (e *Epoch) Restart(a aweigh.AnchorID) {
	if seat, ok := e.weights.Seat(a); ok {
		x := &e.anchors[seat]
		x.left, x.listens, x.floor = false, true, 0
	}
}

// Listen notes that an anchor signs nothing until it has listened, also in an epoch in which it did not start.
func (e *Epoch) Listen(a aweigh.AnchorID) {
	if seat, ok := e.weights.Seat(a); ok {
		e.anchors[seat].listens = true
	}
}

// Listened notes that an anchor has listened to others, and signs from a view on. It reports whether they are a quorum
// with it.
func (e *Epoch) Listened(a aweigh.AnchorID, since aweigh.View, others func(aweigh.AnchorID) bool) bool {
	seat, ok := e.weights.Seat(a)
	if !ok {
		return true
	}
	x := &e.anchors[seat]
	x.listens, x.since = false, since // the view is that of this life: an earlier one may have been ahead
	var heard tally
	for s := range e.anchors {
		if share := e.weights.At(s); s == seat || others(share.Anchor) {
			heard.add(share.Weight)
		}
	}
	return e.met(quorum.Notarize, heard) && e.met(quorum.Finalize, heard)
}

// met reports whether so much is enough for a kind of vote. It is reckoned anew: more than the rule's share, or all.
func (e *Epoch) met(k quorum.Kind, t tally) bool {
	rule := e.rules.Nullify
	switch k {
	case quorum.Notarize:
		rule = e.rules.Notarize
	case quorum.Finalize:
		rule = e.rules.Finalize
	}
	total := e.weights.Total()
	wh, wl := bits.Mul64(t.weight, rule.Den)
	th, tl := bits.Mul64(total, rule.Num)
	over := wh > th || wh == th && wl > tl
	return total > 0 && (over || t.weight == total) && t.anchors >= int(rule.MinAnchors)
}
