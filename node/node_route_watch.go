package node

import (
	"cmp"
	"context"
	"errors"
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
	Part     *Part
	Key, End []byte
	Next     int64 // nothing was read from here on
	Closed   int64 // the scope has nothing else up to here
	Bare     int64 // up to here, what was there before was compacted when it was opened
	Read     []scope.Event
}

// Legs are those of a watch of the keys [key, end), in the sense of scope.Op, from a
// revision on, or from now on if it is 0; with the newest revision, and the one up to
// which what is asked for was compacted. What a scope delegated later is in its own leg,
// until Follow says otherwise.
func (n *Node) Legs(ctx context.Context, key, end []byte, from int64) (legs []*Leg, newest, compacted int64, err error) {
	before := from
	if from == 0 {
		before = math.MaxInt64
	}
	pieces, err := n.split(ctx, nil, decider{Part: n.Part}, key, end, before)
	if err != nil {
		return nil, 0, 0, err
	}
	for _, p := range pieces {
		if _, err := p.held(); err != nil {
			return nil, 0, 0, err
		}
	}
	if from > 0 && len(*n.given.Load()) > 0 { // else what is decided there next might have an earlier revision
		within, cancel := context.WithTimeout(ctx, closeWithin)
		defer cancel()
		var closing sync.WaitGroup
		for _, p := range pieces {
			closing.Go(func() { _ = n.closed(within, p.Part, from-1) }) // one that cannot decide keeps nobody from watching
		}
		closing.Wait()
	}
	for _, p := range pieces {
		h, err := p.Part.head(ctx)
		if err != nil {
			return nil, 0, 0, err
		}
		l := &Leg{Part: p.Part, Key: p.Key, End: p.End, Next: from, Bare: h.Compacted}
		if from == 0 {
			l.Next = h.Revision + 1
		}
		legs = append(legs, l)
		newest, compacted = max(newest, h.Revision), max(compacted, h.Compacted)
	}
	return legs, newest, compacted, nil
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
	parts := scope.Segments(delegated(l.Part.Delegations(), l.Next), l.Key, l.End)
	if len(parts) == 1 && parts[0].Given == nil {
		return nil, nil
	}
	for _, s := range parts {
		leg := &Leg{Part: l.Part, Key: s.Key, End: s.End, Next: l.Next, Closed: l.Closed, Bare: l.Bare}
		if s.Given != nil {
			if leg.Part, err = n.awaitPart(ctx, *s.Given); err != nil {
				return nil, err
			}
			leg.Next, leg.Closed = max(from, s.Given.Revision+1), 0
		}
		legs = append(legs, leg)
	}
	for i := range l.Read { // each leg's own stands in the order of revisions
		for _, to := range legs {
			if scope.Within(l.Read[i].Kv.Key, to.Key, to.End) {
				to.Read = append(to.Read, l.Read[i])
				break
			}
		}
	}
	return legs, nil
}

// Merge takes from legs what they have read up to where none can come with anything
// older, in the order of revisions, and says how far that is. held says that something
// is left: those that hold it up are asked to close.
func Merge(ctx context.Context, legs []*Leg) (events []scope.Event, done int64, held bool) {
	done = int64(1) << 62
	newest := int64(0)
	for _, l := range legs {
		done = min(done, l.Done())
		if n := len(l.Read); n > 0 {
			newest = max(newest, l.Read[n-1].Kv.ModRevision)
		}
	}
	for _, l := range legs {
		n, _ := slices.BinarySearchFunc(l.Read, done+1, func(e scope.Event, at int64) int { return cmp.Compare(e.Kv.ModRevision, at) })
		events = append(events, l.Read[:n]...)
		if l.Read = l.Read[n:]; len(l.Read) == 0 {
			l.Read = nil
		}
	}
	slices.SortStableFunc(events, func(a, b scope.Event) int { return cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision) })
	if held = newest > done; held {
		Close(ctx, legs, newest)
	}
	return events, done, held
}

// Watch is that of a part, and goes over scopes: it goes on in a child's when keys go
// there, and delivers the changes of several in the order of revisions. The head of
// what it delivers is that of the first scope.
func (n *Node) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	legs, _, compacted, err := n.Legs(ctx, key, end, from)
	if err == nil && from != 0 && from < compacted {
		err = scope.ErrCompacted
	}
	if err != nil {
		return err
	}
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
		if len(legs) == 1 { // the usual case, and dense revisions
			c.Events, c.Revision, legs[0].Read = legs[0].Read, legs[0].Next-1, nil
		} else {
			c.Events, c.Revision, held = Merge(ctx, legs)
		}
		c.Revision = max(c.Revision, delivered)
		delivered = c.Revision
		if err := deliver(c); err != nil {
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

// read reads what is next for a leg.
func (l *Leg) read(ctx context.Context) (h scope.Head, more bool, err error) {
	if len(l.Read) >= watchMost {
		return h, false, nil // the others are to come first
	}
	v, err := l.Part.Read(ctx, false)
	if err != nil {
		return h, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if h = v.Head(); l.Next <= h.Revision {
		var events []scope.Event
		if events, l.Next, err = v.Events(l.Next, h.Revision, l.Key, l.End, watchMost); err != nil {
			return h, false, err
		}
		l.Read = append(l.Read, events...)
	}
	if more = l.Next <= h.Revision; !more {
		l.Closed = h.Closed()
	}
	return h, more, nil
}
