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

	"github.com/aweigh/aweigh/scope"
)

// A watch of keys that several scopes decide about has a leg in each. What the legs
// bring is delivered in the order of revisions, which go by time where there are
// several scopes: up to where no scope can come with anything older. So a client that
// goes on from the last revision that it saw misses nothing, and hears nothing twice.
// A scope at rest is asked to close while others have news, and one that cannot decide
// holds up those watches that ask for its keys.

// Leg is a watch's part in one scope.
type Leg struct {
	Part     *Part // nil if this node does not hold the scope
	tap      *tap  // that brings what is read there, if Part is nil
	Key, End []byte
	Next     int64 // nothing was read from here on
	Closed   int64 // the scope has nothing else up to here
	Bare     int64 // up to here, what was there before was compacted when it was opened
	Read     []Change
}

// Legs are those of a watch of the keys [key, end), in the sense of scope.Op, from a
// revision on, or from now on if it is 0; with the newest revision, and the one up to
// which what is asked for was compacted. What a scope delegated later is in its own leg,
// until Follow says otherwise. They are to be stopped; ctx ends those in scopes that are not held.
func (n *Node) Legs(ctx context.Context, key, end []byte, from int64) (legs []*Leg, newest, compacted int64, err error) {
	before := from
	if from == 0 {
		before = math.MaxInt64
	}
	for range legsTries {
		var pieces []piece
		if pieces, err = n.split(ctx, nil, decider{Part: n.Part}, key, end, before); err != nil {
			return nil, 0, 0, err
		}
		legs, newest, compacted, err = n.legsOf(ctx, pieces, from)
		if !errors.Is(err, scope.ErrElsewhere) { // else a scope that is not held has delegated some of them, as is known now
			return legs, newest, compacted, err
		}
	}
	return nil, 0, 0, fmt.Errorf("%w: it delegates without end: %w", ErrMute, err)
}

// legsTries bounds how many delegations of scopes that are not held are learned one after the other.
const legsTries = 64

func (n *Node) legsOf(ctx context.Context, pieces []piece, from int64) (legs []*Leg, newest, compacted int64, err error) {
	if from > 0 && len(*n.given.Load()) > 0 { // else what is decided there next might have an earlier revision
		within, cancel := context.WithTimeout(ctx, closeWithin)
		defer cancel()
		var closing sync.WaitGroup
		for _, p := range pieces {
			closing.Go(func() { // one that cannot decide keeps nobody from watching
				if p.foreign != nil {
					_, _, _ = p.foreign.events(within, aboutNow(p.foreign.genesis.Prefix()), false, from-1)
				} else {
					_ = n.closed(within, p.Part, from-1)
				}
			})
		}
		closing.Wait()
	}
	heads, errs := make([]scope.Head, len(pieces)), make([]error, len(pieces))
	var asking sync.WaitGroup
	for i, p := range pieces {
		asking.Go(func() {
			if p.foreign != nil {
				heads[i], errs[i] = p.foreign.stands(ctx, p.Key, p.End)
			} else {
				heads[i], errs[i] = p.Part.head(ctx)
			}
		})
	}
	asking.Wait()
	for _, bad := range errs {
		if bad != nil && (err == nil || errors.Is(bad, scope.ErrElsewhere)) { // which tells more
			err = bad
		}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	if n.foreigners.taps.Load()+int64(len(pieces)) > maxTaps && slices.ContainsFunc(pieces, func(p piece) bool { return p.foreign != nil }) {
		return nil, 0, 0, fmt.Errorf("%w: this node watches scopes that it does not hold %d times, and has no room for more", ErrMute, maxTaps)
	}
	for i, p := range pieces {
		next := from
		if from == 0 {
			next = heads[i].Revision + 1
		}
		legs = append(legs, n.leg(ctx, p, next, heads[i].Compacted))
		newest, compacted = max(newest, heads[i].Revision), max(compacted, heads[i].Compacted)
	}
	return legs, newest, compacted, nil
}

// leg is one from a revision on. If its scope is not held, it ends with ctx, or is to be stopped.
func (n *Node) leg(ctx context.Context, p piece, next, bare int64) *Leg {
	l := &Leg{Part: p.Part, Key: p.Key, End: p.End, Next: next, Bare: bare}
	if p.foreign != nil {
		l.tap = openTap(ctx, p.foreign, p.Key, p.End, next)
	}
	return l
}

// of is the leg's scope.
func (l *Leg) of() decider {
	if l.tap != nil {
		return decider{foreign: l.tap.of}
	}
	return decider{Part: l.Part}
}

// Stop ends legs.
func Stop(legs []*Leg) {
	for _, l := range legs {
		if l.tap != nil {
			l.tap.stop()
			Drop(l.Read)
		}
	}
}

// Drop gives back what changes hold that are not to be loaded any more.
func Drop(changes []Change) {
	for i := range changes {
		if h := changes[i].held; h != nil {
			changes[i].held = nil
			h.of.free(h)
		}
	}
}

// closeWithin is how long a watch that goes on from what was heard of another scope waits
// for all of its own to close up to there.
const closeWithin = time.Second

// head is where this node's state of the scope stands.
func (n *Part) head(ctx context.Context) (h scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return h, err
	}
	return v.Head(), v.Close()
}

// Done is up to where nothing is left to be read of the leg's scope.
func (l *Leg) Done() int64 { return max(l.Closed, l.Next-1) }

