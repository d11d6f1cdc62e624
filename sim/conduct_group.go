package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// groups follows, from final blocks alone, what decides which anchors weigh: for how many epochs each was absent, and
// how much was done in the epoch.
type groups struct {
	away map[aweigh.AnchorID]uint64 // epochs in a row without a ballot of the anchor
	load uint64                     // mutations in the blocks of the epoch, without the one that ends it
}

// counted ends an epoch of some counted blocks.
func (g *groups) counted(c *conduct, was *scope.Epoch, blocks uint64) {
	if g.away == nil {
		g.away = make(map[aweigh.AnchorID]uint64)
	}
	for i := range was.Roster.Anchors {
		id := was.Roster.Anchors[i].Key.ID()
		if d := c.of(id); d.timely+d.late > 0 {
			g.away[id] = 0
		} else if blocks > 0 {
			g.away[id]++
		}
	}
}

// size is how many anchors shall weigh, of which before did.
func (g *groups) size(p *scope.Policy, before, barred int) int {
	group := p.Trust.Group
	fail, least := int(group.Tolerates)+barred, 0
	if least = 2*fail + 1; p.Rules.Mode.Byzantine() {
		least = 3*fail + 1
	}
	grown, kept := least, least
	if group.Load > 0 {
		grown += int(min(g.load/group.Load, 1000))
		kept += int(min(2*g.load/group.Load, 1000))
	}
	n := before
	if n < grown {
		n = grown
	} else if n > kept {
		n = kept
	}
	return min(max(n, int(group.Least)), int(group.Most))
}

// weighs are the anchors that shall weigh in the epoch after one.
func (g *groups) weighs(was, e *scope.Epoch, after trust.Ledger) map[aweigh.AnchorID]bool {
	type seat struct {
		id        aweigh.AnchorID
		class     int // 0: there, 1: absent and weighed, 2: absent
		trust     uint64
		incumbent bool
	}
	group := e.Policy.Trust.Group
	var seats []seat
	barred, before, gone := 0, 0, was.Roster.Weights.Len()
	for s := range after.All() {
		if s.Barred {
			barred++
		}
		if !s.Seated || s.Weighs > e.Number {
			continue
		}
		x := seat{id: s.Anchor, trust: 8 * uint64(s.Score), incumbent: was.Roster.Weights.Of(s.Anchor) > 0}
		if x.incumbent {
			before, gone, x.trust = before+1, gone-1, 9*uint64(s.Score)
		}
		if group.Replace > 0 && g.away[s.Anchor] >= uint64(group.Replace) {
			if x.class, x.trust = 2, 0; x.incumbent {
				x.class = 1
			}
		}
		seats = append(seats, x)
	}
	better := func(a, b seat) int {
		for _, d := range []int{a.class - b.class, int(b.trust) - int(a.trust)} {
			if d != 0 {
				return d
			}
		}
		if a.incumbent != b.incumbent {
			if a.incumbent {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.id[:], b.id[:])
	}
	slices.SortFunc(seats, better)
	size := len(seats)
	if group.Most > 0 {
		size = g.size(&e.Policy, before, barred)
	}
	all := make(map[aweigh.AnchorID]bool)
	last := -1
	for i, x := range seats {
		if x.incumbent {
			all[x.id] = true
			last = i
		}
	}
	if last >= size && gone == 0 { // the worst of those that weighed is not among the best
		delete(all, seats[last].id)
	}
	for _, x := range seats {
		if !x.incumbent && len(all) < size {
			all[x.id] = true
		}
	}
	return all
}

// misgrouped reports which anchor weighs, or does not, against what follows from the chain; "" if none.
func (g *groups) misgrouped(was, e *scope.Epoch, after trust.Ledger) string {
	want := g.weighs(was, e, after)
	for s := range after.All() {
		if weighs := e.Roster.Weights.Of(s.Anchor) > 0; weighs != want[s.Anchor] {
			return fmt.Sprintf("whether %s weighs is %v, in a group of %d to %d, with %d mutations in the epoch before", s.Anchor.Short(), weighs,
				e.Policy.Trust.Group.Least, e.Policy.Trust.Group.Most, g.load)
		}
	}
	return ""
}
