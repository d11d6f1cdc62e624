package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Changes are what a Watch delivers: the changes of whole revisions, in order.
type Changes struct {
	Head     scope.Head // of the state that they were read from
	Events   []scope.Event
	Revision int64 // everything up to here has been delivered
	// WaitsFor are the prefixes of scopes that have not decided for some seconds, while
	// changes of others, which may be later than theirs, wait for them. It is said once.
	WaitsFor [][]byte
	went     bool // keys of the range are another scope's now
}

// watchMost is about how many changes one delivery of a Watch looks at.
const watchMost = 1000

// Watch delivers the changes of the keys [key, end), in the sense of scope.Op,
// from a revision on, or from now on if it is 0. The first delivery comes at
// once and may be empty; a later one comes with every final block, with or
// without events, so that the caller sees progress. It returns the error of
// deliver, scope.ErrCompacted if a revision cannot be read any more, ErrStopped,
// or the reason for which ctx ended; scope.ErrElsewhere when keys of the range have gone
// to another scope. deliver is called from one goroutine, and
// while it works changes are not lost but wait in the store.
func (n *Part) Watch(ctx context.Context, key, end []byte, from int64, deliver func(Changes) error) error {
	for {
		changed := n.Changed() // before reading, so that nothing falls in between
		c, next, more, err := n.changes(ctx, key, end, from)
		if err != nil {
			return err
		}
		from = next
		if err := deliver(c); err != nil {
			return err
		}
		if more {
			continue
		}
		if c.went {
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

// changes reads one delivery; more says that the next can be read at once.
func (n *Part) changes(ctx context.Context, key, end []byte, from int64) (c Changes, next int64, more bool, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return c, from, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	c.Head = v.Head()
	touched, err := v.Touching(key, end)
	if c.went = len(touched) > 0; err != nil {
		return c, from, false, err
	}
	if from == 0 {
		from = c.Head.Revision + 1
	}
	if from > c.Head.Revision {
		c.Revision = c.Head.Revision
		return c, from, false, nil
	}
	c.Events, next, err = v.Events(from, c.Head.Revision, key, end, watchMost)
	c.Revision = next - 1
	return c, next, next <= c.Head.Revision, err
}
