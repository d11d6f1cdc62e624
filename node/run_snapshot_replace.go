package node

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// installing asks a runner to replace its state and its machine.
type installing struct {
	above aweigh.Height // the snapshot's height: if the head is as high, it is not needed
	done  chan error
}

// install makes the runner install the fetched snapshot between two steps.
func (r *runner) install(ctx context.Context, at aweigh.Height) error {
	in := installing{above: at, done: make(chan error, 1)}
	select {
	case r.installs <- in:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.replies.done:
		return ErrStopped
	}
	select {
	case err := <-in.done:
		return err
	case <-r.replies.done:
		return ErrStopped
	}
}

// replace installs a snapshot and starts a new machine on it. The events tell the new machine which peers are within
// reach, so that it asks for news, and repeat the requests to the old one.
func (r *runner) replace(in installing) (events []machine.Event, err error) {
	id := r.machine.Scope()
	if r.machine.Height() >= in.above {
		err := dropOffer(r.store, id)
		in.done <- err
		return nil, err
	}
	old := r.machine
	r.views.durable.turn <- struct{}{} // no reader is between its look at changes and its look at delegations
	r.views.changes.Store(true)
	<-r.views.durable.turn
	err = install(r.store, r.machine.Config().Network.Genesis())
	if err == nil {
		cfg := r.machine.Config()
		cfg.Life, cfg.Awaited = rand.Uint64(), 0
		r.machine, err = machine.NewMachine(cfg, r.store)
	}
	if err != nil {
		return nil, fmt.Errorf("node: a snapshot could not be installed, start the node again: %w", err)
	}
	r.delegates(r.machine.Territory())
	anew := r.epochs.set(r.machine.EpochView())
	r.tell()
	r.views.durable.commits.Add(1)
	r.views.changes.Store(false)
	if anew {
		r.notes(machine.EpochBegan{Epoch: r.machine.Epoch(), Seated: r.machine.Seated()})
	}
	r.notes(machine.Installed{Height: r.machine.Height()})
	in.done <- nil
	return old.Resume(), nil
}
