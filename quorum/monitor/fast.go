package monitor

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// decided reports whether votes to notarize a block can make it final, with those of all liars (P56).
func (e *Epoch) decided(v aweigh.View, hash aweigh.Hash) bool {
	x := e.views[v]
	if x == nil || e.rules.Mode != quorum.Fast {
		return false
	}
	for i := range x.blocks {
		if c := &x.blocks[i]; c.hash == hash {
			t := c.notarized.with(e.lying)
			least := max(e.rules.Notarize.MinAnchors, e.rules.Finalize.MinAnchors)
			return t.weight >= e.fast.Final && t.anchors >= int(least)
		}
	}
	return false
}

// skips reports whether there can be nullify ballots by which a view is passed over (P58). Liars help most by naming no
// block.
func (e *Epoch) skips(x *view) bool {
	beyond, none, most, all := e.fast.Silent+e.fast.Lying, x.nameless+e.lying.weight, uint64(0), uint64(0)
	for i := range x.blocks {
		most, all = max(most, x.blocks[i].named), all+x.blocks[i].named
	}
	if none > beyond && none+most >= e.fast.Leave {
		return true
	}
	// If the leader lies, its ballot is left out, and several blocks may be named.
	led := e.lightestLiar()
	return led > 0 && none+all-led >= e.fast.Leave && none+all-most > beyond
}

// lightestLiar returns the least weight of an anchor that lies, 0 if none does: the leader weighs as much at least.
func (e *Epoch) lightestLiar() (least uint64) {
	for seat := range e.anchors {
		if w := e.weights.At(seat).Weight; e.anchors[seat].lies && (least == 0 || w < least) {
			least = w
		}
	}
	return least
}

// stands reports whether there can be nullify ballots by which the next block may stand on one that has no certificate
// (P58). Liars help most by naming it.
func (e *Epoch) stands(x *view, c *candidate) bool {
	if e.rules.Mode != quorum.Fast {
		return false
	}
	by, all := c.named+e.lying.weight, x.nameless+e.lying.weight
	for i := range x.blocks {
		all += x.blocks[i].named
	}
	if by > 0 && x.nameless+by >= e.fast.Leave {
		return true
	}
	led := e.lightestLiar()
	return led > 0 && all-led >= e.fast.Leave && by > e.fast.Silent+e.fast.Lying
}

// carried reports whether a block without a certificate may be built on. It must stand where P12 allows it itself.
func (e *Epoch) carried(v aweigh.View, hash aweigh.Hash) bool {
	x := e.views[v]
	if x == nil {
		x = new(view)
	}
	c := &candidate{hash: hash}
	for i := range x.blocks {
		if x.blocks[i].hash == hash {
			c = &x.blocks[i]
		}
	}
	return e.stands(x, c) && e.placed(quorum.Subject{Kind: quorum.Notarize, View: v, Block: hash}) == nil
}
