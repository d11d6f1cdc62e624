package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestDearBundlesHoldNoAnchorUp: a reserve is declared and costs nothing, and what an anchor hands on may be anybody's.
// So its ballots do not wait behind that; a client that hands such bundles in waits.
func TestDearBundlesHoldNoAnchorUp(t *testing.T) {
	c := startCluster(t, 4, quorum.BFT)
	n := c.nodes[0]
	from := c.nodes[1].host.ID()
	limits := n.root.Genesis().Policy.Limits
	dear := func(i int) []byte {
		b, err := scope.SignReserving(limits.BlockCost-10_000, newIdentity(t), limits, scope.Mutation{
			Scope: n.root.id, Class: scope.Write, Content: canon.Encode(putTxn("/dear", "v")),
			Nonce: fmt.Appendf(nil, "%016d", i), ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Raw()
	}
	began := time.Now()
	for i := range 8 {
		n.frame(from, machine.RawFrame(machine.TagBundle, dear(i)))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("an anchor waited for %v behind bundles that it handed on", took)
	}

	m := n.root.mutation(scope.Write, canon.Encode(putTxn("/cheap", "v")), n.root.filled(Once{}))
	if units, err := n.root.price(t.Context(), m, noReserve, true); units != 0 || err != nil {
		t.Errorf("a put reserves %d, %v", units, err)
	}
	if units, err := n.root.price(t.Context(), m, 0, true); units == 0 || err != nil { // the same bundle would not be executed
		t.Errorf("a put that exceeded its form reserves %d, %v", units, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var err error
	for i := 100; i < 104 && err == nil; i++ {
		_, err = n.Submit(ctx, dear(i))
	}
	if !errors.Is(err, machine.ErrBusy) {
		t.Errorf("a client that hands in bundles which all nodes must pay for is told %v", err)
	}
}

// TestPricesInVainArePaid: to find out that a mutation costs more than any block may is work, too. Those who ask
// for more prices wait until it is paid; what is not priced does not.
func TestPricesInVainArePaid(t *testing.T) {
	testshort.Skip(t)
	policy := scope.OpenPolicy(quorum.BFT)
	policy.Limits.BlockCost = 100_000
	c := startClusterUnder(t, 1, policy, func(int, *Node) {})
	n := c.nodes[0]
	var dear scope.Txn
	for range 128 {
		dear.Success = append(dear.Success, scope.Op{Kind: scope.OpRange, Key: []byte("/k/"), End: []byte("/k0")})
	}
	once := Once{Nonce: []byte("the client's own"), ValidUntil: n.root.runner.now().Add(time.Minute)}
	var first machine.Receipt
	for i := range 12 {
		var puts []scope.Op
		for k := range 100 {
			key := fmt.Appendf(nil, "/k/%02d/%02d", i, k)
			puts = append(puts, scope.Op{Kind: scope.OpPut, Key: key, Value: []byte("v")})
		}
		if _, err := n.Txn(t.Context(), scope.Txn{Success: puts}, Once{}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			continue
		}
		var err error
		if first, err = n.Txn(t.Context(), dear, once); err != nil {
			t.Fatalf("with 100 keys: %v", err)
		}
	}
	small := scope.Txn{Success: dear.Success[:1]}
	one := func(txn scope.Txn) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := n.Txn(ctx, txn, Once{})
		return err
	}
	if err := one(small); err != nil {
		t.Fatalf("at first: %v", err)
	}
	begin := time.Now()
	n.root.costs.Lost(1<<20, false) // all that may be lost at once: what is lost from here on must be waited for
	if err := one(dear); !errors.Is(err, scope.ErrTooMuch) {
		t.Fatalf("what no block may cost: %v", err)
	}
	if again, err := n.Txn(t.Context(), dear, once); err != nil || again.Revision != first.Revision {
		t.Errorf("what was done when it cost less: %+v, %v; it was %+v", again, err, first)
	}
	if err := one(small); err != nil || time.Since(begin) < 200*time.Millisecond {
		t.Errorf("a price of 100,000 in vain is paid for after %v: %v", time.Since(begin), err)
	}
	begin = time.Now()
	for range 2 { // what is left at once, and a second's
		n.root.costs.Lost(1<<20, false)
	}
	if err := one(putTxn("/plain", "v")); err != nil {
		t.Errorf("a plain write: %v", err)
	}
	if err := one(small); err != nil || time.Since(begin) < 900*time.Millisecond {
		t.Errorf("after prices in vain, one that is dear goes on after %v: %v", time.Since(begin), err)
	}
}
