package machine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestRevokedGrantsDoNotWait: bundles that wait, also for weeks, lose their place when the record of their grant is
// gone as of the newest block, and their requests fail. A bundle without a record, or in an open proposal, stays.
func TestRevokedGrantsDoNotWait(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Limits.Pending = 30 * 24 * time.Hour
	p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Hour}}
	n := newLone(t, p, false)
	maker, holder := loneKey(t, 8), loneKey(t, 9)
	bundle := func(record string, nonce byte, patient bool) *scope.CheckedBundle {
		t.Helper()
		valid := time.Minute
		if patient {
			valid = 20 * 24 * time.Hour
		}
		g := scope.Grant{Scope: n.id, To: holder.Public(), Name: "ci", NotAfter: n.now.Add(21 * 24 * time.Hour), Record: []byte(record)}
		if record != "" {
			g.Object = aweigh.UID{1}
		}
		g, err := scope.SignGrant(maker.Signer(), g)
		if err != nil {
			t.Fatal(err)
		}
		b, err := scope.Sign(holder, n.chain.policy.Limits, scope.Mutation{
			Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn("/secrets/k", "v")), Grants: [][]byte{g.Encode()},
			Nonce: []byte{nonce, 2, 3, 4, 5, 6, 7, 8}, ValidUntil: n.now.Add(valid), Patient: patient,
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	never, long, held, kept := bundle("/tokens/ci", 1, false), bundle("/tokens/ci", 2, true), bundle("/tokens/ci", 3, false), bundle("", 4, true)
	if err := n.admit(never, ""); !errors.Is(err, scope.ErrDenied) || n.pool.bytes != 0 {
		t.Fatalf("a bundle without the record of its grant: %v, %d bytes wait", err, n.pool.bytes)
	}
	for _, b := range []*scope.CheckedBundle{never, long, held, kept} { // as they came while there was a record
		if err := n.pool.add(b, "", false, false, false, n.now); err != nil {
			t.Fatal(err)
		}
		n.pool.expect(b)
	}
	n.pool.hold(&scope.Block{Header: scope.Header{View: 7}, Bundles: []*scope.CheckedBundle{held}})
	if n.pool.patient[maker.Public().ID()] == 0 || len(n.pool.grants) != 1 {
		t.Fatalf("counted are %v, by grants %v", n.pool.patient, n.pool.grants)
	}
	n.fx = Effects{}
	n.dropRevoked()
	if n.pool.get(never.ID()) != nil || n.pool.get(long.ID()) != nil || n.pool.get(held.ID()) == nil || n.pool.get(kept.ID()) == nil {
		t.Errorf("%d bundles wait", len(n.pool.entries))
	}
	if len(n.fx.Reply) != 2 || !errors.Is(n.fx.Reply[0].Refused, scope.ErrDenied) || !strings.Contains(n.fx.Reply[0].Refused.Error(), "revoked") {
		t.Errorf("told are %+v", n.fx.Reply)
	}
	if got := n.pool.patient[maker.Public().ID()]; got != len(kept.Raw()) {
		t.Errorf("%d bytes of the signer wait for weeks, want %d", got, len(kept.Raw()))
	}
	n.pool.release(7, 7)
	n.dropRevoked()
	if n.pool.get(held.ID()) != nil || len(n.pool.grants) != 0 {
		t.Errorf("what a failed proposal held waits on; by grants: %v", n.pool.grants)
	}
}
