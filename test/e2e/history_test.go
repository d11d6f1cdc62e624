package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
)

type kind int

const (
	get kind = iota
	put
	swap // set to value if it is old
	del
)

func (k kind) String() string { return [...]string{"get", "put", "swap", "delete"}[k] }

// fate is what a client knows of an operation that it called.
type fate int

const (
	done    fate = iota // the answer came
	refused             // it had no effect and will have none, says the answer
	unknown             // no answer, or that it is not decided yet
)

// operation is a call of one client on one key. Written values are all
// different, and never empty: an empty value is a key that is not there.
type operation struct {
	client       int
	kind         kind
	key          string
	old, value   string
	call, answer time.Duration // since the history began; answer is forever unless done

	fate     fate
	held     bool   // swap: the value was old
	read     string // get
	revision int64  // that the answer names
	why      error  // unless done
}

// forever is the answer to operations that may still have an effect.
const forever = time.Duration(math.MaxInt64)

// history gathers operations of concurrent clients.
type history struct {
	start time.Time
	mu    sync.Mutex
	ops   []operation
	last  time.Duration // a write was acknowledged
	gap   time.Duration // the longest time without
	gapAt time.Duration // when that ended
}

func newHistory() *history {
	return &history{start: time.Now()}
}

// caller is how a client calls operations.
type caller interface {
	call(ctx context.Context, op *operation) error
	fate(err error) fate // what an error tells of the operation's effect
}

// native calls them through the nodes' own API.
type native struct{ *client.Client }

func (c native) call(ctx context.Context, op *operation) error { return op.run(ctx, c.Client) }
func (native) fate(err error) fate                             { return fateOf(err) }

// do calls an operation, and records it.
func (h *history) do(ctx context.Context, c *client.Client, op operation) operation {
	return h.doBy(ctx, native{c}, op)
}

func (h *history) doBy(ctx context.Context, c caller, op operation) operation {
	op.call = time.Since(h.start)
	err := c.call(ctx, &op)
	now := time.Since(h.start)
	op.answer = now
	if err != nil {
		op.why, op.answer = err, forever
		op.fate = c.fate(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
	if op.fate == done && op.kind != get {
		if gap := now - h.last; gap > h.gap {
			h.gap, h.gapAt = gap, now
		}
		h.last = now
	}
	return op
}

// fateOf reports what an error tells of the operation's effect.
func fateOf(err error) fate {
	for _, certain := range []error{client.ErrUnreachable, client.ErrBusy, client.ErrFailed, client.ErrInvalid, client.ErrExpired} {
		if errors.Is(err, certain) && !errors.Is(err, client.ErrUndecided) {
			return refused
		}
	}
	return unknown
}

func (op *operation) run(ctx context.Context, c *client.Client) error {
	key := []byte(op.key)
	switch op.kind {
	case get:
		resp, err := c.Range(ctx, &aweighv1.RangeRequest{Key: key})
		if err != nil {
			return err
		}
		if len(resp.Kvs) > 0 {
			op.read = string(resp.Kvs[0].Value)
		}
		op.revision = resp.Header.Revision
	case put:
		resp, err := c.Put(ctx, &aweighv1.PutRequest{Key: key, Value: []byte(op.value)})
		if err != nil {
			return err
		}
		op.revision = resp.Header.Revision
	case del:
		resp, err := c.Delete(ctx, &aweighv1.DeleteRequest{Key: key})
		if err != nil {
			return err
		}
		op.revision = resp.Header.Revision
	case swap:
		resp, err := c.Txn(ctx, &aweighv1.TxnRequest{
			Compare: []*aweighv1.Compare{op.compare()},
			Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: key, Value: []byte(op.value)}}}},
		})
		if err != nil {
			return err
		}
		op.held, op.revision = resp.Succeeded, resp.Header.Revision
	}
	return nil
}

// compare is the condition of a swap.
func (op *operation) compare() *aweighv1.Compare {
	c := &aweighv1.Compare{Key: []byte(op.key), Relation: aweighv1.Compare_RELATION_EQUAL, Target: aweighv1.Compare_TARGET_VERSION}
	if op.old != "" {
		c.Target, c.Value = aweighv1.Compare_TARGET_VALUE, []byte(op.old)
	}
	return c
}

// String shows an operation as in a log.
func (op operation) String() string {
	text := fmt.Sprintf("client %d, %s: %s %s", op.client, op.call.Round(time.Microsecond), op.kind, op.key)
	switch op.kind {
	case put:
		text += " " + op.value
	case swap:
		text += fmt.Sprintf(" %q by %s", op.old, op.value)
	}
	switch {
	case op.fate == refused:
		return text + ": refused: " + op.why.Error()
	case op.fate == unknown:
		return text + ": unknown: " + op.why.Error()
	case op.kind == get:
		text += fmt.Sprintf(": %q", op.read)
	case op.kind == swap:
		text += fmt.Sprintf(": held %t", op.held)
	}
	return fmt.Sprintf("%s, revision %d, %s", text, op.revision, op.answer.Round(time.Microsecond))
}

// change is one change of one key, as a watch tells it.
type change struct {
	revision   int64
	key, value string // an empty value is a deletion
}

// changes watches from the first revision up to one.
func changes(ctx context.Context, c *client.Client, to int64) (all []change, err error) {
	errEnd := errors.New("end")
	err = c.Watch(ctx, &aweighv1.WatchRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: 1, Progress: true},
		func(w *aweighv1.WatchResponse) error {
			for _, e := range w.Events {
				x := change{revision: e.Kv.ModRevision, key: string(e.Kv.Key)}
				if !e.Delete {
					x.value = string(e.Kv.Value)
				}
				all = append(all, x)
			}
			if !w.Created && w.Header.Revision >= to || w.Created && to == 0 {
				return errEnd
			}
			return nil
		})
	if errors.Is(err, errEnd) {
		err = nil
	}
	return all, err
}
