package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// An island rests once its outcome is final in the scope and members that were away had time to follow: its replica is
// closed, and not opened at the next start. A member that comes back later and lacks a certificate wakes the others. In
// the end the records of the island are deleted; what the scope has on record of it stays. Before each step, the store
// has what makes the next life of the node go on from there.

const (
	// islandRest is how long an island stays open once its outcome is final.
	islandRest = 10 * time.Minute
	// islandKept is how long the records of an island that rests are kept.
	islandKept = 30 * 24 * time.Hour
)

// resting is an island whose replica is closed.
type resting struct {
	of      *Replica // in the scope
	genesis scope.Genesis
	is      machine.IslandRest
}

func (r *resting) info() Island {
	i := islandInfo(r.of, &r.genesis)
	i.Head = scope.Head{Height: r.is.Height, Revision: r.is.Revision}
	i.Done, i.Refused, i.Rests = r.is.Refused == "", r.is.Refused, true
	return i
}

// reopenIsland opens an island that the store has, unless it rests.
func (n *Node) reopenIsland(of *Replica, g scope.Genesis) error {
	rest, rests, err := machine.StoredRest(n.cfg.Store, of.id, g.Hash())
	if err != nil || !rests {
		if err == nil {
			_, err = n.openIsland(of, g)
		}
		return err
	}
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	n.islands.rest = append(n.islands.rest, resting{of: of, genesis: g, is: rest})
	return nil
}

// restIsland closes the replica of an island if it is time. The scope is above the block that the island was founded
// on, so that nothing more is decided there. It returns errors of the store.
func (n *Node) restIsland(ctx context.Context, is *island) error {
	n.growing.Lock()
	defer n.growing.Unlock()
	n.islands.mu.Lock()
	due := is.done && !is.busy && time.Since(is.ended) >= n.cfg.islandRest && is.of.LastHead().Height > is.genesis.Descent.Height
	r := resting{of: is.of, genesis: is.genesis, is: machine.IslandRest{Since: aweigh.InstantOf(n.Clock()), Refused: is.refused}}
	n.islands.mu.Unlock()
	if !due {
		return nil
	}
	head := is.replica.LastHead()
	r.is.Height, r.is.Revision = head.Height, head.Revision
	if err := n.cfg.Store.Commit([]kv.Op{kv.Set(machine.KeyIslandRest(is.of.id, is.replica.id), canon.Encode(r.is))}, true); err != nil {
		return err
	}
	n.islands.mu.Lock()
	n.islands.all = slices.DeleteFunc(n.islands.all, func(o *island) bool { return o == is })
	n.islands.rest = append(n.islands.rest, r)
	n.islands.mu.Unlock()
	is.of.log.Info("an island rests: its outcome is final", "island", is.replica.id.Short())
	return n.leave(ctx, is.replica)
}

// leave closes a replica while the node runs.
func (n *Node) leave(ctx context.Context, p *Replica) error {
	n.mu.Lock()
	delete(n.replicas, placeOf(p.id))
	delete(n.topics, p.topic())
	n.mu.Unlock()
	close(p.left)
	p.intake.Close() // goroutines that hand frames to it must not wait there
	select {
	case <-p.hasRun:
	case <-ctx.Done(): // the node stops, and waits for it
	}
	n.met.mu.Lock()
	n.met.left(p)
	n.met.mu.Unlock()
	n.meetMembers()
	return p.release()
}

// wakeIsland opens an island that rests again, since another member asks for it; zero if none rests that is asked for.
// It rests again once the scope has what that member brings.
func (n *Node) wakeIsland(of *Replica, ask islandAsk) (id aweigh.ScopeID, err error) {
	n.growing.Lock()
	defer n.growing.Unlock()
	n.islands.mu.Lock()
	at := slices.IndexFunc(n.islands.rest, func(r resting) bool {
		return r.of == of && r.genesis.Descent.Block == ask.Block && string(r.genesis.Prefix()) == string(ask.Prefix) && slices.Equal(membersOf(&r.genesis), ask.Members)
	})
	if at < 0 {
		n.islands.mu.Unlock()
		return id, nil
	}
	r := n.islands.rest[at]
	if r.is.Dropped {
		n.islands.mu.Unlock()
		return id, fmt.Errorf("%w: the records of this island are deleted here", ErrNoIsland)
	}
	n.islands.rest = slices.Delete(n.islands.rest, at, at+1)
	n.islands.mu.Unlock()
	id = r.genesis.Hash()
	if err := n.cfg.Store.Commit([]kv.Op{kv.Del(machine.KeyIslandRest(of.id, id))}, true); err != nil {
		return id, err
	}
	of.log.Info("an island is open again: a member that was away asks for it", "island", id.Short())
	_, err = n.openIsland(of, r.genesis)
	return id, err
}

// wakeMembers asks the other members of an island to open it, should it rest there.
func (n *Node) wakeMembers(is *island) {
	n.spawn("waking an island", func(ctx context.Context) {
		ask := islandAsk{Prefix: is.genesis.Prefix(), Members: is.members(), Block: is.genesis.Descent.Block, Opens: true}
		for _, m := range ask.Members {
			if m == is.of.Status().Self {
				continue
			}
			if said, err := n.askMember(ctx, is.of, m, ask); err != nil || said.Island != is.replica.id {
				is.of.log.Debug("a member does not open an island again", "anchor", is.of.measured.name(m), "why", said.Why, "error", err)
			}
		}
	})
}

// dropIslands deletes the records of islands that have rested for long. It returns errors of the store.
func (n *Node) dropIslands() error {
	n.growing.Lock()
	defer n.growing.Unlock()
	n.islands.mu.Lock()
	rest := slices.Clone(n.islands.rest)
	n.islands.mu.Unlock()
	now := aweigh.InstantOf(n.Clock())
	for i := range rest {
		if r := &rest[i]; r.is.Dropped || now.Sub(r.is.Since) >= n.cfg.islandKept {
			if err := n.dropIsland(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropIsland deletes the records of an island, last those that name it.
func (n *Node) dropIsland(r *resting) error {
	of, id := r.of.id, r.genesis.Hash()
	r.is.Dropped = true
	if err := n.cfg.Store.Commit([]kv.Op{kv.Set(machine.KeyIslandRest(of, id), canon.Encode(r.is))}, true); err != nil {
		return err
	}
	n.islands.mu.Lock()
	n.islands.rest = slices.DeleteFunc(n.islands.rest, func(o resting) bool { return o.genesis.Hash() == id })
	n.islands.mu.Unlock()
	w := bulk{store: n.cfg.Store}
	var err error
	for _, prefix := range append(machine.RecordsOf(id), machine.Record(of, 'W', id[:]...)) {
		err = errors.Join(err, w.clear(prefix, kv.PrefixEnd(prefix)))
	}
	if err == nil {
		err = n.cfg.Store.Commit([]kv.Op{kv.Del(machine.KeyIsland(of, id)), kv.Del(machine.KeyIslandRest(of, id))}, true)
	}
	return err
}
