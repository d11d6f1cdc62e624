package scope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTransactionsCannotLookAtTooMuch: every node executes a transaction, so a
// few hundred bytes must not make all of them read, and hold, gigabytes.
func TestTransactionsCannotLookAtTooMuch(t *testing.T) {
	w := newWorld(t)
	w.skip = true
	big := strings.Repeat("x", 1<<20)
	for i := range 4 {
		w.one(w.put(fmt.Sprintf("/big/%d", i), big))
	}
	many := func(n int, op Op) (ops []Op) {
		for range n {
			ops = append(ops, op)
		}
		return ops
	}
	compares := make([]Compare, 20)
	for i := range compares {
		compares[i] = Compare{Target: OnValue, Relation: NotEqual, Key: []byte("/big/0"), Value: []byte("y")}
	}
	for name, m := range map[string]Mutation{
		"ranges":        w.ops(many(5, get("/big/", "/big0"))...),
		"single keys":   w.ops(many(20, get("/big/1", ""))...),
		"compares":      w.txn(Txn{Compare: compares}),
		"range compare": w.txn(Txn{Compare: []Compare{{Target: OnMod, Relation: Greater, Key: []byte("/big/"), End: []byte("/big0")}}, Success: many(4, get("/big/", "/big0"))}),
		"prev": w.txn(Txn{Success: []Op{
			{Kind: OpTxn, Txn: &Txn{Success: many(17, get("/big/1", ""))}}, {Kind: OpPut, Key: []byte("/big/1"), Prev: true}}}),
	} {
		before := w.state.Head().Revision
		out := w.step(m).Outcomes[0]
		if out.Code != Failed || !errors.Is(Failure(out.Reason), ErrTooMuch) || len(out.Responses) > 0 {
			t.Errorf("%s: %s %q with %d responses", name, out.Code, out.Reason, len(out.Responses))
		}
		if w.state.Head().Revision != before {
			t.Errorf("%s: changed the keys", name)
		}
	}
	w.one(w.ops(get("/big/", "/big0"), del("/big/2", "/big/4"), put("/small", "1")))

	// One block cannot do with many mutations what one mutation must not.
	var muts []Mutation
	for range 40 {
		muts = append(muts, w.ops(many(2, get("/big/1", ""))...))
	}
	failed := 0
	for _, o := range w.step(muts...).Outcomes {
		if o.Code == Failed {
			failed++
		}
	}
	if failed < 5 || failed > 15 {
		t.Errorf("%d of 40 mutations that read 2 MiB each failed", failed)
	}
}
