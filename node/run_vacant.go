package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// A node that executes the block that delegates a prefix has the state that was handed over. A node that instead took
// a snapshot of the parent's state does not: its replica in the child scope is vacant until it has a snapshot of the
// child's state.

// prepare stores a state for a delegated scope that has none: the state of its genesis. If keys were handed over, that
// is only a placeholder.
func prepare(s store.Store, g scope.Genesis) error {
	id := g.Hash()
	_, _, meta := scope.Clear(id)
	_, there, err := s.Get(meta)
	if err != nil || there {
		return err
	}
	if _, replacing, err := s.Get(machine.KeyInstalling(id)); err != nil || replacing {
		return err
	}
	ops, err := scope.Init(g)
	if err != nil {
		return err
	}
	if !g.Descent.Empty() {
		ops = append(ops, kv.Set(machine.KeyVacant(id), []byte{1}))
	}
	return s.Commit(ops, true)
}

// isVacant reports whether this node has no state of a scope.
func isVacant(s store.Store, id aweigh.ScopeID) (bool, error) {
	_, marked, err := s.Get(machine.KeyVacant(id))
	return marked, err
}

// settle fetches the state of a scope of which this node has none.
func (n *Replica) settle(ctx context.Context) error {
	if !n.vacant.Load() {
		return nil
	}
	n.log.Info("fetching the state of a scope that was delegated before this node could see it")
	for told := false; ; {
		err := n.fetchState(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		n.fetching.Store(nil)
		if !told {
			told = true
			n.log.Warn("the state of the scope cannot be had yet; it is tried again", "error", err)
		}
		if !n.pauseFor(ctx, n.cfg.snapshotEvery) {
			return nil
		}
	}
	n.fetching.Store(nil)
	if ctx.Err() != nil {
		return nil
	}
	return n.moveIn()
}

// fetchState fetches a snapshot of any height and installs it.
func (n *Replica) fetchState(ctx context.Context) error {
	offer, begun, err := storedOffer(n.cfg.Store, n.id)
	if err != nil {
		return err
	}
	f, from, err := n.beginFetch(ctx, offer, begun, 0)
	if err != nil {
		return err
	}
	if err := n.fetched(ctx, f, from); err != nil {
		return err
	}
	return install(n.cfg.Store, *n.genesis)
}

// moveIn starts again with the state that was installed. Nothing runs yet.
func (n *Replica) moveIn() error {
	cfg := n.runner.machine.Config()
	cfg.Life, cfg.Awaited = rand.Uint64(), 0
	m, err := machine.NewMachine(cfg, n.cfg.Store)
	if err != nil {
		return fmt.Errorf("node: a snapshot could not be installed, start the node again: %w", err)
	}
	n.runner.machine = m
	n.epochs.set(m.EpochView())
	n.measured.reseat(m.Epoch())
	n.budgets.Reseat()
	n.delegates(m.Territory())
	n.runner.tell()
	n.vacant.Store(false)
	n.of.meetMembers(n)
	n.note(machine.Installed{Height: m.Height()})
	for _, info := range n.host.Peers() {
		n.peer(info.ID, true)
	}
	return nil
}

// errVacant answers requests to a replica that has no state yet.
var errVacant = errors.New("node: this node has no state of the scope yet; ask another")
