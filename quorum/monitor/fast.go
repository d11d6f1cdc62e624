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
	// If the leader lies, its ballot is left out, and several blocks may be named. It weighs as a liar does at least.
	led := uint64(0)
	for seat := range e.anchors {
		if w := e.weights.At(seat).Weight; e.anchors[seat].lies && (led == 0 || w < led) {
			led = w
		}
	}
	return led > 0 && none+all-led >= e.fast.Leave && none+all-most > beyond
}

// stands reports whether there can be nullify ballots by which the next block must stand on one that has no certificate
// (P58). Liars help most by naming it.
func (e *Epoch) stands(x *view, c *candidate) bool {
	if e.rules.Mode != quorum.Fast {
		return false
	}
	others := x.nameless
	for i := range x.blocks {
		if x.blocks[i].hash != c.hash {
			others += x.blocks[i].named
		}
	}
	return c.named+e.lying.weight+min(others, e.fast.Silent+e.fast.Lying) >= e.fast.Leave
}

// carried reports whether a block without a certificate may be built on.
func (e *Epoch) carried(v aweigh.View, hash aweigh.Hash) bool {
	x := e.views[v]
	if x == nil {
		x = new(view)
	}
	for i := range x.blocks {
		if x.blocks[i].hash == hash {
			return e.stands(x, &x.blocks[i])
		}
	}
	return e.stands(x, &candidate{hash: hash})
}
