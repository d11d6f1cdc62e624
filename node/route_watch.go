package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A watch of keys of several scopes has a segment in each scope. What the segments read is delivered in the order of
// revisions, which follow the clock if there are several scopes, up to where no scope can come with anything older. So
// a client that continues from the last revision that it saw misses nothing and receives nothing twice. An idle scope
// is asked to close while others have changes. A scope that cannot decide holds up only the watches of its keys.

// WatchSegment is a watch's part in one scope.
type WatchSegment struct {
	Part     *Replica     // nil if this node does not hold the scope
	remote   *remoteWatch // reads the changes there, if Part is nil
	Key, End []byte
	Next     int64 // nothing was read from here on
	Closed   int64 // the scope has nothing else up to here
	Bare     int64 // up to this revision, previous values were compacted when the segment was opened
	Read     []Change
}

// WatchSegments returns the segments of a watch of the keys [key, end), in the sense of scope.Op, from a revision on,
// or from now on if it is 0. It also returns the newest revision, and the one up to which the requested changes were
// compacted. Keys that a scope delegates later stay in its own segment until Follow says otherwise. The caller must
// stop the segments; ctx ends those in scopes that are not held.
func (n *Node) WatchSegments(ctx context.Context, key, end []byte, from int64) (segments []*WatchSegment, newest, compacted int64, err error) {
	before := from
	if from == 0 {
		before = math.MaxInt64
	}
	for range segmentTries {
		var pieces []piece
		if pieces, err = n.split(ctx, nil, owner{replica: n.root}, key, end, before); err != nil {
			return nil, 0, 0, err
		}
		segments, newest, compacted, err = n.segmentsOf(ctx, pieces, from)
		if !errors.Is(err, scope.ErrElsewhere) { // else a scope that is not held has delegated some of them, as is known now
			return segments, newest, compacted, err
		}
	}
	return nil, 0, 0, fmt.Errorf("%w: it delegates without end: %w", referral.ErrMute, err)
}

// segmentTries bounds how many delegations of scopes that are not held are learned one after the other.
const segmentTries = 64

func (n *Node) segmentsOf(ctx context.Context, pieces []piece, from int64) (segments []*WatchSegment, newest, compacted int64, err error) {
	if from > 0 && len(n.root.Delegations()) > 0 { // else what is decided there next might have an earlier revision
		within, cancel := context.WithTimeout(ctx, closeWithin)
		defer cancel()
		var closing sync.WaitGroup
		for _, p := range pieces {
			closing.Go(func() { // a scope that cannot decide does not prevent the watch
				if p.remote != nil {
					_, _, _ = p.remote.events(within, referral.AboutNow(p.remote.genesis.Prefix()), false, from-1)
				} else {
					_ = n.closed(within, p.replica, from-1)
				}
			})
		}
		closing.Wait()
	}
	heads, errs := make([]scope.Head, len(pieces)), make([]error, len(pieces))
	var asking sync.WaitGroup
	for i, p := range pieces {
		asking.Go(func() {
			if p.remote != nil {
				heads[i], errs[i] = p.remote.stands(ctx, p.Key, p.End)
			} else {
				heads[i], errs[i] = p.replica.headFor(ctx, p.Key, p.End)
			}
		})
	}
	asking.Wait()
	for _, bad := range errs {
		if bad != nil && (err == nil || errors.Is(bad, scope.ErrElsewhere)) { // the latter says more
			err = bad
		}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	if n.remotes.taps.Load()+int64(len(pieces)) > maxTaps && slices.ContainsFunc(pieces, func(p piece) bool { return p.remote != nil }) {
		return nil, 0, 0, fmt.Errorf("%w: this node watches scopes that it does not hold %d times, and has no room for more", referral.ErrMute, maxTaps)
	}
	for i, p := range pieces {
		next := from
		if from == 0 {
			next = heads[i].Revision + 1
		}
		segments = append(segments, n.segment(ctx, p, next, heads[i].Compacted))
		newest, compacted = max(newest, heads[i].Revision), max(compacted, heads[i].Compacted)
	}
	return segments, newest, compacted, nil
}

// segment returns a segment from a revision on. If its scope is not held, the segment ends with ctx, or must be
// stopped.
func (n *Node) segment(ctx context.Context, p piece, next, bare int64) *WatchSegment {
	l := &WatchSegment{Part: p.replica, Key: p.Key, End: p.End, Next: next, Bare: bare}
	if p.remote != nil {
		l.remote = openRemoteWatch(ctx, p.remote, p.Key, p.End, next)
	}
	return l
}

// of returns the segment's scope.
func (l *WatchSegment) of() owner {
	if l.remote != nil {
		return owner{remote: l.remote.of}
	}
	return owner{replica: l.Part}
}

// Stop ends segments.
func Stop(segments []*WatchSegment) {
	for _, l := range segments {
		if l.remote != nil {
			l.remote.stop()
			Drop(l.Read)
		}
	}
}

// Drop releases what changes hold that will not be loaded any more.
func Drop(changes []Change) {
	for i := range changes {
		if h := changes[i].held; h != nil {
			changes[i].held = nil
			h.of.free(h)
		}
	}
}

// closeWithin is how long a watch that continues from a revision of another scope waits for all of its own scopes to
// close up to there.
const closeWithin = time.Second

// head returns the head of this node's state of the scope.
func (n *Replica) head(ctx context.Context) (h scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return h, err
	}
	return v.Head(), v.Close()
}

