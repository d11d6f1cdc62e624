package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// lone is the machine of a network's only anchor, or of an observer that nobody answers.
type lone struct {
	*Machine
	t      *testing.T
	disk   *store.Mem
	author votes.PrivateKey // of its clients
	now    aweigh.Instant
	read   int // records of the ballot box that were scanned
}

func newLone(t *testing.T, p scope.Policy, anchor bool) *lone {
	t.Helper()
	n := &lone{t: t, disk: store.NewMem(), author: loneKey(t, 0), now: aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	key := loneKey(t, 1)
	peer, err1 := PeerOf(n.author)
	g, err2 := NewGenesis("lone", n.now, p, Founder{Name: "a", Key: key.Public(), Peer: peer})
	network, err3 := NewNetwork(g, nil)
	ops, err4 := Bootstrap(g)
	if err := errors.Join(err1, err2, err3, err4, n.disk.Commit(ops, true)); err != nil {
		t.Fatal(err)
	}
	cfg := MachineConfig{Network: network}
	if anchor {
		cfg.Key = &key
	}
	var err error
	if n.Machine, err = NewMachine(cfg, &counted{n.disk, &n.read}); err != nil {
		t.Fatal(err)
	}
	return n
}

func loneKey(t *testing.T, number byte) votes.PrivateKey {
	t.Helper()
	seed := aweigh.Sum([]byte("lone"), []byte{number})
	key, err := votes.KeyFromSeed(votes.Ed25519, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// counted counts what is scanned of the ballot box.
type counted struct {
	*store.Mem
	read *int
}

func (c *counted) Scan(from, to []byte, backward bool, visit func(k, v []byte) bool) error {
	return c.Mem.Scan(from, to, backward, func(k, v []byte) bool {
		if k[0] == 'b' {
			*c.read++
		}
		return visit(k, v)
	})
}

// step steps the machine a little later.
func (n *lone) step(events ...Event) Effects {
	n.t.Helper()
	n.now = n.now.Add(10 * time.Millisecond)
	fx := n.Step(n.now, events...)
	if err := n.disk.Commit(fx.Write, fx.Sync); err != nil {
		n.t.Fatal(err)
	}
	return fx
}

func (n *lone) write(key, value string) scope.Mutation {
	return scope.Mutation{
		Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn(key, value)), Nonce: []byte("12345678"), ValidUntil: n.now.Add(time.Minute),
	}
}

func (n *lone) sign(all ...scope.Mutation) *scope.CheckedBundle {
	n.t.Helper()
	b, err := scope.Sign(n.author, n.chain.policy.Limits, all...)
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

func putTxn(key, value string) scope.Txn {
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
}
