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
	Tolerates uint32   // so many of them may fail at a time; each proven liar that is still barred adds one
	Load      uint64   // for each so many mutations in an epoch one more weighs; 0: load changes nothing
	Replace   uint32   // epochs in a row without a ballot after which one on standby takes the place; 0: never
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

// Size is how many anchors shall weigh where before of them do: for f anchors that may fail it takes 3f+1, or 2f+1
// where none lies, and as many more as the load asks for. A larger group shrinks only as the load falls to half of
// what let it grow. The result is from Least to Most.
func (g Group) Size(m quorum.Mode, before, barred int, load uint64) int {
	each := uint64(2)
	if m.Byzantine() {
		each = 3
	}
	least := each*(uint64(g.Tolerates)+uint64(barred)) + 1
	keep := least
	if g.Load > 0 {
		steps := load / g.Load
		least += min(steps, uint64(g.Most))
		keep += min(2*steps+load%g.Load*2/g.Load, uint64(g.Most))
	}
	size := min(max(uint64(before), least), keep)
	return int(min(max(size, uint64(g.Least)), uint64(g.Most)))
}

// Turn is what the group of an epoch depends on, besides the ledger.
type Turn struct {
	Epoch  aweigh.Epoch   // that begins
	Height aweigh.Height  // of the last block of the epoch before; 0: the genesis
	Mode   quorum.Mode    // in the epoch that begins
	Before quorum.Weights // of the epoch before; empty where a government begins
	Load   uint64         // mutations in the epoch before
}

// Regroup is the ledger with the anchors chosen that weigh in an epoch: Group.Size of those past probation, by score.
// An anchor on standby takes the place of one that weighs if it has more than 9/8 of its score, or if that one was
// absent for Group.Replace epochs in a row. At most one anchor that weighed goes on standby in an epoch, and none
// where another has left, so that the weights of the others can follow. There is one Change for each anchor that comes
// from standby or goes there. The receiver stays as it was.
func (l Ledger) Regroup(p Params, t Turn) (Ledger, []Change) {
	g := p.Group
	candidates, weighing, left := l.candidates(g, t)
	size, why := len(candidates), "all anchors weigh"
	if g.On() {
		barred := l.barred()
		size = g.Size(t.Mode, weighing, barred, t.Load)
		why = fmt.Sprintf("%d places, of %d to %d, for %d that may fail and %d mutations", size, g.Least, g.Most, int(g.Tolerates)+barred, t.Load)
	}
	chosen := choose(candidates, size, left > 0)
	next := Ledger{slices.Clone(l.standings)}
	var changes []Change
	for i := range candidates {
		c := &candidates[i]
		s := &next.standings[c.at]
		s.Standby = !chosen[i]
		kind, reason := Called, "called: "+why
		switch {
		case s.Standby == c.Standby:
			continue
		case s.Standby && c.absent:
			kind, reason = Rested, fmt.Sprintf("on standby: absent for %d epochs; %s", c.Missed, why)
		case s.Standby:
			kind, reason = Rested, fmt.Sprintf("on standby: others have more trust than %d; %s", c.Score, why)
		}
		from := t.Epoch
		if t.Before.Len() > 0 {
			from--
		}
		ev := Evidence{Anchor: s.Anchor, Kind: kind, Epoch: from, Height: t.Height}
		changes = append(changes, Change{Epoch: from, Evidence: ev, Before: s.Score, After: s.Score, Reason: reason})
	}
	return next, changes
}

// candidate is an anchor that can weigh.
type candidate struct {
	Standing
	at     int  // in the ledger
	weighs bool // in the epoch before
	absent bool
}

// candidates are the anchors past probation, best first, how many of them weighed, and how many others weighed that
// have no seat any more.
func (l Ledger) candidates(g Group, t Turn) (all []candidate, weighing, left int) {
	left = t.Before.Len()
	for i, s := range l.standings {
		if !s.Seated || s.Weighs > t.Epoch {
			continue
		}
		c := candidate{s, i, t.Before.Of(s.Anchor) > 0, g.absent(s)}
		if c.weighs {
			weighing++
			left--
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(order(b.absent, a.absent), cmp.Compare(b.rank(), a.rank()), order(a.weighs, b.weighs), bytes.Compare(a.Anchor[:], b.Anchor[:]))
	})
	return all, weighing, left
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

// choose reports which candidates weigh, given best first, if there are size places: the first ones, but no more than
// one that weighed goes, and none if another has left.
func choose(all []candidate, size int, left bool) []bool {
	chosen := make([]bool, len(all))
	stay, goes := 0, -1
	for i := range all {
		if all[i].weighs {
			chosen[i] = true
			stay++
			if i >= size {
				goes = i
			}
		}
	}
	if goes >= 0 && !left {
		chosen[goes] = false
		stay--
	}
	for i := 0; i < len(all) && stay < size; i++ {
		if !all[i].weighs {
			chosen[i] = true
			stay++
		}
	}
	return chosen
}

// barred is how many anchors were proven to lie and are not readmitted.
func (l Ledger) barred() (n int) {
	for i := range l.standings {
		if l.standings[i].Barred {
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
	return fmt.Sprintf("on standby: it takes the place of an anchor that leaves,%s or scores less than %d", away, (8*uint64(s.Score)+8)/9)
}
