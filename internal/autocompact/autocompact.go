// Package autocompact compacts the history of a network by itself, by time or by revisions, as etcd's server does
// (--auto-compaction-mode and --auto-compaction-retention). A compaction is a mutation that the anchors order. All
// nodes that have the setting look at the last compaction, and take turns: the first one proposes, and the others see
// that it was done.
package autocompact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// The modes, named as in etcd.
const (
	Periodic = "periodic" // compacts changes older than a time
	Revision = "revision" // compacts changes older than a number of revisions
)

// Setting states what to keep. The zero value keeps all.
type Setting struct {
	Keep      time.Duration // what was written in it; 0: no bound by time
	Revisions int64         // the newest ones; 0: no bound by revisions
}

// isZero reports whether nothing is compacted.
func (s Setting) isZero() bool { return s == Setting{} }

// ErrSetting is wrapped by errors about settings that make no sense.
var ErrSetting = errors.New("autocompact: bad setting")

// leastKeep bounds how often a compaction may be due.
const leastKeep = time.Second

// Parse reads a setting as etcd does. Mode "" is Periodic. A retention "" or "0" keeps all; in mode Periodic a number
// alone is hours. Errors wrap ErrSetting.
func Parse(mode, retention string) (s Setting, err error) {
	if mode != "" && mode != Periodic && mode != Revision {
		return s, fmt.Errorf("%w: auto-compaction-mode is %q; it is %s or %s", ErrSetting, mode, Periodic, Revision)
	}
	if retention == "" {
		return s, nil
	}
	n, err := strconv.ParseInt(retention, 10, 64)
	switch {
	case mode == Revision:
		if err != nil || n < 0 {
			return s, fmt.Errorf("%w: auto-compaction-retention is %q; in mode %s it is a number of revisions", ErrSetting, retention, Revision)
		}
		s.Revisions = n
		return s, nil
	case err == nil && n >= 0 && n <= int64(1<<62/time.Hour):
		s.Keep = time.Duration(n) * time.Hour
	default:
		if s.Keep, err = time.ParseDuration(retention); err != nil || s.Keep < 0 || s.Keep > 0 && s.Keep < leastKeep {
			return Setting{}, fmt.Errorf("%w: auto-compaction-retention is %q; in mode %s it is a duration of at least %v such as 30m, or a number of hours", ErrSetting, retention, Periodic, leastKeep)
		}
	}
	return s, nil
}

// How often compactions are due, and how much later each further node proposes one that is due.
const (
	mostPeriod     = time.Hour       // of mode Periodic, as in etcd
	revisionPeriod = 5 * time.Minute // of mode Revision, as in etcd
	samples        = 10              // of the revision, in one period
	turn           = 15 * time.Second
	retry          = time.Minute // after a proposal that came to nothing
)

func (s Setting) period() time.Duration {
	if s.Keep > 0 {
		return min(s.Keep, mostPeriod)
	}
	return revisionPeriod
}

// sample is the newest revision at a time.
type sample struct {
	at       time.Time
	revision int64
}

// compactor decides when to propose what. It knows no clock.
type compactor struct {
	Setting
	samples   []sample // oldest first
	compacted int64    // the highest revision that a scope was compacted to
	changed   time.Time
	tried     time.Time // when it proposed last
}

// seen is a node's view of its network.
type seen struct {
	Revision  int64 // the newest
	Compacted int64 // the highest revision that a scope was compacted to
	Clocked   bool  // revisions go by time
	Started   aweigh.Instant
	Time      aweigh.Instant // of the scope
	Turn      int            // of the node among those that may propose, from 0
}

// due is the revision to compact to now, 0 for none.
func (c *compactor) due(now time.Time, s seen) int64 {
	if c.changed.IsZero() || s.Compacted != c.compacted {
		c.compacted, c.changed = s.Compacted, now
	}
	c.sample(now, s.Revision)
	wait := c.period() + time.Duration(s.Turn)*turn
	if now.Sub(c.changed) < wait || !c.tried.IsZero() && now.Sub(c.tried) < min(retry, wait) {
		return 0
	}
	to := c.target(now, &s)
	if to <= s.Compacted {
		return 0
	}
	c.tried = now
	return to
}

// sample remembers what it takes to tell the revision of Keep ago.
func (c *compactor) sample(now time.Time, revision int64) {
	if c.Keep == 0 {
		return
	}
	if n := len(c.samples); n == 0 || now.Sub(c.samples[n-1].at) >= c.period()/samples {
		c.samples = append(c.samples, sample{now, revision})
	}
	for len(c.samples) > 1 && now.Sub(c.samples[1].at) >= c.Keep {
		c.samples = c.samples[1:]
	}
}

func (c *compactor) target(now time.Time, s *seen) int64 {
	switch {
	case c.Keep == 0 && s.Clocked:
		return 0 // revisions are no count of changes
	case c.Keep == 0:
		return s.Revision - c.Revisions
	case s.Clocked:
		// A clock that is ahead must not compact newer changes: blocks have times that a quorum checked.
		return min(s.Revision, scope.ClockRevision(s.Started, min(aweigh.InstantOf(now), s.Time).Add(-c.Keep)))
	case now.Sub(c.samples[0].at) < c.Keep:
		return 0
	}
	return c.samples[0].revision
}

// Node is the part of a node that compaction needs; *node.Node is one.
type Node interface {
	Root() *node.Replica
	Scopes() []node.ScopeInfo
	ClosedTimestamp(ctx context.Context) int64
	Compact(ctx context.Context, revision int64, once node.Once) (machine.Receipt, error)
}

// Run proposes compactions until ctx ends. It returns nil then.
func Run(ctx context.Context, s Setting, n Node, log *slog.Logger) error {
	if s.isZero() {
		return nil
	}
	c := &compactor{Setting: s}
	told := false
	looks := time.NewTicker(max(s.period()/(2*samples), 50*time.Millisecond))
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
		now := look(ctx, n)
		if now.Clocked && s.Keep == 0 && !told {
			told = true
			log.Warn("auto-compaction-mode revision compacts nothing in a network of several scopes, whose revisions go by time; use periodic")
		}
		to := c.due(time.Now(), now)
		if to == 0 {
			continue
		}
		once, cancel := context.WithTimeout(ctx, retry)
		r, err := n.Compact(once, to, node.Once{Justification: "by auto-compaction"})
		cancel()
		if err == nil && r.Code == scope.Failed {
			err = scope.Failure(r.Reason)
		}
		if err != nil && !errors.Is(err, scope.ErrCompacted) && ctx.Err() == nil { // it is tried again
			log.Warn("a compaction by itself failed", "revision", to, "error", err)
		}
	}
}

// look returns a node's view now.
func look(ctx context.Context, n Node) seen {
	o := n.Root().Overview()
	s := seen{Revision: o.Head.Revision, Compacted: o.Head.Compacted, Clocked: o.Head.Clocked, Started: o.Head.Started, Time: o.Head.Time, Turn: len(o.Roster.Anchors)}
	for i, a := range o.Roster.Anchors {
		if machine.Peer(a.Peer) == o.Peer {
			s.Turn = i
		}
	}
	if s.Clocked {
		s.Revision = max(s.Revision, n.ClosedTimestamp(ctx))
	}
	for _, p := range n.Scopes() {
		if p.Held {
			s.Compacted = max(s.Compacted, p.Head.Compacted)
		}
	}
	return s
}
