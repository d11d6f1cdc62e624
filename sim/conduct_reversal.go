package sim

import (
	"bytes"
	"cmp"
	"math/big"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// contested is a contested motion that was carried, and can be reversed (P55).
type contested struct {
	*poll
	height   aweigh.Height
	when     aweigh.Epoch // in which it was carried
	epoch    aweigh.Epoch // likewise, or in which it was reversed
	parties  []aweigh.Hash
	warners  []aweigh.AnchorID
	reversed bool
}

// altered is a key before and after a motion; nil: it was not there.
type altered struct{ was, is *string }

func (a altered) moved() bool {
	return (a.was == nil) != (a.is == nil) || a.was != nil && *a.was != *a.is
}

// value is that of a key that exists.
func (r *recount) value(key string) *string {
	if v, ok := r.content[key]; ok {
		return &v
	}
	return nil
}

// reversals looks for contested motions that one which was carried has reversed, and remembers it if it is one. warners
// are the anchors with ballots against it that counted, none if it was not contested.
func (x *opinions) reversals(p *poll, warners []aweigh.AnchorID, e *scope.Epoch, b *scope.Bounds, h aweigh.Height) {
	policy, size, moves := &e.Policy.Trust, 0, false
	for _, a := range p.did { // order-free: a sum, and any
		for _, v := range []*string{a.was, a.is} {
			if v != nil {
				size += len(*v)
			}
		}
		moves = moves || a.moved()
	}
	if policy.Reversal == 0 || !moves || len(p.did) > cmp.Or(b.WarningObjects, 64) || size > cmp.Or(b.WarningBytes, 4<<20) {
		return
	}
	x.remembered = slices.DeleteFunc(x.remembered, func(c *contested) bool { return c.epoch+aweigh.Epoch(policy.Reversal) < e.Number })
	asks := partiesTo(p, e)
	var left []*contested
	for i, c := range x.remembered {
		if c.reversed || !p.undoes(c.poll) {
			left = append(left, c)
			continue
		}
		again := slices.ContainsFunc(slices.Concat(left, x.remembered[i+1:]), func(o *contested) bool { return o.reversed && o.meets(c) })
		credited := p.credits(c, asks)
		if again || len(credited) == 0 {
			continue
		}
		c.reversed, c.epoch = true, e.Number
		left = append(left, c)
		for _, a := range credited {
			n := x.of(e.Number, a)
			n.warned = append(n.warned, c)
		}
	}
	x.remembered = left
	warners = slices.DeleteFunc(warners, func(a aweigh.AnchorID) bool {
		_, seated := e.Roster.Seat(a)
		return !seated || slices.Contains(asks, a)
	})
	if len(warners) == 0 {
		return
	}
	if len(x.remembered) >= cmp.Or(b.Warnings, 64) {
		at := slices.IndexFunc(x.remembered, func(c *contested) bool { return !c.reversed })
		if at < 0 {
			return
		}
		x.remembered = slices.Delete(x.remembered, at, at+1)
	}
	x.remembered = append(x.remembered, &contested{poll: p, height: h, when: e.Number, epoch: e.Number, parties: asks, warners: warners})
	slices.SortFunc(x.remembered, earlier)
}

// earlier orders motions as they were carried.
func earlier(a, b *contested) int {
	return cmp.Or(cmp.Compare(a.height, b.height), bytes.Compare(a.id[:], b.id[:]))
}

// undoes reports whether a motion gave all keys that another one had changed the values that they had before it.
func (p *poll) undoes(other *poll) bool {
	for key, a := range other.did { // order-free: all
		if d, ok := p.did[key]; a.moved() && (!ok || !d.moved() || (altered{a.was, d.is}).moved()) {
			return false
		}
	}
	return true
}

// meets reports whether both motions have changed one key.
func (c *contested) meets(o *contested) bool {
	for key, a := range c.did { // order-free: any
		if a.moved() && o.did[key].moved() {
			return true
		}
	}
	return false
}

// credits are the anchors with credit if a motion reverses a contested one: more than a third of the anchors' weight
// has approved both, and if one party asked for both more than half.
func (p *poll) credits(c *contested, asks []aweigh.Hash) (all []aweigh.AnchorID) {
	isAnchor := func(id aweigh.Hash) bool { return p.voters[id].anchor }
	both := p.weightOf(func(id aweigh.Hash) bool {
		return isAnchor(id) && p.said[id] == 1<<votes.Approve && c.voters[id].anchor && c.said[id] == 1<<votes.Approve
	})
	parts := int64(3)
	if slices.ContainsFunc(asks, func(id aweigh.Hash) bool { return slices.Contains(c.parties, id) }) {
		parts = 2
	}
	if both.Mul(both, big.NewInt(parts)).Cmp(p.weightOf(isAnchor)) <= 0 {
		return nil
	}
	for _, a := range c.warners {
		if p.said[a]&(1<<votes.Reject) == 0 {
			all = append(all, a)
		}
	}
	return all
}

// partiesTo are the keys of the author of a motion: those of an anchor and its node go together.
func partiesTo(p *poll, e *scope.Epoch) []aweigh.Hash {
	all := []aweigh.Hash{p.author}
	for i := range e.Roster.Anchors {
		a := &e.Roster.Anchors[i]
		if node, ok := scope.PeerKey(a.Peer); ok && (node.ID() == p.author || a.Key.ID() == p.author) {
			all = append(all, node.ID(), a.Key.ID())
		}
	}
	return all
}

// credit is what the reversals of an epoch leave of an anchor's blame: each takes what the ballot cost at most in its
// epoch, as long as the sum is no more than what an epoch of errors adds. The policy's numbers stay the same in worlds
// in which this is followed.
func (x *opinions) credit(p trust.Params, e aweigh.Epoch, a aweigh.AnchorID, blame uint64) uint64 {
	sum := uint64(0)
	for _, c := range slices.SortedFunc(slices.Values(x.of(e, a).warned), earlier) {
		n := x.of(c.when, a)
		each := 1_000_000 / max(n.with+n.against+n.silent, uint64(p.Judged)) / uint64(p.Against)
		if sum+each <= 1_000_000/uint64(p.Against) {
			sum += each
		}
	}
	return blame - min(blame, sum)
}
