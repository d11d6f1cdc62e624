package node

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/aweigh/aweigh"
)

// installing asks a runner to replace its state and its machine.
type installing struct {
	above aweigh.Height // the snapshot's: with a head as high it is not needed
	done  chan error
}

// install has the fetched snapshot installed, between two steps.
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

// replace installs a snapshot and starts a new machine on it. What waited in the
// old one is undecided for those who asked. The events tell the new one who is in
// reach, so that it asks for news.
func (r *runner) replace(in installing) (links []Event, err error) {
	id := r.machine.id
	if r.machine.chain.state.Height() >= in.above {
		err := dropOffer(r.store, id)
		in.done <- err
		return nil, err
	}
	old := r.machine
	err = install(r.store, r.machine.cfg.Network.Genesis())
	if err == nil {
		cfg := r.machine.cfg
		cfg.Life, cfg.Awaited = rand.Uint64(), 0
		r.machine, err = NewMachine(cfg, r.store)
	}
	if err != nil {
		return nil, fmt.Errorf("node: a snapshot could not be installed, start the node again: %w", err)
	}
	r.delegates(r.machine.Delegations())
	if r.roll.call(r.machine.term) {
		r.notes(EpochBegan{Epoch: r.machine.term.epoch, Seated: r.machine.guard != nil})
	}
	r.tell()
	r.notes(Installed{Height: r.machine.chain.state.Height()})
	in.done <- nil
	for _, p := range old.peers {
		if old.away[p] {
			links = append(links, Parted{Peer: p})
		} else {
			links = append(links, Met{Peer: p})
		}
	}
	return links, nil
}
