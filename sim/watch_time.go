package sim

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// blockTime watches the time of a scope.
type blockTime struct {
	looks    []look
	proposed map[aweigh.Hash]aweigh.Instant // when blocks were seen first
	block    aweigh.Instant                 // of the newest final block
	lead     time.Duration                  // by which clients' clocks are ahead
}

// look is how far the clocks of honest nodes were ahead, at most, at a time of the world.
type look struct {
	at    aweigh.Instant
	ahead time.Duration
}

// look notes what the clocks show. A machine's clock goes back only by a restart.
func (x *blockTime) look(w *World) {
	l, some := look{at: w.now}, false
	for _, n := range w.Nodes {
		if n.liar != nil {
			continue
		}
		if by := max(n.local(), n.shown).Sub(w.now); !some || by > l.ahead {
			l.ahead, some = by, true
		}
	}
	x.looks = append(x.looks, l)
}

// ahead is how far clocks were ahead at most since an instant.
func (x *blockTime) ahead(since aweigh.Instant) (most time.Duration) {
	for i := len(x.looks) - 1; i >= 0; i-- {
		if most = max(most, x.looks[i].ahead); x.looks[i].at < since {
			break // what clocks showed before, they may have shown until then
		}
	}
	return most
}

// slack is how long a proposal may have been on its way before it is seen: on a slow disk, or if its node died.
func slack(f scenario.Faults) time.Duration {
	late := []string{"slow", "syncfail", "readfail", "full", "crash", "churn", "pause"}
	if f.Crash > 0 || slices.ContainsFunc(f.Timed, func(t scenario.Fault) bool { return slices.Contains(late, t.Kind) || t.Lies() }) {
		return 5 * time.Second
	}
	return 0
}

// sees notes a block that is proposed.
func (x *blockTime) sees(w *World, p machine.Proposal) {
	if x.proposed == nil {
		x.proposed = make(map[aweigh.Hash]aweigh.Instant)
	}
	if h := p.Header.Hash(); x.proposed[h] == 0 {
		x.proposed[h] = w.now
	}
}

// final holds a final block's time to the clocks since it was proposed: it is no further ahead than the drift bound, or
// the smallest step past its parent's.
func (x *blockTime) final(w *World, n *Node, h aweigh.Height) {
	x.look(w)
	history := machine.History{Reader: n.Disk, Scope: w.id}
	b, err := history.Block(h)
	must.OK(err, "reading a block that became final")
	parent := w.Genesis.Time
	if h > 1 {
		p, err := history.Block(h - 1)
		if err != nil {
			return // it came with a snapshot
		}
		parent = p.Header.Time
	}
	at := b.Header.Time
	x.block = max(x.block, at)
	since := x.proposed[b.Header.Hash()].Add(-slack(w.Scenario.Faults))
	by, drift := x.ahead(since), w.Genesis.Policy.Limits.Drift
	w.holds(Validity, n, at > parent && !scope.Early(at, parent, w.now.Add(by+drift)),
		"the block at height %d is %v ahead of the world's time, where clocks were %v, and %v past its parent",
		h, at.Sub(w.now), by, at.Sub(parent))
	if at > w.now.Add(x.looks[len(x.looks)-1].ahead+drift) {
		w.watch.reach("time ahead")
	}
}

// from is the date of clients' requests: the world's time, or the scope's where that is far ahead.
func (x *blockTime) from(now aweigh.Instant) aweigh.Instant {
	if now = now.Add(x.lead); x.block > now.Add(time.Minute) {
		return x.block
	}
	return now
}
