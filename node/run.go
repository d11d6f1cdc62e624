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
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// carrier carries frames for a runner. No method may block.
type carrier interface {
	Send(to machine.Peer, frame []byte)
	admission.Gossiper
}

// runner owns a Machine. One goroutine gives it everything that waits, carries out the effects, and sleeps until the
// next event or alarm.
type runner struct {
	machine   *machine.Machine
	epochs    *epochView // of the machine's epoch
	store     store.Store
	views     *views // of the same store
	carrier   carrier
	repeats   admission.ScopeRepeats
	announces *admission.Announcements // of the node; nil: no limit
	key       votes.PrivateKey         // signs what clients of this node submit
	notes     func(machine.Note)
	delegates func(scope.Territory)
	onIdle    func() // called once there has been nothing to do for idleAfter
	idleAfter time.Duration
	start     time.Time      // by the monotonic clock
	began     aweigh.Instant // the same, by the wall clock

	intake   *admission.Intake // from peers
	events   chan machine.Event
	submits  chan *submission
	replies  *replies
	stand    atomic.Pointer[machine.StatusSource] // the machine's status when it last had something to report
	tells    bool                                 // the step that is carried out has something to report
	looks    chan look
	installs chan installing
	orders   chan *scope.Revocation // the newest of the scope above
	counts   counts
}

// look asks for a fresh status, whether a mutation is on disk, and which mutations wait.
type look struct {
	mutation aweigh.Hash
	most     int       // mutations that wait, to return
	named    []byte    // the start of their IDs
	seen     chan seen // buffered
}

type seen struct {
	machine.Status
	kept  bool
	waits []queued // if they were asked for
}

// queued is a mutation that waits at this node for a block.
type queued struct {
	bundle *scope.CheckedBundle
	nth    int  // of its mutations
	kept   bool // it is on disk
}

type counts struct {
	steps, events, bundles, mutations atomic.Uint64
}

// maxBatch bounds the events of one step.
const maxBatch = 1024

// now returns the wall clock at the start plus the monotonic time since: steps of the wall clock do not reach the
// machine.
func (r *runner) now() aweigh.Instant {
	return r.began.Add(time.Since(r.start))
}

// run runs the machine until ctx ends, or until the node must stop because its store failed or an invariant broke.
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
	alarm := time.AfterFunc(0, r.intake.Wake)
	defer alarm.Stop()
	var batch []machine.Event
	var held gathering
	wake := aweigh.Instant(1) // when the machine wants to be stepped again; 0: never
	var idle aweigh.Instant   // when the scope becomes idle if nothing happens; 0: it is idle
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-r.events:
			batch = append(batch, ev)
		case <-r.intake.Ready():
		case o := <-r.orders:
			batch = append(batch, machine.Ordered{Revocation: o})
		case s := <-r.submits:
			held.add(s)
		case l := <-r.looks:
			if r.machine.Listens() { // in an idle scope, no other event wakes it once it has waited for all anchors
				if wake, err = r.step(nil); err != nil {
					return err
				}
			}
			l.seen <- seen{r.machine.Status(), r.machine.Kept(l.mutation), l.waits(r.machine)}
		case in := <-r.installs:
			events, err := r.replace(in)
			if err != nil {
				return err
			}
			batch, wake = append(batch, events...), 1
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
			idle = r.now().Add(r.idleAfter)
		} else if idle != 0 && r.now() >= idle {
			idle, batch = 0, nil
			r.freeMemory()
		}
		alarm.Stop()
		if wait, ok := r.sleep(aweigh.Earliest(wake, idle), &held); ok {
			alarm.Reset(max(0, wait))
		}
	}
}

// sleep returns for how long nothing is due: no wake-up of the machine, no freeing of memory, no bundle.
func (r *runner) sleep(wake aweigh.Instant, held *gathering) (wait time.Duration, ok bool) {
	wait, ok = held.due(r.machine)
	if wake != 0 {
		if until := wake.Sub(r.now()); !ok || until < wait {
			return until, true
		}
	}
	return wait, ok
}

// drain takes the events that wait already, so that they share a sync. Neither peers nor clients can exclude each
// other.
func (r *runner) drain(batch []machine.Event) []machine.Event {
	batch = r.intake.Take(batch, maxBatch/2)
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

// step steps the machine and carries out the effects.
func (r *runner) step(batch []machine.Event) (wake aweigh.Instant, err error) {
	r.counts.steps.Add(1)
	r.counts.events.Add(uint64(len(batch)))
	fx := r.machine.Step(r.now(), batch...)
	if r.epochs.set(r.machine.EpochView()) {
		r.delegates(r.machine.Territory()) // before anything of the epoch that begins with them can be read
	}
	r.tells = len(fx.Notes) > 0
	if err := machine.Perform(r, fx); err != nil {
		return 0, fmt.Errorf("node: the store failed, nothing more is signed: %w", err)
	}
	r.machine.Ahead()
	if r.tells { // there was nothing to write
		r.tell()
	}
	return fx.Wake, nil
}

// tell publishes the machine's status to everything around it.
func (r *runner) tell() {
	r.tells = false
	s := r.machine.StatusSource()
	r.stand.Store(&s)
}

// failed returns a channel that is closed when the store fails on its own, nil if the store has none.
func (r *runner) failed() <-chan struct{} {
	if f, ok := r.store.(interface{ Failed() <-chan struct{} }); ok {
		return f.Failed()
	}
	return nil
}

// Commit implements Host.
func (r *runner) Commit(ops []kv.Op, sync bool) error {
	return r.views.durable.commit(func() error { return r.store.Commit(ops, sync) }, func() {
		if r.tells {
			r.tell()
		}
		r.views.prepare()
	})
}

// Send implements Host.
func (r *runner) Send(p machine.Packet) {
	if !p.Again || r.repeats.May() {
		r.carrier.Send(p.To, p.Frame)
	}
}

// Gossip implements Host.
func (r *runner) Gossip(frame []byte) {
	if r.announces == nil || frame[0] != machine.TagAnnounce {
		r.carrier.Gossip(frame)
		return
	}
	a, err := machine.Decode[machine.Announce](frame[1:])
	must.OK(err, "reading an announcement of one's own")
	r.announces.Put(r.carrier, admission.Announced{Frame: frame, Epoch: a.Header.Epoch, Height: a.Header.Height})
}

// Reply implements Host.
func (r *runner) Reply(reply machine.Reply) { r.replies.deliver(reply) }

// Note implements Host.
func (r *runner) Note(n machine.Note) { r.notes(n) }
