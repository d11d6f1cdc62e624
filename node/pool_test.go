package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// lone is the machine of an observer that nobody answers, and the key of its clients.
func lone(t *testing.T) (*Machine, votes.PrivateKey, aweigh.Instant) {
	t.Helper()
	now := aweigh.InstantOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	key := func(of byte) votes.PrivateKey {
		seed := aweigh.Sum([]byte("lone"), []byte{of})
		k, err := votes.KeyFromSeed(votes.Ed25519, seed[:])
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	peer, err1 := PeerOf(key(0))
	g, err2 := NewGenesis("lone", now, scope.DefaultPolicy(quorum.BFT), Founder{Name: "a", Key: key(1).Public(), Peer: peer})
	network, err3 := NewNetwork(g, nil)
	ops, err4 := Bootstrap(g)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	disk := store.NewMem()
	if err := disk.Commit(ops, true); err != nil {
		t.Fatal(err)
	}
	m, err := NewMachine(MachineConfig{Network: network}, disk)
	if err != nil {
		t.Fatal(err)
	}
	return m, key(2), now
}

// TestForbiddenWritesAreRefused: a policy begins that does not take all of what waits.
// Who waits for such a write is told, and nobody is told of one that another bundle
// holds, too.
func TestForbiddenWritesAreRefused(t *testing.T) {
	m, author, now := lone(t)
	lim := m.chain.policy.Limits
	write := func(key, value string) scope.Mutation {
		return scope.Mutation{Scope: m.id, Class: scope.Write, Content: canon.Encode(putTxn(key, value)), Nonce: []byte("12345678"), ValidUntil: now.Add(time.Minute)}
	}
	sign := func(all ...scope.Mutation) *scope.CheckedBundle {
		b, err := scope.Sign(author, lim, all...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	small, large := write("/small", "v"), write("/large", strings.Repeat("v", 100))
	both, again := sign(small, large), sign(small)
	m.Step(now, Submit{Bundle: both}, Submit{Bundle: again})
	if m.Flying() != 2 || m.pool.mutations != 3 {
		t.Fatalf("%d mutations are to be answered, %d wait", m.Flying(), m.pool.mutations)
	}
	m.fx = Effects{}
	lim.ValueBytes = 50
	m.refit(lim)
	if m.Flying() != 1 || m.pool.mutations != 1 || len(m.fx.Reply) != 1 {
		t.Fatalf("%d mutations are to be answered, %d wait, told are %v", m.Flying(), m.pool.mutations, m.fx.Reply)
	}
	if r := m.fx.Reply[0]; r.Mutation != both.Mutations()[1].ID || !errors.Is(r.Refused, scope.ErrInvalid) {
		t.Errorf("told is %+v", r)
	}
}
