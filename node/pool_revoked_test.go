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

// TestRevokedTokensHaveNoRoom: once the record of a grant is deleted, or the grant has ended, no node takes a bundle of
// its holder, whichever node it is handed in at, and none of them waits.
func TestRevokedTokensHaveNoRoom(t *testing.T) {
	c := startCluster(t, 2, quorum.Crash)
	n, ctx := c.nodes[0], t.Context()
	limits, author, holder := n.root.Genesis().Policy.Limits, newIdentity(t), newIdentity(t)
	if _, err := n.Txn(ctx, putTxn("/tokens/ci", "token ci"), Once{}); err != nil {
		t.Fatal(err)
	}
	record, _, err := n.Range(ctx, []byte("/tokens/ci"), nil, scope.Range{}, true)
	if err != nil {
		t.Fatal(err)
	}
	grant := func(until time.Time, record string, u aweigh.UID) []byte {
		t.Helper()
		g, err := scope.SignGrant(author.Signer(), scope.Grant{
			Scope: n.root.id, To: holder.Public(), Name: "ci", NotAfter: aweigh.InstantOf(until), Record: []byte(record), Object: u,
		})
		if err != nil {
			t.Fatal(err)
		}
		return g.Encode()
	}
	use := func(at int, g []byte, until time.Time, nonce string) error {
		t.Helper()
		b, err := scope.Sign(holder, limits, scope.Mutation{
			Scope: n.root.id, Class: scope.Write, Content: canon.Encode(putTxn("/k", nonce)), Grants: [][]byte{g},
			Nonce: []byte(nonce + "0123456789abcdef")[:16], ValidUntil: aweigh.InstantOf(until),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.nodes[at].root.Submit(ctx, b.Raw())
		return err
	}
	soon := time.Now().Add(time.Minute)
	recorded := grant(soon, "/tokens/ci", record.Kvs[0].UID)
	if err := use(1, recorded, soon, "a"); err != nil {
		t.Fatal("with its record:", err)
	}
	if _, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/tokens/ci")}}}, Once{}); err != nil {
		t.Fatal(err)
	}
	for i, nonce := range []string{"b", "c"} {
		if _, _, err := c.nodes[i].Range(ctx, []byte("/k"), nil, scope.Range{}, true); err != nil { // it has the deletion
			t.Fatal(err)
		}
		if err := use(i, recorded, soon, nonce); !errors.Is(err, scope.ErrDenied) || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("node %d, without its record: %v", i, err)
		}
		over := time.Now().Add(-limits.Drift - time.Second)
		if err := use(i, grant(over, "", aweigh.UID{}), over, nonce); !errors.Is(err, machine.ErrNotTaken) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("node %d, after its end: %v", i, err)
		}
	}
	for i := range c.nodes {
		if w := c.nodes[i].root.Overview().Pool; w != 0 {
			t.Errorf("%d mutations wait at node %d", w, i)
		}
	}
}