// headFor is head, but Compacted is the revision from which on changes of the keys [key, end) can be read.
func (n *Replica) headFor(ctx context.Context, key, end []byte) (h scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return h, err
	}
	h = v.Head()
	h.Compacted, err = v.CompactedFor(key, end)
	return h, errors.Join(err, v.Close())
}

// Done returns the revision up to which nothing is left to be read of the segment's scope.
func (l *WatchSegment) Done() int64 { return max(l.Closed, l.Next-1) }

// Follow returns the segments that replace l once everything was read up to where its scope delegated some of its
// keys, or went back to the scope above; nil if l continues as it is. The watch was requested from the revision from
// on.
func (n *Node) Follow(ctx context.Context, l *WatchSegment, from int64) (segments []*WatchSegment, err error) {
	if home := l.of().home(); home != nil && l.Next > home.Revision {
		return n.followHome(ctx, l, home, from)
	}
	parts := scope.Segments(delegated(l.of().delegations(), l.Next), l.Key, l.End)
	if len(parts) == 1 && parts[0].Given == nil {
		return nil, nil
	}
	for _, s := range parts {
		at, next, closed := l.of(), l.Next, l.Closed
		if s.Given != nil {
			next, closed = max(from, s.Given.Revision+1), 0
			if at, err = n.awaitDecider(ctx, *s.Given); err != nil {
				Stop(segments)
				return nil, err
			}
		}
		segment := n.segment(ctx, piece{at, s.Key, s.End}, next, l.Bare)
		segment.Closed = closed
		segments = append(segments, segment)
	}
	for _, to := range segments { // each segment's own stands in the order of revisions
		to.Take(l.Read...)
	}
	l.Read = nil
	Stop([]*WatchSegment{l})
	return segments, nil
}

