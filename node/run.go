package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// carrier carries frames for a runner. No method may block.
type carrier interface {
	Send(to Peer, frame []byte)
	Gossip(frame []byte)

	// Followed reports whether anybody hears the gossip but anchors of the scope, as of the last second.
	Followed() bool
}

// runner owns a Machine: one goroutine feeds it everything that waits, carries
// out the effects, and sleeps until the next event or alarm.
type runner struct {
	machine   *Machine
	roll      *roll // of the machine's epoch
	store     store.Store
	carrier   carrier
	repeats   *repeats         // of the node; nil: without a bound
	own       *rate.Limiter    // repeats of this scope alone; nil: none lately
	announces *announcements   // of the node; nil: without a bound
	key       votes.PrivateKey // signs what clients of this node submit
	notes     func(Note)
	delegates func([]scope.Delegation)
	rests     func() // once there has been nothing to do for restAfter
	restAfter time.Duration
	start     time.Time      // by the monotonic clock
	began     aweigh.Instant // the same, by the wall clock

	intake   *intake // from peers
	events   chan Event
	submits  chan *submission
	replies  *replies
	stand    atomic.Pointer[stand] // of the machine, when it last had something to tell
	looks    chan look
	installs chan installing
	orders   chan *scope.Revocation // the newest of the scope above
	counts   counts
}

// look asks for a fresh status, and whether a mutation is on disk.
type look struct {
	mutation aweigh.Hash
	seen     chan seen // buffered
}

type seen struct {
	Status
	kept bool
}

type counts struct {
	steps, events, bundles, mutations atomic.Uint64
}

// maxBatch bounds the events of one step.
const maxBatch = 1024

// now is the wall clock at start plus the monotonic time since: steps of the
// wall clock do not reach the machine.
func (r *runner) now() aweigh.Instant {
	return r.began.Add(time.Since(r.start))
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
	alarm := time.AfterFunc(0, r.intake.wake)
	defer alarm.Stop()
	var batch []Event
	var held gathering
	wake := aweigh.Instant(1) // when the machine wants to be stepped again; 0: never
	var rest aweigh.Instant   // when to rest if nothing happens; 0: it does
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-r.events:
			batch = append(batch, ev)
		case <-r.intake.ready:
		case o := <-r.orders:
			batch = append(batch, Ordered{Revocation: o})
		case s := <-r.submits:
			held.add(s)
		case l := <-r.looks:
			if r.machine.Listens() { // nothing else wakes it, in an idle scope, once it has waited for everyone
				if wake, err = r.step(nil); err != nil {
					return err
				}
			}
			l.seen <- seen{r.machine.Status(), r.machine.Kept(l.mutation)}
		case in := <-r.installs:
			links, err := r.replace(in)
			if err != nil {
				return err
			}
			batch, wake = append(batch, links...), 1
		case <-r.failed():
			return fmt.Errorf("node: the store failed, nothing more is signed: %w", r.store.Commit(nil, true))
		}
		batch = r.drain(batch)
		held.drain(r.submits)
		if held.ripe(r.machine) {
			batch = append(batch, r.bundle(held.take())...)
		}
		if len(batch) > 0 || wake != 0 && r.now() >= wake {
			if wake, err = r.step(batch); err != nil {
				return err
			}
			clear(batch)
			batch = batch[:0]
			rest = r.now().Add(r.restAfter)
		} else if rest != 0 && r.now() >= rest {
			rest, batch = 0, nil
			r.rest()
		}
		alarm.Stop()
		if wait, ok := r.sleep(aweigh.Earliest(wake, rest), &held); ok {
			alarm.Reset(max(0, wait))
		}
	}
}

// sleep is how long nothing is due: no wish of the machine's or to rest, no bundle.
func (r *runner) sleep(wake aweigh.Instant, held *gathering) (wait time.Duration, ok bool) {
	wait, ok = held.due(r.machine)
	if wake != 0 {
		if until := wake.Sub(r.now()); !ok || until < wait {
			return until, true
		}
	}
	return wait, ok
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

// step steps the machine and carries out what follows.
func (r *runner) step(batch []Event) (wake aweigh.Instant, err error) {
	r.counts.steps.Add(1)
	r.counts.events.Add(uint64(len(batch)))
	fx := r.machine.Step(r.now(), batch...)
	if r.roll.call(r.machine.term) {
		r.delegates(r.machine.Delegations()) // so that whoever hears of the end of an epoch knows
	}
	if err := Perform(r, fx); err != nil {
		return 0, fmt.Errorf("node: the store failed, nothing more is signed: %w", err)
	}
	r.machine.Ahead()
	if len(fx.Notes) > 0 {
		r.tell()
	}
	return fx.Wake, nil
}

// tell lets all around the machine know where it stands.
func (r *runner) tell() {
	s := r.machine.stand()
	r.stand.Store(&s)
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
func (r *runner) Send(p Packet) {
	if p.Again && r.own == nil {
		r.own = rate.NewLimiter(ownRepeats, 3*ownRepeats)
	}
	if !p.Again || r.repeats.may(r.own) {
		r.carrier.Send(p.To, p.Frame)
	}
}

// Gossip implements Host.
func (r *runner) Gossip(frame []byte) {
	if r.announces == nil || frame[0] != tagAnnounce {
		r.carrier.Gossip(frame)
		return
	}
	a, err := parse[Announce](frame[1:])
	must.OK(err, "reading an announcement of one's own")
	r.announces.put(r.carrier, announced{frame, a.Header.Epoch, a.Header.Height})
}

// Reply implements Host.
func (r *runner) Reply(reply Reply) { r.replies.deliver(reply) }

// Note implements Host.
func (r *runner) Note(n Note) { r.notes(n) }
