package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Changes are what a Watch delivers: the changes of whole revisions, in order.
type Changes struct {
	Head     scope.Head     // of the state that they were read from
	Events   []*scope.Event // valid until deliver returns
	Revision int64          // everything up to here has been delivered
	// WaitsFor are the prefixes of scopes that have not decided for some seconds, while
	// changes of others, which may be later than theirs, wait for them. It is said once.
	WaitsFor [][]byte
	// Late is closed when others wait for the room that the events take, and these were not
	// taken for long: deliver is to return then, and the watch ends.
	Late <-chan struct{}
}

// Change is a change that a watch found, and has not read yet if this node holds its scope.
type Change struct {
	scope.Place
	Part *Part       // nil if this node does not hold the scope
	held *heldChange // then, what it is
	of   *span       // of a place that stands for the rest of a revision: the keys that are asked for
}

// span is a range of keys, in the sense of scope.Op.
type span struct{ key, end []byte }

const (
	watchMost  = 1000     // changes that one delivery of a Watch looks at, about
	aheadMost  = 1024     // changes that a leg finds ahead of others
	aheadBytes = 64 << 10 // of their keys
)

// Ahead reports whether a leg has found enough for now.
func (l *Leg) Ahead() bool {
	if len(l.Read) >= aheadMost {
		return true
	}
	keys := 0
	for i := range l.Read {
		keys += len(l.Read[i].Key)
	}
	return keys >= aheadBytes || len(l.Read) > 0 && l.tap != nil && l.heldBytes() >= tapRoom
}

// heldBytes is what a leg of a scope that is not held has been brought.
func (l *Leg) heldBytes() (n int64) {
	for i := range l.Read {
		if h := l.Read[i].held; h != nil { // not of a scope that it was part of, and that is held
			n += h.size
		}
	}
	return n
}

// Take keeps those of the changes that are the leg's, in their order.
func (l *Leg) Take(changes ...Change) {
	for i := range changes {
		if c := &changes[i]; c.Rest {
			l.Read = append(l.Read, Change{Place: c.Place, Part: c.Part, of: &span{l.Key, l.End}})
		} else if scope.Within(c.Key, l.Key, l.End) {
			l.Read = append(l.Read, *c)
		}
	}
}

// Find reads what is next for a leg of a scope that this node holds, without content: it looks at
// about so many changes. more says that there is more.
func (l *Leg) Find(v *View, most int) (more bool, err error) {
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
		l.Closed = h.Closed()
	}
	return more, nil
}

// Watch delivers the changes of the keys [key, end), in the sense of scope.Op,
// from a revision on, or from now on if it is 0. The first delivery comes at
// once and may be empty; a later one comes with every final block, with or
// without events, so that the caller sees progress. It returns the error of
// deliver, scope.ErrCompacted if a revision cannot be read any more, ErrStopped,
// or the reason for which ctx ended; scope.ErrElsewhere when keys of the range have gone
// to another scope. deliver is called from one goroutine, and
// while it works changes are not lost but wait in the store.
func (n *Part) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	return n.of.patiently(ctx, func(ctx context.Context, b *Borrower, late <-chan struct{}) error {
		return n.watch(ctx, b, &Leg{Part: n, Key: key, End: end, Next: from}, func(c Changes) error {
			c.Late = late
			return deliver(c)
		})
	})
}

func (n *Part) watch(ctx context.Context, b *Borrower, l *Leg, deliver func(Changes) error) error {
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

// changes finds what is next for a leg; went says that keys of its range are another scope's now, and
// more that the next can be read at once.
func (n *Part) changes(ctx context.Context, l *Leg) (c Changes, went, more bool, err error) {
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