// Merge takes from segments what they have read up to where none can come with anything older, in the order of
// revisions. done is the revision up to which that goes. held reports whether something is left; the segments that
// hold it up are asked to close.
func Merge(ctx context.Context, segments []*WatchSegment) (changes []Change, done int64, held bool) {
	done = int64(1) << 62
	newest := int64(0)
	for _, l := range segments {
		done = min(done, l.Done())
		if n := len(l.Read); n > 0 {
			newest = max(newest, l.Read[n-1].Revision)
		}
	}
	for _, l := range segments {
		n, _ := slices.BinarySearchFunc(l.Read, done+1, func(c Change, at int64) int { return cmp.Compare(c.Revision, at) })
		changes = append(changes, l.Read[:n]...)
		if l.Read = l.Read[n:]; len(l.Read) == 0 {
			l.Read = nil
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	if held = newest > done; held {
		Close(ctx, segments, newest)
	}
	return changes, done, held
}

// Watch is Replica.Watch across scopes: it continues in a child scope when keys are delegated, and delivers the
// changes of several scopes in the order of revisions. The head of what it delivers is that of the first scope.
func (n *Node) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	return n.patiently(ctx, func(ctx context.Context, b *Borrower, late <-chan struct{}) error {
		return n.watch(ctx, b, key, end, from, func(c Changes) error {
			c.Late = late
			return deliver(c)
		})
	})
}

func (n *Node) watch(ctx context.Context, b *Borrower, key, end []byte, from int64, deliver func(Changes) error) error {
	segments, _, compacted, err := n.WatchSegments(ctx, key, end, from)
	defer func() { Stop(segments) }()
	if err == nil && from != 0 && from < compacted {
		err = scope.ErrCompacted
	}
	if err != nil {
		return err
	}
	var wait heldUp
	for delivered := from - 1; ; {
		changed := n.Changed() // before reading, so that nothing falls in between
		var head scope.Head
		more := false
		for i := 0; i < len(segments); i++ {
			h, again, err := segments[i].read(ctx)
			if err != nil {
				return err
			}
			if i == 0 {
				head = h
			}
			parts, err := n.Follow(ctx, segments[i], from)
			if err != nil {
				return err
			}
			if more = more || again; parts != nil {
				segments, more = slices.Replace(segments, i, i+1, parts...), true
			}
		}
		c := Changes{Head: head}
		held := false
		var found []Change
		if len(segments) == 1 { // the usual case, and dense revisions
			found, c.Revision, segments[0].Read = segments[0].Read, segments[0].Next-1, nil
		} else {
			found, c.Revision, held = Merge(ctx, segments)
			c.WaitsFor = wait.by(segments, c.Revision, held)
		}
		c.Revision = max(c.Revision, delivered)
		delivered = c.Revision
		if err := n.deliver(ctx, b, c, found, deliver); err != nil {
			return err
		}
		if more {
			continue
		}
		var again <-chan time.Time
		if held {
			again = time.After(CloseEvery)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.root.runner.replies.done:
			return n.root.runner.replies.stopped
		}
	}
}

// deliver loads what was found and delivers it, in several parts if it is large.
func (n *Node) deliver(ctx context.Context, b *Borrower, c Changes, found []Change, deliver func(Changes) error) error {
	defer func() { Drop(found) }()
	for len(found) > 0 {
		l, rest, err := n.Load(ctx, b, found, true, false)
		if err != nil {
			return err
		}
		part := c
		part.Events = l.Events
		if found = rest; len(found) > 0 {
			part.Revision, c.WaitsFor = found[0].Revision-1, nil
		}
		l.double() // deliver makes a second copy of it
		err = deliver(part)
		l.Return()
		if err != nil || len(found) == 0 {
			return err
		}
	}
	return deliver(c)
}

// heldLong is how long changes wait for a scope before a watch reports that.
const heldLong = 3 * time.Second

// heldUp records since when changes wait.
type heldUp struct {
	since time.Time
	done  int64 // the revision up to which all scopes were done then
	told  bool
}

// by returns the scopes for which changes have waited for long, unless it was reported before.
func (h *heldUp) by(segments []*WatchSegment, done int64, held bool) (prefixes [][]byte) {
	if !held || h.since.IsZero() || done != h.done {
		*h = heldUp{since: time.Now(), done: done}
	}
	if h.told || time.Since(h.since) < heldLong {
		return nil
	}
	h.told = true
	for _, l := range segments {
		g := l.of().genesis()
		if prefix := g.Prefix(); l.Done() <= done && !slices.ContainsFunc(prefixes, func(p []byte) bool { return bytes.Equal(p, prefix) }) {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// read reads what is next for a segment.
func (l *WatchSegment) read(ctx context.Context) (h scope.Head, more bool, err error) {
	if l.Ahead() {
		return h, false, nil // the others are to come first
	}
	if l.remote != nil {
		compacted, err := l.Pull()
		if err == nil && compacted > 0 {
			err = scope.ErrCompacted
		}
		return l.remote.of.info().Head, false, err
	}
	v, err := l.Part.Read(ctx, false)
	if err != nil {
		return h, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	more, err = l.Find(v, watchMost)
	return v.Head(), more, err
}

// Pull takes what was read ahead from a scope that this node does not hold. compacted is not 0 if the segment cannot
// continue because revisions below it were compacted.
func (l *WatchSegment) Pull() (compacted int64, err error) {
	compacted, err = l.remote.give(l)
	if errors.Is(err, scope.ErrNoReader) {
		return compacted, fmt.Errorf("scope %q: %w", l.remote.of.genesis.Prefix(), err)
	}
	if err != nil {
		err = fmt.Errorf("%w: from revision %d on, watch at a node that holds the scope: %w", ErrNotHeld, l.Next, err)
	}
	return compacted, err
}
