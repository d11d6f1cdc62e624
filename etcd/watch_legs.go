package etcd

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// A watch of keys that several scopes decide about has a leg in each. What the legs
// bring is delivered in the order of revisions, which go by time where there are
// several scopes: up to where no scope can come with anything older. So a client that
// goes on from the last revision that it saw misses nothing, and hears nothing twice.
// A scope at rest is asked to close while others have news, and one that cannot decide
// holds up those watches that ask for its keys.

// leg is a watch's part in one scope.
type leg struct {
	of       *source
	key, end []byte
	next     int64 // nothing was read from here on
	closed   int64 // the scope has nothing else up to here
	bare     int64 // up to here, what was there before was compacted when it was opened
	read     []scope.Event
}

// legEvents bounds what a leg reads ahead of the others.
const legEvents = 4096

// open gives a watch its legs, and tells the newest revision and the one up to which
// what it asks for was compacted.
func (w *watchStream) open(x *watch) (newest, compacted int64, err error) {
	pieces, err := w.node.Pieces(w.ctx, x.key, x.end)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range pieces {
		l := &leg{of: w.sources.of(p.Part), key: p.Key, end: p.End, next: x.start}
		at, gone, err := w.stands(l.of)
		if err != nil {
			return 0, 0, err
		}
		if l.bare = gone; x.start == 0 {
			l.next = at + 1
		}
		newest, compacted = max(newest, at), max(compacted, gone)
		x.legs = append(x.legs, l)
	}
	if x.next = x.start; x.start == 0 {
		x.next = newest + 1
	}
	return newest, compacted, nil
}

// stands is where a scope's state stands: its newest revision, and up to where it was
// compacted.
func (w *watchStream) stands(s *source) (newest, compacted int64, err error) {
	err = s.look(w.ctx, func(v *node.View) error {
		newest, compacted = v.Head().Revision, v.Head().Compacted
		return nil
	})
	return newest, compacted, err
}

// reading is one round of deliveries.
type reading struct {
	*watchStream
	shared bool
	recent map[*source]window // of the feeds, as they were read in this round
	more   bool               // there is more to read at once
}

// watch reads and delivers what is new for one watch.
func (r *reading) watch(x *watch) error {
	for i := 0; i < len(x.legs); i++ {
		l := x.legs[i]
		if len(l.read) < legEvents {
			if gone, err := r.leg(x, l); gone || err != nil {
				return err
			}
		}
		legs, err := r.parts(x, l)
		if err != nil {
			return err
		}
		if legs != nil {
			x.legs = slices.Replace(x.legs, i, i+1, legs...)
			r.more = true
		}
	}
	if len(x.legs) == 1 {
		l := x.legs[0]
		events := l.read
		l.read = nil
		return r.give(x, events, max(x.next, l.next))
	}
	return r.merge(x)
}

// leg reads what is next for a leg; gone says that the watch ended, because that was
// compacted.
func (r *reading) leg(x *watch, l *leg) (gone bool, err error) {
	if r.shared {
		recent, ok := r.recent[l.of]
		if !ok {
			var more bool
			if recent, more, err = l.of.pull(r.ctx); err != nil {
				return false, err
			}
			r.recent[l.of], r.more = recent, r.more || more
		}
		if events, ok := recent.since(l.next); ok {
			if l.closed = max(l.closed, recent.closed); recent.next > l.next {
				l.next = recent.next
			}
			l.take(x, events)
			return false, nil
		}
	}
	var events []scope.Event
	var compacted int64
	err = l.of.look(r.ctx, func(v *node.View) (err error) {
		h := v.Head()
		compacted = h.Compacted
		if l.next <= h.Revision {
			events, l.next, err = v.Events(l.next, h.Revision, l.key, l.end, x.most)
		}
		if l.next > h.Revision {
			l.closed = h.Closed()
		} else {
			r.more = true
		}
		return err
	})
	if errors.Is(err, scope.ErrCompacted) {
		return true, r.compacted(x, compacted)
	}
	x.adapt(events)
	l.take(x, events)
	return false, err
}

// take keeps those of the events that are the leg's.
func (l *leg) take(x *watch, events []scope.Event) {
	if len(x.legs) == 1 && len(l.read) == 0 { // the usual case: pick looks at the keys
		l.read = events
		return
	}
	for i := range events {
		if scope.Within(events[i].Kv.Key, l.key, l.end) {
			l.read = append(l.read, events[i])
		}
	}
}

// parts are what a leg falls into when all was read up to where its scope delegated
// some of its keys; nil if it did not.
func (r *reading) parts(x *watch, l *leg) (legs []*leg, err error) {
	key := l.key
	for _, d := range scope.Touching(l.of.part.Delegations(), l.key, l.end) {
		if d.Revision >= l.next {
			continue // what it read does not reach there yet
		}
		if bytes.Compare(key, d.Prefix) < 0 {
			legs = append(legs, l.sub(key, d.Prefix))
			key = d.Prefix
		}
		p, err := r.node.Child(r.ctx, d)
		if err != nil {
			return nil, err
		}
		end := l.end
		last := scope.PrefixEnd(d.Prefix)
		inside := len(end) == 0 || scope.Covers(d.Prefix, key, end)
		if !inside {
			end = last
		}
		legs = append(legs, &leg{of: r.sources.of(p), key: key, end: end, next: max(x.start, d.Revision+1), bare: l.bare})
		if inside {
			key = nil
			break
		}
		key = last
	}
	if len(legs) == 0 {
		return nil, nil
	}
	if key != nil {
		legs = append(legs, l.sub(key, l.end))
	}
	legs[0].read = append(l.read, legs[0].read...) // what was read stands in the order of revisions
	return legs, nil
}

// sub is a part of a leg in the same scope.
func (l *leg) sub(key, end []byte) *leg {
	return &leg{of: l.of, key: key, end: end, next: l.next, closed: l.closed, bare: l.bare}
}

// merge delivers what all legs have read up to where none can come with anything
// older, and has those close that hold up others.
func (r *reading) merge(x *watch) error {
	bound, newest := int64(1)<<62, int64(0)
	for _, l := range x.legs {
		bound = min(bound, max(l.closed, l.next-1))
		if n := len(l.read); n > 0 {
			newest = max(newest, l.read[n-1].Kv.ModRevision)
		}
	}
	var events []scope.Event
	for _, l := range x.legs {
		n, _ := slices.BinarySearchFunc(l.read, bound+1, func(e scope.Event, at int64) int { return cmp.Compare(e.Kv.ModRevision, at) })
		events = append(events, l.read[:n]...)
		if l.read = l.read[n:]; len(l.read) == 0 {
			l.read = nil
		}
	}
	slices.SortStableFunc(events, func(a, b scope.Event) int { return cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision) })
	if newest > bound {
		r.held = true
		for _, l := range x.legs {
			if max(l.closed, l.next-1) < newest {
				l.of.close(r.ctx)
			}
		}
	}
	return r.give(x, events, max(x.next, bound+1))
}
