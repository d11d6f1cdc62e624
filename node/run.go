package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// carrier carries frames for a runner. Neither method may block.
type carrier interface {
	Send(to Peer, frame []byte)
	Gossip(frame []byte)
}

// runner owns a Machine: one goroutine feeds it everything that waits, carries
// out the effects, and sleeps until the next event or alarm.
type runner struct {
	machine *Machine
	store   store.Store
	carrier carrier
	key     votes.PrivateKey // signs what clients of this node submit
	limits  scope.Limits
	notes   func(Note)
	start   time.Time

	intake  *intake // from peers
	events  chan Event
	submits chan *submission
	replies *replies
	status  atomic.Pointer[Status]
	looks   chan chan Status // asks for a fresh status; buffered by who asks
	counts  counts
}

type counts struct {
	steps, events, bundles, mutations atomic.Uint64
}

// submission is one mutation on its way into the next bundle.
type submission struct {
	ctx      context.Context // of the client that waits
	mutation scope.Mutation
	done     chan Reply // buffered
}

// maxBatch bounds the events of one step.
const maxBatch = 1024

// linger bounds how long mutations wait for an earlier bundle of this node to
// be proposed before they are signed as a bundle of their own.
const linger = 20 * time.Millisecond

// now is the wall clock at start plus the monotonic time since: steps of the
// wall clock do not reach the machine.
func (r *runner) now() aweigh.Instant {
	return aweigh.InstantOf(r.start).Add(time.Since(r.start))
}

// run feeds the machine until ctx ends, or until the node must stop: its store
// failed, or an invariant broke.
func (r *runner) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			v, ok := p.(must.Violation)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("node: stopped to stay safe: %w", v)
		}
		r.replies.close(errors.Join(ErrStopped, err))
	}()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	var batch []Event
	var held []*submission
	var since time.Time
	for {
		var ev Event
		select {
		case <-ctx.Done():
			return nil
		case ev = <-r.events:
			batch = append(batch, ev)
		case <-r.intake.ready:
		case s := <-r.submits:
			held = append(held, s)
		case look := <-r.looks:
			look <- r.machine.Status()
		case <-r.failed():
			return fmt.Errorf("node: the store failed, nothing more is signed")
		case <-alarm.C:
		}
		batch = r.drain(batch)
		held = r.collect(held)
		if len(held) == 0 {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		if len(held) > 0 && (r.machine.Idle() || time.Since(since) >= linger) {
			batch = append(batch, r.bundle(held)...)
			held, since = nil, time.Time{}
		}
		wake, err := r.step(batch)
		if err != nil {
			return err
		}
		clear(batch)
		batch = batch[:0]
		if len(held) > 0 {
			at := aweigh.InstantOf(r.start).Add(since.Sub(r.start) + linger)
			if r.machine.Idle() {
				at = 1
			}
			wake = aweigh.Earliest(wake, at)
		}
		alarm.Stop()
		if wake != 0 {
			alarm.Reset(max(0, wake.Sub(r.now())))
		}
	}
}

// drain takes the events that wait already, so that they share a sync. Neither
// peers nor clients keep the others out.
func (r *runner) drain(batch []Event) []Event {
	batch = r.intake.take(batch, maxBatch/2)
	for len(batch) < maxBatch {
		select {
		case ev := <-r.events:
			batch = append(batch, ev)
		default:
			return batch
		}
	}
	return batch
}

func (r *runner) collect(held []*submission) []*submission {
	for len(held) < maxBatch {
		select {
		case s := <-r.submits:
			held = append(held, s)
		default:
			return held
		}
	}
	return held
}

// bundle signs submissions together, in as few bundles as the limits allow.
func (r *runner) bundle(held []*submission) (events []Event) {
	for len(held) > 0 {
		n, size := 0, 0
		for n < len(held) && n < r.limits.BlockMutations {
			size += len(held[n].mutation.Content) + 256
			if n > 0 && size > r.limits.BundleBytes/2 {
				break
			}
			n++
		}
		events = append(events, r.sign(held[:n])...)
		held = held[n:]
	}
	return events
}

// sign makes one bundle of submissions. If one of them is bad, each gets a
// bundle of its own, so that it spoils nobody else's.
func (r *runner) sign(held []*submission) (events []Event) {
	mutations := make([]scope.Mutation, len(held))
	for i, s := range held {
		mutations[i] = s.mutation
	}
	b, err := scope.Sign(r.key, r.limits, mutations...)
	switch {
	case err == nil:
		for i, s := range held {
			r.replies.expect(s.ctx, b.Mutations()[i].ID, s.done)
		}
		r.counts.bundles.Add(1)
		r.counts.mutations.Add(uint64(len(held)))
		return []Event{Submit{Bundle: b}}
	case len(held) == 1:
		held[0].done <- Reply{Refused: err}
		return nil
	}
	for i := range held {
		events = append(events, r.sign(held[i:i+1])...)
	}
	return events
}

// step steps the machine and carries out what follows.
func (r *runner) step(batch []Event) (wake aweigh.Instant, err error) {
	r.counts.steps.Add(1)
	r.counts.events.Add(uint64(len(batch)))
	fx := r.machine.Step(r.now(), batch...)
	if err := Perform(r, fx); err != nil {
		return 0, fmt.Errorf("node: the store failed, nothing more is signed: %w", err)
	}
	r.machine.Ahead()
	if len(fx.Notes) > 0 {
		s := r.machine.Status()
		r.status.Store(&s)
	}
	return fx.Wake, nil
}

// failed is closed when the store fails on its own, nil if it cannot tell.
func (r *runner) failed() <-chan struct{} {
	if f, ok := r.store.(interface{ Failed() <-chan struct{} }); ok {
		return f.Failed()
	}
	return nil
}

// Commit implements Host.
func (r *runner) Commit(ops []kv.Op, sync bool) error { return r.store.Commit(ops, sync) }

// Send implements Host.
func (r *runner) Send(p Packet) { r.carrier.Send(p.To, p.Frame) }

// Gossip implements Host.
func (r *runner) Gossip(frame []byte) { r.carrier.Gossip(frame) }

// Reply implements Host.
func (r *runner) Reply(reply Reply) { r.replies.deliver(reply) }

// Note implements Host.
func (r *runner) Note(n Note) { r.notes(n) }
