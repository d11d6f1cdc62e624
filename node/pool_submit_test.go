package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestWhatIsNotTakenIsToldWhy hands a bundle in to a scope that it does not name, one that is valid for too long,
// and one that has expired: each is refused at once, for its own reason.
func TestWhatIsNotTakenIsToldWhy(t *testing.T) {
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	limits := n.root.Genesis().Policy.Limits
	if _, err := n.Txn(t.Context(), putTxn("/k", "v"), Once{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scope aweigh.ScopeID
		valid time.Duration
		why   string
	}{
		{aweigh.Sum([]byte("another")), time.Minute, "another scope"},
		{n.root.id, 2 * limits.ValidFor, "limits.valid_for"},
		{n.root.id, -time.Minute, "expired"},
	} {
		b, err := scope.Sign(newIdentity(t), limits, scope.Mutation{
			Scope: c.scope, Class: scope.Write, Content: canon.Encode(putTxn("/k", "v")),
			Nonce: []byte("0123456789abcdef"), ValidUntil: aweigh.InstantOf(time.Now().Add(c.valid)),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.root.Submit(t.Context(), b.Raw())
		if !errors.Is(err, machine.ErrNotTaken) || !strings.Contains(err.Error(), c.why) || errors.Is(err, errEarly) {
			t.Errorf("what is to be refused as %q: %v", c.why, err)
		}
		for _, other := range []string{"another scope", "limits.valid_for", "expired"} {
			if other != c.why && err != nil && strings.Contains(err.Error(), other) {
				t.Errorf("what is to be refused as %q: %v", c.why, err)
			}
		}
	}
}
