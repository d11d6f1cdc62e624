package etcd

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// reading is one round of deliveries.
type reading struct {
	*watchStream
	shared bool
	recent map[*source]window // of the feeds, as they were read in this round
	more   bool               // there is more to read at once
}

// watch reads and delivers what is new for one watch: one loan of it at a time, so that
// nothing but that is held while the client takes it.
func (r *reading) watch(x *watch) error {
	if len(x.found) > 0 {
		r.more = true // what came since was not looked for
		return r.give(x)
	}
	for i := 0; i < len(x.segments); i++ {
		l := x.segments[i]
		if !l.Ahead() {
			gone, err := r.segment(x, l)
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
			x.segments, r.more = slices.Replace(x.segments, i, i+1, parts...), true
		}
	}
	if len(x.segments) == 1 {
		l := x.segments[0]
		x.found, x.after = l.Read, max(x.next, l.Done()+1) // as far as a list goes: node.Range
		l.Read = nil
		return r.give(x)
	}
	found, done, held := node.Merge(r.ctx, x.segments)
	r.held = r.held || held
	x.found, x.after = found, max(x.next, done+1)
	return r.give(x)
}

// give delivers a loan of what was found.
func (r *reading) give(x *watch) error {
	more, err := r.watchStream.give(x)
	if errors.Is(err, node.ErrInstalling) {
		r.held = true
		return nil
	}
	r.more = r.more || more
	return err
}

// segment reads what is next for a segment; gone says that the watch ended, because that was
// compacted.
func (r *reading) segment(x *watch, l *node.WatchSegment) (gone bool, err error) {
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
		if changes, ok := recent.since(l.Next); ok {
			if l.Closed = max(l.Closed, recent.closed); recent.next > l.Next {
				l.Next = recent.next
			}
			l.Take(changes...)
			return false, nil
		}
	}
	var compacted int64
	err = of.look(r.ctx, func(v *node.View) error {
		compacted = v.Head().Compacted
		more, err := l.Find(v, x.most)
		r.more = r.more || more
		return err
	})
	if errors.Is(err, scope.ErrCompacted) {
		return true, r.compacted(x, compacted)
	}
	return false, err
}
