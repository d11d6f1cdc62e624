package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestDearBundlesHoldNoAnchorUp: a reserve is declared and costs nothing, and what an anchor hands on may be anybody's. So its
// ballots do not wait behind that; a client that hands such bundles in waits.
func TestDearBundlesHoldNoAnchorUp(t *testing.T) {
	c := startCluster(t, 4, quorum.BFT)
	n := c.nodes[0]
	from := c.nodes[1].host.ID()
	limits := n.Genesis().Policy.Limits
	dear := func(i int) []byte {
		b, err := scope.SignReserving(limits.BlockCost-10_000, newIdentity(t), limits, scope.Mutation{
			Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn("/dear", "v")),
			Nonce: fmt.Appendf(nil, "%016d", i), ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.Raw()
	}
	began := time.Now()
	for i := range 8 {
		n.frame(from, rawFrame(tagBundle, dear(i)))
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("an anchor waited for %v behind bundles that it handed on", took)
	}

	m := n.mutation(scope.Write, canon.Encode(putTxn("/cheap", "v")), n.filled(Once{}))
	if units, err := n.price(t.Context(), m, never); units != 0 || err != nil {
		t.Errorf("a put reserves %d, %v", units, err)
	}
	if units, err := n.price(t.Context(), m, 0); units == 0 || err != nil { // the same bundle would not be executed
		t.Errorf("a put that exceeded its form reserves %d, %v", units, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var err error
	for i := 100; i < 104 && err == nil; i++ {
		_, err = n.Submit(ctx, dear(i))
	}
	if !errors.Is(err, ErrBusy) {
		t.Errorf("a client that hands in bundles which all nodes must pay for is told %v", err)
	}
}

// TestPricesInVainArePaid: to find out that a mutation costs more than any block may is work, too. Those who ask
// for more prices wait until it is paid; what is not priced does not.
func TestPricesInVainArePaid(t *testing.T) {
	policy := scope.DefaultPolicy(quorum.BFT)
	policy.Limits.BlockCost = 100_000
	c := startClusterUnder(t, 1, policy, func(int, *Node) {})
	n := c.nodes[0]
	for i := range 12 {
		var puts []scope.Op
		for k := range 100 {
			key := fmt.Appendf(nil, "/k/%02d/%02d", i, k)
			puts = append(puts, scope.Op{Kind: scope.OpPut, Key: key, Value: []byte("v")})
		}
		if _, err := n.Txn(t.Context(), scope.Txn{Success: puts}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	var dear scope.Txn
	for range 128 {
		dear.Success = append(dear.Success, scope.Op{Kind: scope.OpRange, Key: []byte("/k/"), End: []byte("/k0")})
	}
	small := scope.Txn{Success: dear.Success[:1]}
	one := func(txn scope.Txn) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := n.Txn(ctx, txn, Once{})
		return err
	}
	if err := one(small); err != nil {
		t.Fatalf("at first: %v", err)
	}
	vain := limiter(&n.costs.vain)
	before := vain.Tokens()
	if err := one(dear); !errors.Is(err, scope.ErrTooMuch) {
		t.Fatalf("what no block may cost: %v", err)
	}
	if paid := before - vain.Tokens(); paid < 50_000 {
		t.Errorf("%v units are paid for a price of 100,000", paid)
	}
	n.costs.lost(8 * ownUnits)
	n.costs.lost(8 * ownUnits)
	for name, txn := range map[string]scope.Txn{"what no block may cost": dear, "what is dear": small} { // order-free
		if err := one(txn); !errors.Is(err, ErrBusy) {
			t.Errorf("%s, after many of such: %v", name, err)
		}
	}
	if err := one(putTxn("/plain", "v")); err != nil {
		t.Errorf("a plain write: %v", err)
	}
}
