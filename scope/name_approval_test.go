package scope

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// TestApprovalsHoldUnderEveryName: a change that needs approval under one name
// needs it under all, and no change of names avoids it.
func TestApprovalsHoldUnderEveryName(t *testing.T) {
	w := newAssembly(t, 4)
	w.one(w.put("/a", "1")) // before anything asks for approval
	w.one(w.bind("/a", "/free"))
	rev := w.state.Head().Revision
	p := w.g.Policy
	p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/a"), Num: 3, Den: 4, Window: time.Hour}, {Matter: Changes, Prefix: []byte("/secrets/"), Num: 3, Den: 4, Window: time.Hour}}
	client := w.author
	w.author = w.keys[0]
	w.cast(w.approve(w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0].Mutation, 4)[1:])
	w.author = client
	w.turn()
	u := w.uid("/free")
	w.one(w.put("/other", "1"))

	for name, m := range map[string]Mutation{ // order-free: each is checked alone
		"bind below it":           w.bind("/other", "/secrets/b"),
		"bind from it":            w.bind("/a", "/more"),
		"move there":              w.move("/other", "/secrets/b", 0),
		"move away":               w.move("/a", "/b", w.now.Add(time.Hour)),
		"unbind there":            w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/a")}),
		"unbind there, whichever": w.naming(Naming{Kind: Unbind, Key: []byte("/a")}),
		"fork there":              w.naming(Naming{Kind: Fork, Object: u, To: []byte("/secrets/c"), From: []byte("/a"), Revision: rev}),
		"roll back there":         w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/a"), From: []byte("/a"), Revision: rev}),
		"roll back elsewhere":     w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/free"), From: []byte("/a"), Revision: rev}),
	} {
		if out := w.step(m).Outcomes[0]; Failure(out.Reason) != ErrApproval {
			t.Errorf("%s: %s, %v", name, out.Code, Failure(out.Reason))
		}
	}

	id := w.propose(w.put("/free", "2"))
	if v, _, err := w.state.newest([]byte("/a")); err != nil || string(v.Value) != "1" {
		t.Fatalf("changed without approval: %q, %v", v.Value, err)
	}
	w.propose(w.ops(put("/other", "2"), put("/free", "3")))
	w.cast(w.approve(id, 4))
	if v, _, err := w.state.newest([]byte("/a")); err != nil || string(v.Value) != "2" {
		t.Fatalf("not changed with approval: %q, %v", v.Value, err)
	}
	w.one(w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/free")}))
	w.one(w.put("/free", "mine"))
	if w.uid("/free") == u || w.uid("/a") != u || u == (aweigh.UID{}) {
		t.Fatal("another object")
	}
}
