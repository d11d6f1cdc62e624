package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Clock returns the time by this node's clock.
func (n *Node) Clock() time.Time { return n.cfg.Clock() }

// clockOf is what an anchor's proposals show of its clock, or of this node's.
//
// A block that arrives with a time ahead of this node's clock proves that the two clocks differ, because a block
// cannot come from the future. A block whose time is behind may have been delayed, or may directly follow a parent
// with that time, so only several in a row count. An anchor whose clock is far behind shows only as much of that as
// the parents of its blocks are old; such an anchor sees all others ahead and reports that itself.
type clockOf struct {
	mu     sync.Mutex
	heard  bool
	epoch  aweigh.Epoch // of the newest proposal
	view   aweigh.View  // of the newest proposal
	ahead  time.Duration
	late   int // proposals in a row that were behind by more than the bound
	off    bool
	warned time.Time
}

// lateInARow is how many proposals in a row must be behind before the anchor's clock counts as behind.
const lateInARow = 3

// clockAgain is how long after a warning about a clock the warning is repeated.
const clockAgain = 10 * time.Minute

// arrived takes the time of a new proposal. It returns whether the clock is off by more than the bound, and whether
// that has changed. Each view counts once: a leader repeats its proposal while it gets no answer.
func (c *clockOf) arrived(e aweigh.Epoch, v aweigh.View, ahead, bound time.Duration, now time.Time) (off, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard && (e < c.epoch || e == c.epoch && v <= c.view) {
		return c.off, false
	}
	c.heard, c.epoch, c.view, c.ahead = true, e, v, ahead
	if ahead < -bound {
		c.late++
	} else {
		c.late = 0
	}
	was := c.off
	c.off = ahead > bound || c.late >= lateInARow
	changed = c.off != was || c.off && now.Sub(c.warned) >= clockAgain
	if c.off && changed {
		c.warned = now
	}
	return c.off, changed
}

// last returns by how much the last proposal was ahead, and whether there was one.
func (c *clockOf) last() (ahead time.Duration, heard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.heard
}

// wrong returns +1 if the clock was found ahead, -1 if behind, 0 if it is right, and by how much.
func (c *clockOf) wrong() (sign int, by time.Duration, heard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.off:
		return 0, 0, c.heard
	case c.ahead > 0:
		return +1, c.ahead, true
	}
	return -1, -c.ahead, true
}

// side returns the sign of wrong.
func (c *clockOf) side() int {
	sign, _, _ := c.wrong()
	return sign
}

// clock compares the time of a proposal that came from its leader with the clock
// of this node.
func (n *Replica) clock(from machine.Peer, h scope.Header) {
	a := n.measured.of(h.Proposer)
	if a == nil || a.peer != from {
		return // passed on by another anchor: it may be old
	}
	if s := n.runner.stand.Load(); h.Epoch != s.EpochView.Epoch.Number || tooFar(h.View, s.View) {
		return // its view would hide the clock that later proposals show
	}
	now, bound := n.runner.now(), n.epochs.epoch().Policy.Limits.Drift
	ahead := h.Time.Sub(now)
	if ahead > bound && h.Time.Sub(n.LastHead().Time) < time.Millisecond {
		return // the scope's time is ahead and grows by the smallest steps: this shows nothing of the leader's clock
	}
	off, changed := a.clock.arrived(h.Epoch, h.View, ahead, bound, time.Now())
	switch {
	case !changed:
	case !off:
		n.log.Info("an anchor's clock agrees again", "anchor", a.name, "ahead", ahead)
	case n.measured.roster.Load().alone(a.clock.side()):
		n.log.Error("this node's clock differs from those of most other anchors: synchronize it (NTP) and restart this node",
			"anchor", a.name, "behind", ahead, "bound", bound)
	default:
		n.log.Warn("an anchor's clock differs from this node's: synchronize it (NTP) and restart that node",
			"anchor", a.name, "ahead", ahead, "bound", bound)
	}
}

// alone reports whether most other anchors are off on one side, in the sense of most: then the clock of this node is
// wrong.
func (m *anchorMeasures) alone(side int) bool {
	_, off := m.most(side)
	return off
}

// most returns by how much the clocks of most other anchors are off on one side: that of the one among them that is
// off least. These are two at least, and have more than half of the weight of all anchors, heard or not: few that lie,
// those without weight, and few that were heard so far show nothing of this clock. It returns false if there are
// fewer.
func (m *anchorMeasures) most(side int) (by time.Duration, off bool) {
	if m == nil {
		return 0, false
	}
	same, weight := 0, uint64(0)
	for i, x := range m.all {
		w := m.of.Weights.Of(m.of.Anchors[i].Key.ID())
		if sign, far, heard := x.clock.wrong(); heard && sign == side && w > 0 {
			weight += w
			if same++; same == 1 || far < by {
				by = far
			}
		}
	}
	return by, same >= 2 && 2*weight > m.of.Weights.Total()
}

// ClockBehind returns by how much this node's clock is behind those of most other anchors of the scope or of the root
// scope, negative if it is ahead. It returns 0 as long as the node can vote for the blocks of others.
//
// A node that is behind takes these blocks for blocks of the future. One that is ahead votes for them until it takes
// all that clients submit for expired; below that bound, an overloaded node that gets its blocks late looks the same.
func (n *Replica) ClockBehind() time.Duration {
	for _, at := range []*Replica{n, n.of.root} {
		all := at.measured.roster.Load()
		if by, off := all.most(+1); off {
			return by
		}
		if by, off := all.most(-1); off && by > defaultValidity {
			return -by
		}
	}
	return 0
}

// clockErr returns why this node should get no requests while its clock is off.
func (n *Replica) clockErr() error {
	by, side := n.ClockBehind(), "behind"
	switch {
	case by == 0:
		return nil
	case by < 0:
		by, side = -by, "ahead of"
	}
	return fmt.Errorf("this node's clock is %s those of most other anchors by %v: synchronize it (NTP) and restart this node",
		side, by.Round(time.Millisecond))
}
