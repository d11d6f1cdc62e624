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
	if units, err := n.price(m, never); units != 0 || err != nil {
		t.Errorf("a put reserves %d, %v", units, err)
	}
	if units, err := n.price(m, 0); units == 0 || err != nil { // the same bundle would not be executed
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
