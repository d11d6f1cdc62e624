package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What the scope set aside of an island is put to the vote: one motion for each mutation of the island.

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
	aside := make(map[int64]scope.SetAside)
	keys := make(map[int64][][]byte) // by the mutation that changed them last
	err = v.AsideOf(rec.ID, func(key []byte, a scope.SetAside) bool {
		aside[a.Entry] = a
		keys[a.Entry] = append(keys[a.Entry], key)
		return true
	})
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	for _, first := range slices.Sorted(maps.Keys(aside)) {
		a := aside[first]
		err = errors.Join(err, n.voteOn(ctx, is, &a, keys[first]))
	}
	return err
}

// voteOn opens a motion about what one mutation of the island made of some keys, once.
func (n *Node) voteOn(ctx context.Context, is *island, a *scope.SetAside, keys [][]byte) error {
	p := is.of
	k := machine.KeyAside(p.id, is.replica.id, a.Mutation)
	if _, opened, err := n.cfg.Store.Get(k); opened || err != nil || !a.Open() {
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
	ops = slices.DeleteFunc(ops, func(op scope.Op) bool {
		return !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, op.Key) })
	})
	if len(ops) == 0 { // all of it was under other names
		return nil
	}
	caller := fmt.Sprintf("island:%s", is.replica.id.Short())
	if len(m.Caller) > 0 {
		caller += " " + m.Caller
	}
	r, err := p.propose(ctx, scope.Write, canon.Encode(scope.Txn{Success: ops}), Once{
		Nonce: asideNonce(is.replica.id, a.Mutation), Justification: m.Justification, Caller: caller[:min(len(caller), scope.MaxCaller)], Patient: true,
	})
	if err != nil {
		return err
	}
	if r.Code != scope.Pending {
		p.log.Warn("a change of an island was set aside, and no motion opens about it", "island", is.replica.id.Short(), "key", string(keys[0]), "why", r.Reason)
		return nil
	}
	p.log.Info("a change of an island that was set aside is put to the vote", "motion", r.Mutation.Short(), "key", string(keys[0]))
	return n.cfg.Store.Commit([]kv.Op{kv.Set(k, []byte{1})}, true)
}

// asideNonce is the nonce of the mutation that opens the motion about one mutation of an island.
func asideNonce(island aweigh.ScopeID, mutation aweigh.Hash) []byte {
	nonce := aweigh.Sum([]byte("aweigh/aside/1"), island[:], mutation[:])
	return bytes.Clone(nonce[:16])
}

// AsideMotions returns the motions on record about what the scope set aside of an island, by mutation of the island:
// those of its nonces, by the author that put the island on record. A motion about a mutation that is missing has not
// opened yet, never will, or closed so long ago that the state has no record of it.
func AsideMotions(s *scope.State, rec *scope.IslandRecord) (map[aweigh.Hash]votes.MotionID, error) {
	about := make(map[string]aweigh.Hash) // by nonce
	err := s.AsideOf(rec.ID, func(_ []byte, a scope.SetAside) bool {
		about[string(asideNonce(rec.ID, a.Mutation))] = a.Mutation
		return true
	})
	if err != nil {
		return nil, err
	}
	all := make(map[aweigh.Hash]votes.MotionID)
	var bad error
	err = s.Motions(func(id votes.MotionID, _ bool) bool {
		var mo *scope.Motion
		var m scope.CheckedMutation
		if mo, _, bad = s.Motion(id); bad == nil {
			m, bad = scope.OpenMutation(mo.Mutation)
		}
		if of, ok := about[string(m.Nonce)]; ok && m.Author == rec.By {
			all[of] = id
		}
		return bad == nil && len(all) < len(about)
	})
	return all, errors.Join(err, bad)
}
