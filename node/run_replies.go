package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// ErrStopped is returned for calls on a node that has stopped.
var ErrStopped = errors.New("node: stopped")

// replies carries the machine's Replies to the goroutines that wait for them.
type replies struct {
	mu        sync.Mutex
	mutations map[aweigh.Hash][]waiter
	reads     map[uint64]chan machine.Reply
	next      uint64
	stopped   error
	done      chan struct{}
}

// waiter waits for the outcome of a mutation in a bundle, or in any other bundle.
type waiter struct {
	bundle aweigh.Hash
	done   chan machine.Reply
}

func newReplies() *replies {
	return &replies{done: make(chan struct{})}
}

// freeMemory frees the memory of an empty table.
func (r *replies) freeMemory() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mutations) == 0 {
		r.mutations = nil
	}
	if len(r.reads) == 0 {
		r.reads = nil
	}
}

// expect makes done, which must be buffered, receive the reply to a mutation that a bundle carries. A caller that has
// stopped waiting by then has called forget already, and receives nothing.
func (r *replies) expect(ctx context.Context, bundle, mutation aweigh.Hash, done chan machine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if r.mutations == nil {
		r.mutations = make(map[aweigh.Hash][]waiter)
	}
	r.mutations[mutation] = append(r.mutations[mutation], waiter{bundle, done})
}

// forget is for a caller that no longer waits.
func (r *replies) forget(mutation aweigh.Hash, done chan machine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(mutation, slices.DeleteFunc(r.mutations[mutation], func(w waiter) bool { return w.done == done }))
}

// leave makes waiting the only waiters for a mutation.
func (r *replies) leave(mutation aweigh.Hash, waiting []waiter) {
	if len(waiting) == 0 {
		delete(r.mutations, mutation)
	} else {
		r.mutations[mutation] = waiting
	}
}

func (r *replies) read() (id uint64, done chan machine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	done = make(chan machine.Reply, 1)
	if r.reads == nil {
		r.reads = make(map[uint64]chan machine.Reply)
	}
	r.reads[r.next] = done
	return r.next, done
}

func (r *replies) forgetRead(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reads, id)
}

func (r *replies) deliver(reply machine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply.Read != 0 {
		if done := r.reads[reply.Read]; done != nil {
			done <- reply
			delete(r.reads, reply.Read)
		}
		return
	}
	r.leave(reply.Mutation, slices.DeleteFunc(r.mutations[reply.Mutation], func(w waiter) bool {
		theirs := reply.Bundle.IsZero() || reply.Bundle == w.bundle
		if theirs {
			w.done <- reply
		}
		return theirs
	}))
}

func (r *replies) close(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = err
		close(r.done)
	}
}

// wait returns the reply that done receives, or why there will be none.
func (r *replies) wait(ctx context.Context, done chan machine.Reply) (machine.Reply, error) {
	select {
	case reply := <-done:
		return reply, reply.Refused
	case <-ctx.Done():
		return machine.Reply{}, ctx.Err()
	case <-r.done:
		return machine.Reply{}, r.stopped
	}
}
