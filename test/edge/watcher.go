package edge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// watcher watches a range of keys from a revision on. Its watches are cut, and go on from the next revision, at any
// node: in the end it has each change once and in order.
type watcher struct {
	w        *world
	name     string
	r        *rand.Rand
	key, end []byte
	from     int64 // the first revision that it asked for
	next     int64 // everything before has been delivered
	got      []change
	taken    []delivery
	skipped  [][2]int64 // revisions that were compacted before it came
	watches  int        // that it began
	heard    int64      // the revision up to which the last one delivered
	asked    int64      // the revision from which the last one was asked for
	slow     bool       // now and then it takes its time
}

// delivery is one that a watch took.
type delivery struct {
	seat     string
	watch    int   // of this watcher's
	from, to int64 // revisions
	asked    int64
	at       time.Duration
}

func (w *world) newWatcher(number int) *watcher {
	x := &watcher{w: w, name: fmt.Sprintf("watch %d", number), r: w.chance.of("watcher", number).stream(), from: 1, next: 1}
	x.key, x.end = []byte("/"), []byte("0")
	if number%3 == 1 {
		under := w.plan.Under[number%len(w.plan.Under)]
		x.key, x.end = []byte(under), prefixEnd([]byte(under))
	}
	x.slow = number%3 == 2
	return x
}

// last is the revision of the newest change that it must get.
func (x *watcher) last() (revision int64) {
	if all := x.w.truth.all(x.key, x.end, x.from, 1<<62); len(all) > 0 {
		revision = all[len(all)-1].revision
	}
	return revision
}

// all reports whether nothing more is written, and everything was delivered.
func (x *watcher) all(over <-chan struct{}) bool {
	select {
	case <-over:
		return x.next > x.last()
	default:
		return false
	}
}

// run watches until ctx ends, or nothing more is written and everything was delivered.
func (x *watcher) run(ctx context.Context, over <-chan struct{}) {
	for !x.all(over) && ctx.Err() == nil {
		s := x.w.seats[x.r.IntN(len(x.w.seats))]
		s.mu.Lock()
		l := s.life
		s.mu.Unlock()
		if l == nil {
			rest(ctx, 300*time.Millisecond)
			continue
		}
		x.once(ctx, s, l, over)
		rest(ctx, time.Duration(x.r.IntN(500))*time.Millisecond)
	}
}

// errEnough ends a watch from within.
var errEnough = errors.New("edge: enough")

// once watches at one node for a while.
func (x *watcher) once(ctx context.Context, s *seat, l *life, over <-chan struct{}) {
	length := time.Duration(500+x.r.IntN(6000)) * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	x.w.count("watches", 1)
	asked := x.next
	x.watches, x.asked, x.heard = x.watches+1, asked, 0
	done := make(chan error, 1)
	watch := l.node.Watch
	if !x.w.plan.scopes() && x.r.IntN(3) == 0 {
		watch = l.node.Root().Watch
	}
	go func() {
		done <- watch(ctx, x.key, x.end, asked, func(c node.Changes) error {
			x.take(s, &c)
			if x.all(over) {
				return errEnough
			}
			if x.slow && x.r.IntN(20) == 0 {
				select {
				case <-time.After(time.Duration(x.r.IntN(15000)) * time.Millisecond):
				case <-c.Late:
				case <-ctx.Done():
				}
			}
			return nil
		})
	}()
	var err error
	select {
	case err = <-done:
	case <-time.After(length + 2*time.Second):
		x.w.fail("reply", "%s at %s goes on after its context ended", x.name, s.name)
		err = <-done
	}
	switch {
	case errors.Is(err, scope.ErrCompacted):
		x.compacted(s, asked)
	case err == nil:
		x.w.fail("watch", "%s at %s ended without an error", x.name, s.name)
	}
}

// take takes a delivery.
func (x *watcher) take(s *seat, c *node.Changes) {
	if c.Revision < x.heard {
		x.w.fail("watch", "%s at %s: everything up to revision %d was delivered, and then up to %d", x.name, s.name, x.heard, c.Revision)
	}
	x.heard = c.Revision
	for _, e := range c.Events {
		got := changeOf(e)
		if got.revision < x.next || got.revision > c.Revision {
			x.w.fail("watch", "%s at %s: revision %d is delivered with those of %d to %d", x.name, s.name, got.revision, x.next, c.Revision)
		}
		if n := len(x.got); n > 0 && x.got[n-1].revision > got.revision {
			x.w.fail("watch", "%s at %s: revision %d after %d", x.name, s.name, got.revision, x.got[n-1].revision)
		}
		x.got = append(x.got, got)
		x.w.count("events", 1)
	}
	if c.Revision >= x.next {
		x.taken = append(x.taken, delivery{s.name, x.watches, x.next, c.Revision, x.asked, x.w.since(time.Now())})
	}
	x.next = max(x.next, c.Revision+1)
}

// passed is the delivery that was to hold a revision.
func (x *watcher) passed(revision int64) string {
	for i, d := range x.taken {
		if revision >= d.from && revision <= d.to {
			return fmt.Sprintf("%+v", x.taken[max(0, i-2):i+1])
		}
	}
	return "none"
}

// compacted goes on behind what was compacted.
func (x *watcher) compacted(s *seat, asked int64) {
	most := x.w.compactedMost()
	if asked >= most {
		x.w.fail("watch", "%s at %s: revision %d is called compacted, and nothing beyond %d was", x.name, s.name, asked, most)
	}
	x.w.count("watches behind a compaction", 1)
	x.skipped = append(x.skipped, [2]int64{x.next, max(x.next, most) - 1})
	x.next = max(x.next, most)
}

// judge compares the delivered changes with the committed history.
func (x *watcher) judge() {
	want := x.w.truth.all(x.key, x.end, x.from, x.next-1)
	left := func(c change) bool {
		return slices.ContainsFunc(x.skipped, func(s [2]int64) bool { return c.revision >= s[0] && c.revision <= s[1] })
	}
	got := slices.DeleteFunc(slices.Clone(x.got), left)
	want = slices.DeleteFunc(want, left)
	order(got)
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			found := "nothing"
			if i < len(got) {
				found = fmt.Sprint(got[i])
			}
			x.w.fail("watch", "%s up to revision %d: change %d of %d is %v, and it was told of %s; deliveries up to there: %s",
				x.name, x.next-1, i, len(want), want[i], found, x.passed(want[i].revision))
			return
		}
	}
	if len(got) > len(want) {
		x.w.fail("watch", "%s was told of %d changes, and there are %d: %v", x.name, len(got), len(want), got[len(want)])
	}
}

// budgetSlack is what watches of scopes that a node holds may take above its budget for a moment: a few loads
// (node.WatchBudget), each of the content that is in a world's revisions.
const budgetSlack = 512 << 10

// budget holds what the watches of a node hold to its budget. What is read ahead of scopes that it does not hold has
// room of its own, and is looked at when no watch is left.
func (w *world) budget(s *seat, n *node.Node, slack int64) {
	if m := n.WatchMemory(); (slack == 0 || !w.plan.Foreign) && m.Used > m.Limit+slack {
		w.fail("budget", "the watches of %s hold %d bytes, %d are their budget", s.name, m.Used, m.Limit)
	}
}
