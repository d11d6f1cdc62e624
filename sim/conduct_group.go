package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// groups follows, from final blocks alone, what decides which anchors weigh: for how many epochs each was absent, how
// much was done in the epoch, and who was proven to lie while it weighed.
type groups struct {
	away map[aweigh.AnchorID]uint64       // epochs in a row without a ballot of the anchor
	lied map[aweigh.AnchorID]aweigh.Epoch // the last epoch in which that was proven
	load uint64                           // mutations in the blocks of the epoch, without the one that ends it
	cut  bool                             // it has fewer blocks than the policy wants, so that a decision may have ended it
}

// counted ends an epoch of some counted blocks.
func (g *groups) counted(c *conduct, was *scope.Epoch, blocks uint64, before, after trust.Ledger) {
	if g.away == nil {
		g.away, g.lied = make(map[aweigh.AnchorID]uint64), make(map[aweigh.AnchorID]aweigh.Epoch)
	}
	g.cut = c.blocks < was.Policy.EpochBlocks
	for i := range was.Roster.Anchors {
		id := was.Roster.Anchors[i].Key.ID()
		if d := c.of(id); blocks > 0 && d.timely+d.late > 0 {
			g.away[id] = 0
		} else if blocks >= 4 {
			g.away[id]++
		}
	}
	for s := range after.All() {
		old, known := before.Standing(s.Anchor)
		switch {
		case s.Barred && !old.Barred && was.Roster.Weights.Of(s.Anchor) > 0:
			g.lied[s.Anchor] = was.Number
		case !known || old.Since != s.Since || old.Barred && !s.Barred: // admitted or readmitted
			g.away[s.Anchor] = 0
		}
	}
}

// faults counts the lies that let a group grow.
func (g *groups) faults(p *trust.Params, e aweigh.Epoch) (n int) {
	for _, at := range g.lied { // order-free: a count
		if e <= at+aweigh.Epoch(p.SuretyEpochs) {
			n++
		}
	}
	return n
}

// size is how many anchors shall weigh, of which before did.
func (g *groups) size(p *scope.Policy, before, faults int, short bool) int {
	group := p.Trust.Group
	fail, least := int(group.Tolerates)+faults, 0
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
	} else if n > kept && !short {
		n = kept
	}
	return min(max(n, int(group.Least)), int(group.Most))
}

// ranked is an anchor that can weigh.
type ranked struct {
	id              aweigh.AnchorID
	sponsor         aweigh.AnchorID
	score           uint64
	absent, weighed bool
}

// better orders by trust, with an advantage for those that weighed.
func (s ranked) better(o ranked) int {
	worth := func(s ranked) uint64 {
		if s.weighed {
			return 9 * s.score
		}
		return 8 * s.score
	}
	switch a, b := worth(s), worth(o); {
	case a > b || a == b && s.weighed && !o.weighed:
		return -1
	case a < b || s.weighed != o.weighed:
		return 1
	}
	return bytes.Compare(s.id[:], o.id[:])
}

// weighs are the anchors that shall weigh in the epoch after one.
func (g *groups) weighs(was, e *scope.Epoch, after trust.Ledger, short bool) map[aweigh.AnchorID]bool {
	p := &e.Policy.Trust
	group := p.Group
	all := make(map[aweigh.AnchorID]bool)
	var there, kept, away []ranked
	before, gone := 0, was.Roster.Weights.Len()
	for s := range after.All() {
		if !s.Seated || s.Weighs > e.Number {
			continue
		}
		x := ranked{s.Anchor, s.Sponsor, uint64(s.Score), group.Replace > 0 && g.away[s.Anchor] >= uint64(group.Replace), was.Roster.Weights.Of(s.Anchor) > 0}
		if x.weighed {
			before, gone = before+1, gone-1
			all[x.id] = true
		}
		switch {
		case group.Most == 0:
			all[x.id] = true
		case x.absent:
			away = append(away, x)
		default:
			there = append(there, x)
		}
	}
	if group.Most == 0 {
		return all
	}
	size := g.size(&e.Policy, before, g.faults(p, e.Number), short)
	slices.SortFunc(there, ranked.better)
	slices.SortFunc(away, func(a, b ranked) int {
		if a.weighed != b.weighed {
			return a.better(ranked{weighed: b.weighed, score: a.score})
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	part := max(1, uint64(size)*uint64(p.Sponsored.Num)/uint64(p.Sponsored.Den))
	of := make(map[aweigh.AnchorID]uint64)
	var best []ranked
	for _, x := range there {
		if of[x.sponsor]++; !x.sponsor.IsZero() && of[x.sponsor] > part {
			kept = append(kept, x)
		} else {
			best = append(best, x)
		}
	}
	best = slices.Concat(best, kept, away)
	size = min(size, max(len(there), int(group.Least)))
	if gone == 0 { // the worst of those that weighed goes, if it is not among the best
		for i := len(best) - 1; i >= size; i-- {
			if best[i].weighed {
				delete(all, best[i].id)
				break
			}
		}
	}
	calls := max(1, gone)
	for _, x := range best {
		if !x.weighed && !x.absent && len(all) < size && calls > 0 {
			all[x.id] = true
			calls--
		}
	}
	if len(all) == 0 && len(best) > 0 { // all are absent, and none would weigh
		all[best[0].id] = true
	}
	return all
}

// misgrouped reports which anchor weighs, or does not, against what follows from the chain; "" if none.
func (g *groups) misgrouped(was, e *scope.Epoch, after trust.Ledger) string {
	want := g.weighs(was, e, after, false)
	differ := func(want map[aweigh.AnchorID]bool) string {
		for s := range after.All() {
			if weighs := e.Roster.Weights.Of(s.Anchor) > 0; weighs != want[s.Anchor] {
				return fmt.Sprintf("whether %s weighs is %v, in a group of %d to %d, with %d mutations in the epoch before", s.Anchor.Short(), weighs,
					e.Policy.Trust.Group.Least, e.Policy.Trust.Group.Most, g.load)
			}
		}
		return ""
	}
	why := differ(want)
	if why != "" && g.cut {
		why = differ(g.weighs(was, e, after, true))
	}
	return why
}

// unmoved reports whether a ledger shows an epoch that could give no weights: no score of an anchor that is not barred
// is another.
func unmoved(before, after trust.Ledger) bool {
	for s := range after.All() {
		if old, _ := before.Standing(s.Anchor); !s.Barred && (old.Score != s.Score || old.Missed != s.Missed || old.Seated != s.Seated) {
			return false
		}
	}
	return true
}
