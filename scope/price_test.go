package scope

import (
	"testing"
	"time"
)

// TestPlainPutsAreTriedAtOnce: where a policy asks for approval of some keys, transactions of other keys are plain, and
// reserve nothing; those that touch such keys, or ranges, are priced.
func TestPlainPutsAreTriedAtOnce(t *testing.T) {
	g, _ := testGenesis(t, 4)
	g.Policy.Approvals = []Approval{
		{Matter: Policies, Num: 1, Den: 2, Window: time.Hour},
		{Matter: Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Hour},
	}
	w := newWorldOf(t, g)
	e, err := w.state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string) Op { return Op{Kind: OpPut, Key: []byte(key), Value: []byte("v")} }
	nested := Op{Kind: OpTxn, Txn: &Txn{Failure: []Op{put("/secrets/k")}}}
	for name, c := range map[string]struct {
		txn   Txn
		plain bool
	}{
		"another key":    {Txn{Success: []Op{put("/k"), put("/secret")}}, true},
		"under approval": {Txn{Success: []Op{put("/k"), put("/secrets/k")}}, false},
		"within another": {Txn{Success: []Op{nested}}, false},
		"a range":        {Txn{Success: []Op{{Kind: OpDelete, Key: []byte("/k"), End: []byte("/l")}}}, false},
	} {
		if got := e.Plain(&c.txn); got != c.plain {
			t.Errorf("%s: plain is %v", name, got)
		}
		units, _, err := w.state.Price(w.mutation(Write, c.txn), w.now)
		if err != nil || c.plain && units > 0 {
			t.Errorf("%s: it reserves %d, %v", name, units, err)
		}
	}
}
