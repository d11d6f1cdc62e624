package etcd

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// Bounds of what a leg reads ahead of the others.
const (
	legEvents = 4096
	legBytes  = 4 << 20
)

// ahead reports whether a leg has read enough.
func ahead(l *node.Leg) bool {
	size := 0
	for i := range l.Read {
		size += sizeOf(&l.Read[i])
	}
	return len(l.Read) >= legEvents || size >= legBytes
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
		if !ahead(l) {
			gone, err := r.leg(x, l)
			if errors.Is(err, node.ErrInstalling) { // its state comes, and the other watches need not wait for it
				r.held = true
				return nil
			}
			if gone || err != nil {
				return err
			}
		}
		parts, err := r.node.Follow(r.ctx, l, x.start)
		if err != nil {
			return err
		}
		if parts != nil {
			x.legs, r.more = slices.Replace(x.legs, i, i+1, parts...), true
		}
	}
	if len(x.legs) == 1 {
		l := x.legs[0]
		events := l.Read
		l.Read = nil
		return r.give(x, events, max(x.next, l.Done()+1)) // as far as a list goes: node.Range
	}
	events, done, held := node.Merge(r.ctx, x.legs)
	r.held = r.held || held
	return r.give(x, events, max(x.next, done+1))
}

// leg reads what is next for a leg; gone says that the watch ended, because that was
// compacted.
func (r *reading) leg(x *watch, l *node.Leg) (gone bool, err error) {
	if l.Part == nil { // this node does not hold the scope
		compacted, err := l.Pull()
		if err == nil && compacted > 0 {
			return true, r.compacted(x, compacted)
		}
		return false, err
	}
	of := r.sources.of(l.Part)
	if r.shared {
		recent, ok := r.recent[of]
		if !ok {
			var more bool
			if recent, more, err = of.pull(r.ctx); err != nil {
				return false, err
			}
			r.recent[of], r.more = recent, r.more || more
		}
		if events, ok := recent.since(l.Next); ok {
			if l.Closed = max(l.Closed, recent.closed); recent.next > l.Next {
				l.Next = recent.next
			}
			x.take(l, events)
			return false, nil
		}
	}
	var events []scope.Event
	var compacted int64
	err = of.look(r.ctx, func(v *node.View) (err error) {
		h := v.Head()
		compacted = h.Compacted
		if l.Next <= h.Revision {
			events, l.Next, err = v.Events(l.Next, h.Revision, l.Key, l.End, x.most)
		}
		if l.Next > h.Revision {
			l.Closed = h.Closed()
		} else {
			r.more = true
		}
		return err
	})
	if errors.Is(err, scope.ErrCompacted) {
		return true, r.compacted(x, compacted)
	}
	x.adapt(events)
	x.take(l, events)
	return false, err
}

// take keeps those of the events that are a leg's.
func (x *watch) take(l *node.Leg, events []scope.Event) {
	if len(x.legs) == 1 && len(l.Read) == 0 { // the usual case: pick looks at the keys
		l.Read = events
		return
	}
	for i := range events {
		if scope.Within(events[i].Kv.Key, l.Key, l.End) {
			l.Read = append(l.Read, events[i])
		}
	}
}
