package trust

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Group bounds how many anchors of a scope weigh at a time. Its other anchors are on standby: they hold the state and
// vote, so that they earn trust, and weigh 0 until a place is free. With the zero value all anchors past probation
// weigh.
type Group struct {
	_         struct{} `cbor:",toarray"`
	Least     uint32   // anchors that weigh, at least, as far as the scope has as many; at least 1
	Most      uint32   // at most; 0: there is no standby, and all other fields are 0
	Tolerates uint32   // so many of them may fail at a time; each that was proven to lie adds one for Params.SuretyEpochs
	Load      uint64   // for each so many mutations in an epoch one more weighs; 0: load changes nothing
	Replace   uint32   // epochs in a row without a ballot after which another takes the place; 0: absence costs scores alone
}

// On reports whether some anchors can be on standby.
func (g Group) On() bool { return g.Most > 0 }

func (g Group) check() error {
	switch {
	case g == (Group{}):
		return nil
	case !g.On():
		return errors.New("most is 0, which is for groups without bounds; then all others are 0, too")
	case g.Least == 0:
		return errors.New("least is 0; a scope without an anchor decides nothing")
	case g.Least > g.Most:
		return fmt.Errorf("least %d is above most %d", g.Least, g.Most)
	case g.Tolerates > g.Most:
		return fmt.Errorf("tolerates %d is above most %d", g.Tolerates, g.Most)
	}
	return nil
}

// Takes is how many anchors it takes for those that may fail, with so many that were proven to lie.
func (g Group) Takes(m quorum.Mode, faults int) uint64 {
	each := uint64(2)
	if m.Byzantine() {
		each = 3
	}
	return each*(uint64(g.Tolerates)+uint64(faults)) + 1
}

// Size is how many anchors shall weigh where before of them do: for f anchors that may fail it takes 3f+1, or 2f+1
// where none lies, and as many more as the load asks for. A larger group shrinks only as the load falls to half of
// what let it grow, and not with an epoch that was cut short. The result is from Least to Most.
func (g Group) Size(m quorum.Mode, before, faults int, load uint64, short bool) int {
	least := g.Takes(m, faults)
	keep := least
	if g.Load > 0 {
		steps := load / g.Load
		least += min(steps, uint64(g.Most))
		keep += min(2*steps+load%g.Load*2/g.Load, uint64(g.Most))
	}
	if short {
		keep = max(keep, uint64(before))
	}
	size := min(max(uint64(before), least), keep)
	return int(min(max(size, uint64(g.Least)), uint64(g.Most)))
}

// Turn is what the group of an epoch depends on, besides the ledger.
type Turn struct {
	Epoch  aweigh.Epoch   // that begins
	Height aweigh.Height  // of the last block of the epoch before; 0: the genesis
	Mode   quorum.Mode    // in the epoch that begins
	Before quorum.Weights // of the epoch before; empty where a government begins: then the group is chosen anew
	Load   uint64         // mutations in the epoch before
	Short  bool           // a decision or a proof ended that epoch early
}

// Regroup is the ledger with the anchors chosen that weigh in an epoch: Group.Size of those past probation, by score.
// An anchor on standby takes the place of one that weighs if it has more than 9/8 of its score, or if that one was
// absent for Group.Replace epochs in a row. No absent anchor is called, and those of one sponsor get no more than their
// part of the places while there are others. At most one anchor that weighed goes on standby in an epoch, and none
// where another has left. One is called in an epoch, or as many as left. So the weights of the others can follow. There
// is one Change for each anchor that comes from standby or goes there. The receiver stays as it was.
func (l Ledger) Regroup(p Params, t Turn) (Ledger, []Change) {
	g := p.Group
	c := l.candidates(p, t)
	size, why := len(c.all), "all anchors weigh"
	if g.On() {
		faults := l.Faults(t.Epoch)
		size = g.Size(t.Mode, c.weighing, faults, t.Load, t.Short)
		c.share(max(1, p.Sponsored.of(uint64(size))))
		size = min(size, max(c.there, int(g.Least)))
		why = fmt.Sprintf("%d places, for %d that may fail", size, int(g.Tolerates)+faults)
		if g.Load > 0 {
			why += fmt.Sprintf(" and %d changes in the epoch", t.Load)
		}
	}
	chosen := c.choose(size, g.On(), g.On() && t.Before.Len() > 0)
	next := Ledger{slices.Clone(l.standings)}
	from := t.Epoch // in which the choice became final
	if t.Height > 0 {
		from--
	}
	var changes []Change
	for i := range c.all {
		x := &c.all[i]
		s := &next.standings[x.at]
		s.Standby = !chosen[i]
		kind, reason := Called, "called: "+why
		switch {
		case s.Standby == x.Standby:
			continue
		case s.Standby && x.absent:
			kind, reason = Rested, fmt.Sprintf("on standby: absent for %d epochs; %s", x.Missed, why)
		case s.Standby:
			kind, reason = Rested, fmt.Sprintf("on standby: others have more trust than %d; %s", x.Score, why)
		}
		ev := Evidence{Anchor: s.Anchor, Kind: kind, Epoch: from, Height: t.Height}
		changes = append(changes, Change{Epoch: from, Evidence: ev, Before: s.Score, After: s.Score, Reason: reason})
	}
	return next, changes
}

