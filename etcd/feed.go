package etcd

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/aweigh/aweigh/node"
)

// A feed keeps where the newest changes of all keys stand, read once for all watches that are
// up to date. Every watch knows the revision that it needs next; one that the
// feed no longer holds reads the store instead. So nothing waits for slow
// watchers, and nothing grows with them. The zero value is ready.
type feed struct {
	mu sync.Mutex
	window
	bytes int // of the keys
}

// window is the changes of the revisions from <= r < next, in their order.
type window struct {
	events     []node.Change
	from, next int64
	closed     int64 // the scope has no other changes up to here; 0 if next is not the newest
}

const (
	feedEvents = 4096      // kept at most
	feedBytes  = 256 << 10 // of their keys
	feedRead   = 1000      // changes read at a time, about
	feedBehind = 4096      // revisions that are worth to be read after a pause
)

// everything is the range of all keys.
var everything = []byte{0}

// pull brings the feed towards the newest revision, and reports whether there is
// more to read at once.
func (s *source) pull(ctx context.Context) (w window, more bool, err error) {
	f := &s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	err = s.look(ctx, func(v *node.View) error {
		h := v.Head()
		f.closed = 0
		if f.next < max(h.Compacted, h.Revision-feedBehind, 1) {
			f.window, f.bytes = window{from: h.Revision + 1, next: h.Revision + 1}, 0
		}
		if f.next > h.Revision {
			f.closed = h.ClosedTimestamp()
			return nil
		}
		places, next, err := v.Places(f.next, h.Revision, everything, everything, feedRead)
		if err != nil {
			return err
		}
		changes := make([]node.Change, len(places))
		for i, p := range places {
			changes[i] = node.Change{Place: p, Part: s.part}
		}
		f.add(changes, next)
		if more = next <= h.Revision; !more {
			f.closed = h.ClosedTimestamp()
		}
		return nil
	})
	return f.window, more, err
}

// add appends, and forgets the oldest revisions where that is too much. Windows
// given away before keep what they show: what lies behind them is written, and
// what goes is not.
func (f *feed) add(events []node.Change, next int64) {
	f.events, f.next = append(f.events, events...), next
	for i := range events {
		f.bytes += len(events[i].Key)
	}
	if len(f.events) <= feedEvents && f.bytes <= feedBytes {
		return
	}
	gone := 0 // and some more, so that this is rare
	for len(f.events)-gone > feedEvents*3/4 || f.bytes > feedBytes*3/4 {
		f.from = f.events[gone].Revision + 1
		for gone < len(f.events) && f.events[gone].Revision < f.from {
			f.bytes -= len(f.events[gone].Key)
			gone++
		}
	}
	f.events = slices.Clone(f.events[gone:]) // the rest of the array would keep what is gone
}

// since is the events from a revision on, false if the window does not reach back
// to it.
func (w *window) since(revision int64) ([]node.Change, bool) {
	if revision < w.from {
		return nil, false
	}
	i := sort.Search(len(w.events), func(i int) bool { return w.events[i].Revision >= revision })
	return slices.Clip(w.events[i:]), true // a caller that appends to it gets an array of its own
}
