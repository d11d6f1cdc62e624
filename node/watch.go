package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Changes is one delivery of a Watch: the changes of whole revisions, in order.
type Changes struct {
	Head     scope.Head     // of the state that they were read from
	Events   []*scope.Event // valid until deliver returns
	Revision int64          // everything up to here has been delivered
	// WaitsFor holds the prefixes of scopes that have not decided for some seconds, while changes of other scopes,
	// which may be later than theirs, wait for them. It is set once.
	WaitsFor [][]byte
	// Late is closed when others wait for the memory that the events take, and these were not taken for long. Then
	// deliver must return, and the watch ends.
	Late <-chan struct{}
}

// Change is a change that a watch found, and has not read yet if this node holds its scope.
type Change struct {
	scope.Place
	Part *Replica    // nil if this node does not hold the scope
	held *heldChange // its content, if Part is nil
	of   *span       // for a place that stands for the rest of a revision: the requested keys
}

// span is a range of keys, in the sense of scope.Op.
type span struct{ key, end []byte }

const (
	watchMost  = 1000     // changes that one delivery of a Watch looks at, about
	aheadMost  = 1024     // changes that a segment finds ahead of others
	aheadBytes = 64 << 10 // of their keys
)

// Ahead reports whether a segment has found enough for now.
func (l *WatchSegment) Ahead() bool {
	if len(l.Read) >= aheadMost {
		return true
	}
	keys := 0
	for i := range l.Read {
		keys += len(l.Read[i].Key)
	}
	return keys >= aheadBytes || len(l.Read) > 0 && l.remote != nil && l.heldBytes() >= remoteRoom
}

// heldBytes returns the bytes that a segment of a foreign scope holds.
func (l *WatchSegment) heldBytes() (n int64) {
	for i := range l.Read {
		if h := l.Read[i].held; h != nil { // not of a scope that it was part of, and that is held
			n += h.size
		}
	}
	return n
}

// Take appends those of the changes that are in the segment's range, in their order.
func (l *WatchSegment) Take(changes ...Change) {
	for i := range changes {
		if c := &changes[i]; c.Remainder {
			l.Read = append(l.Read, Change{Place: c.Place, Part: c.Part, of: &span{l.Key, l.End}})
		} else if scope.Within(c.Key, l.Key, l.End) {
			l.Read = append(l.Read, *c)
		}
	}
}

// Find reads what is next for a segment of a scope that this node holds, without content. It examines about most
// changes. more reports whether there are more. The error wraps scope.ErrNoReader once the scope lets this node read no
// more: then nothing new comes.
func (l *WatchSegment) Find(v *View, most int) (more bool, err error) {
	if l.Part.refused.Load() {
		return false, fmt.Errorf("scope %q: %w", l.Part.prefix, scope.ErrNoReader)
	}
	h := v.Head()
	if l.Next <= h.Revision {
		var places []scope.Place
		if places, l.Next, err = v.Places(l.Next, h.Revision, l.Key, l.End, most); err != nil {
			return false, err
		}
		for _, p := range places {
			l.Take(Change{Place: p, Part: l.Part})
		}
	}
	if more = l.Next <= h.Revision; !more {
		l.Closed = h.ClosedTimestamp()
	}
	return more, nil
}

// Watch delivers the changes of the keys [key, end), in the sense of scope.Op, from a revision on, or from now on if
// it is 0. The first delivery comes at once and may be empty; a later one comes with every final block, with or
// without events, so that the caller sees progress. Watch returns the error of deliver; scope.ErrCompacted if a
// revision can no longer be read; scope.ErrElsewhere if keys of the range were delegated; ErrStopped; or the reason
// why ctx ended. deliver is called from one goroutine. While it works, changes are not lost but wait in the store.
func (n *Replica) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	return n.of.patiently(ctx, func(ctx context.Context, b *Borrower, late <-chan struct{}) error {
		return n.watch(ctx, b, &WatchSegment{Part: n, Key: key, End: end, Next: from}, func(c Changes) error {
			c.Late = late
			return deliver(c)
		})
	})
}

func (n *Replica) watch(ctx context.Context, b *Borrower, l *WatchSegment, deliver func(Changes) error) error {
	for {
		changed := n.Changed() // before reading, so that nothing falls in between
		c, went, more, err := n.changes(ctx, l)
		if err != nil {
			return err
		}
		found := l.Read
		l.Read = nil
		if err := n.of.deliver(ctx, b, c, found, deliver); err != nil {
			return err
		}
		if more {
			continue
		}
		if went {
			return fmt.Errorf("node: %w from here on", scope.ErrElsewhere)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.runner.replies.done:
			return n.runner.replies.stopped
		}
	}
}

// changes finds what is next for a segment. went reports whether keys of its range are another scope's now, and more
// whether more can be read at once.
func (n *Replica) changes(ctx context.Context, l *WatchSegment) (c Changes, went, more bool, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return c, false, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	c.Head = v.Head()
	touched, err := v.Touching(l.Key, l.End)
	if err != nil {
		return c, false, false, err
	}
	if l.Next == 0 {
		l.Next = c.Head.Revision + 1
	}
	more, err = l.Find(v, watchMost)
	c.Revision = min(l.Next-1, c.Head.Revision)
	return c, len(touched) > 0, more, err
}