// candidates are the anchors that can weigh.
type candidates struct {
	all      []candidate // best first
	there    int         // of them, not absent
	weighing int         // of them, in the epoch before
	left     int         // that weighed in the epoch before, and have no seat any more
}

type candidate struct {
	Standing
	at     int  // in the ledger
	weighs bool // in the epoch before
	absent bool
}

func (l Ledger) candidates(p Params, t Turn) (c candidates) {
	c.left = t.Before.Len()
	for i, s := range l.standings {
		if !s.Seated || s.Weighs > t.Epoch {
			continue
		}
		x := candidate{s, i, t.Before.Of(s.Anchor) > 0, p.Group.absent(s)}
		if x.weighs {
			c.weighing++
			c.left--
		}
		if !x.absent {
			c.there++
		}
		c.all = append(c.all, x)
	}
	slices.SortFunc(c.all, func(a, b candidate) int {
		return cmp.Or(order(b.absent, a.absent), cmp.Compare(b.rank(), a.rank()), order(a.weighs, b.weighs), bytes.Compare(a.Anchor[:], b.Anchor[:]))
	})
	return c
}

// share puts the anchors of one sponsor that exceed their part of the places behind all others that are there.
func (c *candidates) share(most uint64) {
	of := make(map[aweigh.AnchorID]uint64)
	var within, beyond []candidate
	for _, x := range c.all[:c.there] {
		if of[x.Sponsor]++; !x.Sponsor.IsZero() && of[x.Sponsor] > most {
			beyond = append(beyond, x)
		} else {
			within = append(within, x)
		}
	}
	copy(c.all, append(within, beyond...))
}

// absent reports whether an anchor was absent for so long that another takes its place.
func (g Group) absent(s Standing) bool { return g.Replace > 0 && s.Missed >= g.Replace }

// rank is by score, with an advantage for what weighs already, so that places do not change hands all the time. Among
// the absent such a change would help nothing.
func (c *candidate) rank() uint64 {
	switch {
	case c.absent && c.weighs:
		return 1
	case c.absent:
		return 0
	case c.weighs:
		return 9 * uint64(c.Score)
	}
	return 8 * uint64(c.Score)
}

// order puts what holds first.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// choose reports which candidates weigh if there are size places: the first ones, but for absent ones if the group is
// bounded. Step by step, no more than one that weighed goes, and none if another has left; and one is called, or as
// many as left.
func (c *candidates) choose(size int, bounded, step bool) []bool {
	chosen := make([]bool, len(c.all))
	stay, goes := 0, -1
	for i := range c.all {
		if c.all[i].weighs && (step || i < size && !(bounded && c.all[i].absent)) {
			chosen[i] = true
			stay++
			if i >= size {
				goes = i
			}
		}
	}
	calls := len(c.all)
	if step {
		calls = max(1, c.left)
	}
	if goes >= 0 && c.left == 0 {
		chosen[goes] = false
		stay--
	}
	for i := 0; i < len(c.all) && stay < size && calls > 0; i++ {
		if !c.all[i].weighs && (!bounded || !c.all[i].absent || stay == 0) { // or no anchor would weigh
			chosen[i] = true
			stay++
			calls--
		}
	}
	return chosen
}

// Faults is how many proven lies of anchors that weighed still let a group grow in an epoch.
func (l Ledger) Faults(e aweigh.Epoch) (n int) {
	for i := range l.standings {
		if l.standings[i].Faulty > e {
			n++
		}
	}
	return n
}

// whyStandby is one line for people.
func (g Group) whyStandby(s Standing) string {
	if g.absent(s) {
		return fmt.Sprintf("on standby, absent for %d epochs", s.Missed)
	}
	away := ""
	if g.Replace > 0 {
		away = fmt.Sprintf(" is absent for %d epochs,", g.Replace)
	}
	return fmt.Sprintf("on standby: it can take the place of an anchor that leaves,%s or scores less than %d", away, (8*uint64(s.Score)+8)/9)
}