// Follow are the legs that take the place of one when all was read up to where its
// scope delegated some of its keys; nil if it goes on as it is. The watch was asked for
// from a revision on.
func (n *Node) Follow(ctx context.Context, l *Leg, from int64) (legs []*Leg, err error) {
	parts := scope.Segments(delegated(l.of().delegations(), l.Next), l.Key, l.End)
	if len(parts) == 1 && parts[0].Given == nil {
		return nil, nil
	}
	for _, s := range parts {
		at, next, closed := l.of(), l.Next, l.Closed
		if s.Given != nil {
			next, closed = max(from, s.Given.Revision+1), 0
			if at, err = n.awaitDecider(ctx, *s.Given); err != nil {
				Stop(legs)
				return nil, err
			}
		}
		leg := n.leg(ctx, piece{at, s.Key, s.End}, next, l.Bare)
		leg.Closed = closed
		legs = append(legs, leg)
	}
	for _, to := range legs { // each leg's own stands in the order of revisions
		to.Take(l.Read...)
	}
	l.Read = nil
	Stop([]*Leg{l})
	return legs, nil
}

// Merge takes from legs what they have read up to where none can come with anything
// older, in the order of revisions, and says how far that is. held says that something
// is left: those that hold it up are asked to close.
func Merge(ctx context.Context, legs []*Leg) (changes []Change, done int64, held bool) {
	done = int64(1) << 62
	newest := int64(0)
	for _, l := range legs {
		done = min(done, l.Done())
		if n := len(l.Read); n > 0 {
			newest = max(newest, l.Read[n-1].Revision)
		}
	}
	for _, l := range legs {
		n, _ := slices.BinarySearchFunc(l.Read, done+1, func(c Change, at int64) int { return cmp.Compare(c.Revision, at) })
		changes = append(changes, l.Read[:n]...)
		if l.Read = l.Read[n:]; len(l.Read) == 0 {
			l.Read = nil
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	if held = newest > done; held {
		Close(ctx, legs, newest)
	}
	return changes, done, held
}

// Watch is that of a part, and goes over scopes: it goes on in a child's when keys go
// there, and delivers the changes of several in the order of revisions. The head of
// what it delivers is that of the first scope.
func (n *Node) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	return n.patiently(ctx, func(ctx context.Context, b *Borrower, late <-chan struct{}) error {
		return n.watch(ctx, b, key, end, from, func(c Changes) error {
			c.Late = late
			return deliver(c)
		})
	})
}

func (n *Node) watch(ctx context.Context, b *Borrower, key, end []byte, from int64, deliver func(Changes) error) error {
	legs, _, compacted, err := n.Legs(ctx, key, end, from)
	defer func() { Stop(legs) }()
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
		for i := 0; i < len(legs); i++ {
			h, again, err := legs[i].read(ctx)
			if err != nil {
				return err
			}
			if i == 0 {
				head = h
			}
			parts, err := n.Follow(ctx, legs[i], from)
			if err != nil {
				return err
			}
			if more = more || again; parts != nil {
				legs, more = slices.Replace(legs, i, i+1, parts...), true
			}
		}
		c := Changes{Head: head}
		held := false
		var found []Change
		if len(legs) == 1 { // the usual case, and dense revisions
			found, c.Revision, legs[0].Read = legs[0].Read, legs[0].Next-1, nil
		} else {
			found, c.Revision, held = Merge(ctx, legs)
			c.WaitsFor = wait.by(legs, c.Revision, held)
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
		case <-n.runner.replies.done:
			return n.runner.replies.stopped
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
		l.double() // for what deliver makes of it
		err = deliver(part)
		l.Return()
		if err != nil || len(found) == 0 {
			return err
		}
	}
	return deliver(c)
}

// heldLong is how long changes wait for a scope before a watch says so.
const heldLong = 3 * time.Second

// heldUp is since when changes wait.
type heldUp struct {
	since time.Time
	done  int64 // up to where all scopes were then
	told  bool
}

// by is for which scopes changes have waited for long, if that was not told.
func (h *heldUp) by(legs []*Leg, done int64, held bool) (prefixes [][]byte) {
	if !held || h.since.IsZero() || done != h.done {
		*h = heldUp{since: time.Now(), done: done}
	}
	if h.told || time.Since(h.since) < heldLong {
		return nil
	}
	h.told = true
	for _, l := range legs {
		g := l.of().genesis()
		if prefix := g.Prefix(); l.Done() <= done && !slices.ContainsFunc(prefixes, func(p []byte) bool { return bytes.Equal(p, prefix) }) {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// read reads what is next for a leg.
func (l *Leg) read(ctx context.Context) (h scope.Head, more bool, err error) {
	if l.Ahead() {
		return h, false, nil // the others are to come first
	}
	if l.tap != nil {
		compacted, err := l.Pull()
		if err == nil && compacted > 0 {
			err = scope.ErrCompacted
		}
		return l.tap.of.info().Head, false, err
	}
	v, err := l.Part.Read(ctx, false)
	if err != nil {
		return h, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	more, err = l.Find(v, watchMost)
	return v.Head(), more, err
}

// Pull takes what has come of a scope that this node does not hold, as far as it was read ahead. compacted is not 0
// if the leg cannot go on, since what is below was compacted.
func (l *Leg) Pull() (compacted int64, err error) {
	compacted, err = l.tap.give(l)
	if err != nil {
		err = fmt.Errorf("%w: from revision %d on, watch at a node that holds the scope: %w", ErrNotHeld, l.Next, err)
	}
	return compacted, err
}
