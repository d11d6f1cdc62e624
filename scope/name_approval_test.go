package scope

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// TestApprovalsHoldUnderEveryName: what asks for approval under one name asks for
// it under all, and no change of names goes around it.
func TestApprovalsHoldUnderEveryName(t *testing.T) {
	w := newAssembly(t, 4)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(w.approve(id, 4))
	rev := w.state.Head().Revision
	w.one(w.bind("/secrets/a", "/free"))
	u := w.uid("/free")
	w.one(w.put("/other", "1"))

	for name, m := range map[string]Mutation{ // order-free: each is checked alone
		"bind below it":           w.bind("/other", "/secrets/b"),
		"move there":              w.move("/other", "/secrets/b", 0),
		"move away":               w.move("/secrets/a", "/b", w.now.Add(time.Hour)),
		"unbind there":            w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/secrets/a")}),
		"unbind there, whichever": w.naming(Naming{Kind: Unbind, Key: []byte("/secrets/a")}),
		"fork there":              w.naming(Naming{Kind: Fork, Object: u, To: []byte("/secrets/c"), From: []byte("/secrets/a"), Revision: rev}),
		"roll back there":         w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/secrets/a"), From: []byte("/secrets/a"), Revision: rev}),
		"roll back elsewhere":     w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/free"), From: []byte("/secrets/a"), Revision: rev}),
	} {
		if out := w.step(m).Outcomes[0]; Failure(out.Reason) != ErrApproval {
			t.Errorf("%s: %s, %v", name, out.Code, Failure(out.Reason))
		}
	}

	id = w.propose(w.put("/free", "2"))
	if v, _, err := w.state.newest([]byte("/secrets/a")); err != nil || string(v.Value) != "1" {
		t.Fatalf("changed without approval: %q, %v", v.Value, err)
	}
	inner := w.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/other", "2"), put("/free", "3")}}})
	w.propose(inner)
	w.cast(w.approve(id, 4))
	if v, _, err := w.state.newest([]byte("/secrets/a")); err != nil || string(v.Value) != "2" {
		t.Fatalf("not changed with approval: %q, %v", v.Value, err)
	}
	w.one(w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/free")}))
	w.one(w.put("/free", "mine"))
	if w.uid("/free") == u || w.uid("/secrets/a") != u || u == (aweigh.UID{}) {
		t.Fatal("another object")
	}
}
