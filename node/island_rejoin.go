package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Once the scope has a quorum again, the members of an island bring what it decided into the scope: the first of them
// at once, and each other one only if those before it make no headway.

const (
	// rejoinTurn is how much later the next member begins.
	rejoinTurn = 5 * time.Second
	// rejoinPause is how long a member waits after an attempt that came too early, or failed.
	rejoinPause = time.Second
	// rejoinRoom is left of a mutation's bytes for what is around its content.
	rejoinRoom = 4 << 10
)

// tendIsland notes whether the scope decides again, and brings back what the island decided.
func (n *Node) tendIsland(is *island) {
	decides := n.apart(is.of) == 0 && is.of.Reach().Failures >= 0
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	if is.done || is.busy {
		return
	}
	if is.closed.IsZero() {
		if !decides && is.of.LastHead().Block == is.genesis.Descent.Block {
			return
		}
		is.closed = time.Now()
		is.of.log.Info("the island takes no more changes: the scope decides again", "island", is.replica.id.Short())
	}
	if !decides || time.Since(is.closed) < time.Duration(is.rank())*rejoinTurn {
		return
	}
	is.busy = n.spawn("bringing back an island", func(ctx context.Context) { n.rejoin(ctx, is) })
}

// rejoin brings an island's decisions into the scope, until the scope has all of them or has no quorum.
func (n *Node) rejoin(ctx context.Context, is *island) {
	defer func() {
		n.islands.mu.Lock()
		is.busy = false
		n.islands.mu.Unlock()
	}()
	for ctx.Err() == nil && n.apart(is.of) == 0 {
		done, err := n.rejoinNext(ctx, is)
		if done {
			n.islands.mu.Lock()
			is.done = true
			n.islands.mu.Unlock()
			return
		}
		if err != nil {
			is.of.log.Debug("an island has not rejoined yet", "island", is.replica.id.Short(), "error", err)
			if !is.of.pauseFor(ctx, rejoinPause) {
				return
			}
		}
	}
}

// rejoinNext takes one step; done reports that nothing is left to do.
func (n *Node) rejoinNext(ctx context.Context, is *island) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	p, c := is.of, is.replica
	all := c.LastHead().LineageSize
	if all == is.genesis.Descent.Keys { // nothing was decided
		return true, nil
	}
	rec, now, err := is.record(ctx)
	if err != nil {
		return false, err
	}
	if rec != nil && rec.Next >= all {
		return true, n.voteOnAside(ctx, is, rec)
	}
	if rec != nil && now < rec.Due {
		return false, fmt.Errorf("other islands have until %v", rec.Due.Time())
	}
	var content []byte
	err = c.coveredFrom(ctx, false, func(v *View) error {
		src, err := is.source(v)
		if err != nil {
			return err
		}
		re := src.Announcement()
		if rec != nil {
			if re, err = src.Next(rec.Next, p.Limits().MutationBytes-rejoinRoom); err != nil {
				return err
			}
		}
		content = canon.Encode(re)
		return nil
	})
	if err != nil {
		return false, err
	}
	r, err := p.propose(ctx, scope.Rejoin, content, Once{Justification: "what anchors decided without a quorum"})
	if err == nil && r.Code == scope.Failed {
		err = errors.New(r.Reason)
	}
	return false, err
}

// record is what the scope has on record of the island, nil if nothing, and the scope's time.
func (is *island) record(ctx context.Context) (rec *scope.IslandRecord, now aweigh.Instant, err error) {
	v, err := is.of.Read(ctx, true)
	if err != nil {
		return nil, 0, err
	}
	all, err := v.Islands()
	for i := range all {
		if all[i].ID == is.replica.id {
			rec = &all[i]
		}
	}
	return rec, max(v.Now, v.Head().Time), errors.Join(err, v.Close())
}

// source is what a view of the island shows. The error wraps machine.ErrUncovered if no header names its whole lineage.
func (is *island) source(v *View) (*scope.IslandSource, error) {
	h := is.replica.History()
	final, err := h.Cover(v.Head().Height, 0)
	if err != nil {
		return nil, err
	}
	if final.Header.LineageSize < v.Head().LineageSize {
		return nil, machine.ErrUncovered
	}
	hands, err := h.Handovers(0, 1<<10)
	if err != nil {
		return nil, err
	}
	terms, _, err := is.of.History().TermsAt(is.of.Genesis(), is.genesis.Descent.Height+1) // of the epoch on top of it
	if err != nil {
		return nil, err
	}
	return &scope.IslandSource{State: v.State, Genesis: is.genesis, Terms: terms, Handovers: hands, Final: final, Block: h.Block}, nil
}

// voteOnAside opens motions about what the scope set aside, if this node put the island on record: the scope's anchors
// decide whether the island's change replaces what is there. A node that stops meanwhile goes on after its start.
func (n *Node) voteOnAside(ctx context.Context, is *island, rec *scope.IslandRecord) error {
	p := is.of
	if rec.By != p.author || rec.Aside == 0 {
		return nil
	}
	v, err := p.Read(ctx, false)
	if err != nil {
		return err
	}
	var aside []scope.SetAside
	err = v.AsideOf(rec.ID, func(_ []byte, a scope.SetAside) bool {
		if len(aside) == 0 || aside[len(aside)-1].Entry != a.Entry {
			aside = append(aside, a)
		}
		return true
	})
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	for _, a := range aside {
		if err := n.voteOn(ctx, is, &a); err != nil {
			return err
		}
	}
	return nil
}

// voteOn opens a motion about one mutation of the island, once.
func (n *Node) voteOn(ctx context.Context, is *island, a *scope.SetAside) error {
	p := is.of
	k := machine.KeyAside(p.id, a.Mutation)
	if _, opened, err := n.cfg.Store.Get(k); opened || err != nil || !a.Conflicts() {
		return err
	}
	v, err := is.replica.Read(ctx, false)
	if err != nil {
		return err
	}
	ops, m, err := v.ChangedBy(a.Entry)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	nonce := aweigh.Sum([]byte("aweigh/aside/1"), is.replica.id[:], a.Mutation[:])
	caller := fmt.Sprintf("island:%s", is.replica.id.Short())
	if len(m.Caller) > 0 {
		caller += " " + m.Caller
	}
	r, err := p.propose(ctx, scope.Write, canon.Encode(scope.Txn{Success: ops}), Once{
		Nonce: bytes.Clone(nonce[:16]), Justification: m.Justification, Caller: caller[:min(len(caller), scope.MaxCaller)], Patient: true,
	})
	if err != nil {
		return err
	}
	p.log.Info("a change of an island is put to the vote: the scope changed the keys meanwhile", "motion", r.Mutation.Short(), "outcome", r.Code)
	return n.cfg.Store.Commit([]kv.Op{kv.Set(k, []byte{1})}, true)
}
