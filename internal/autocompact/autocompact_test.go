package autocompact

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

func TestSettingsAreEtcds(t *testing.T) {
	for _, c := range []struct {
		mode, retention string
		want            Setting
		good            bool
	}{
		{"", "", Setting{}, true}, {"", "0", Setting{}, true}, {"periodic", "1", Setting{Keep: time.Hour}, true}, {"", "5m", Setting{Keep: 5 * time.Minute}, true},
		{"revision", "1000", Setting{Revisions: 1000}, true}, {"revision", "0", Setting{}, true},
		{"revision", "5m", Setting{}, false}, {"revision", "-1", Setting{}, false}, {"periodic", "-5m", Setting{}, false}, {"periodic", "1ms", Setting{}, false},
		{"hourly", "1", Setting{}, false}, {"periodic", "x", Setting{}, false}, {"periodic", "99999999999999999999", Setting{}, false}, {"periodic", "4611686018427387", Setting{}, false},
	} {
		got, err := Parse(c.mode, c.retention)
		if got != c.want || (err == nil) != c.good || err != nil && !errors.Is(err, ErrSetting) {
			t.Errorf("%q %q is %+v, %v", c.mode, c.retention, got, err)
		}
	}
}

// network is what nodes with one setting see of each other: the chain, to which each proposes, and which they see a
// while later.
type network struct {
	now   time.Time
	chain seen
	nodes []*compactor
	lag   []time.Duration // by node
	past  []seen          // by second
	done  []int64         // compactions that applied
	vain  int             // proposals that found it done
}

func newNetwork(s Setting, lags ...time.Duration) *network {
	n := &network{now: time.Unix(1_000_000, 0), chain: seen{Revision: 1}, lag: lags}
	for range lags {
		n.nodes = append(n.nodes, &compactor{Setting: s})
	}
	return n
}

// run advances time, with so many revisions a second.
func (n *network) run(t *testing.T, d time.Duration, each int64, down ...int) {
	t.Helper()
	for end := n.now.Add(d); n.now.Before(end); n.now = n.now.Add(time.Second) {
		if n.chain.Revision += each; n.chain.Clocked {
			n.chain.Revision = scope.ClockRevision(n.chain.Started, aweigh.InstantOf(n.now))
		}
		n.chain.Time = aweigh.InstantOf(n.now)
		n.past = append(n.past, n.chain)
		for i, c := range n.nodes {
			if len(down) > 0 && down[0] == i {
				continue
			}
			known := n.past[max(0, len(n.past)-1-int(n.lag[i]/time.Second))]
			known.Turn = i
			to := c.due(n.now, known)
			switch {
			case to == 0:
			case to <= n.chain.Compacted:
				n.vain++
			case to > n.chain.Revision:
				t.Fatalf("a compaction to %d of %d", to, n.chain.Revision)
			default:
				n.chain.Compacted = to
				n.done = append(n.done, to)
			}
		}
	}
}

// TestNodesCompactOnce: however many nodes have the setting, the network compacts once a period, and to what the
// setting keeps; another node does it where the first one is down.
func TestNodesCompactOnce(t *testing.T) {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for name, c := range map[string]struct {
		set     Setting
		clocked bool
		keep    int64 // revisions that stay, at a hundred a second
	}{
		"revisions": {Setting{Revisions: 5000}, false, 5000},
		"an hour":   {Setting{Keep: time.Hour}, false, 3600 * 100},
		"ten hours": {Setting{Keep: 10 * time.Hour}, false, 36000 * 100},
		"by time":   {Setting{Keep: time.Hour}, true, 3600 * 1000 << 20},
	} {
		n := newNetwork(c.set, 0, seconds(1), seconds(3), seconds(2), 0)
		if c.clocked {
			n.chain.Clocked, n.chain.Started = true, aweigh.InstantOf(n.now.Add(-24*time.Hour))
		}
		warm := c.set.Keep + c.set.period()
		n.run(t, warm, 100)
		n.done, n.vain = nil, 0
		n.run(t, 10*c.set.period(), 100)
		if len(n.done) < 9 || len(n.done) > 10 || n.vain > 0 {
			t.Errorf("%s: %d compactions in ten periods, and %d in vain", name, len(n.done), n.vain)
		}
		perSecond := int64(100)
		if c.clocked {
			perSecond = 1000 << 20
		}
		slack := 3 * int64(c.set.period()/time.Second) * perSecond // of the time since the last one, and of samples
		if kept := n.chain.Revision - n.chain.Compacted; kept < c.keep || kept > c.keep+slack {
			t.Errorf("%s: %d revisions are kept, not %d", name, kept, c.keep)
		}
		n.done = nil
		n.run(t, 5*c.set.period(), 100, 0)
		if len(n.done) < 4 || len(n.done) > 5 || n.vain > 0 {
			t.Errorf("%s: %d compactions in five periods without the first node, and %d in vain", name, len(n.done), n.vain)
		}
		n.done = nil
		n.run(t, 2*c.set.period(), 0) // nothing is written
		n.done = nil
		if n.run(t, 20*c.set.period(), 0); !c.clocked && len(n.done) > 11 {
			t.Errorf("%s: %d compactions of a network at rest", name, len(n.done))
		}
	}
}

// TestRevisionsByTimeAreNoCount: where revisions go by time, their number does not count changes.
func TestRevisionsByTimeAreNoCount(t *testing.T) {
	n := newNetwork(Setting{Revisions: 10}, 0)
	n.chain.Clocked, n.chain.Started = true, aweigh.InstantOf(n.now.Add(-time.Hour))
	if n.run(t, time.Hour, 0); len(n.done) > 0 {
		t.Errorf("compacted to %d", n.done)
	}
}
