package scope

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/kv"
)

// counted is what the head says that the scope holds, counted anew.
func (w *world) counted() (bytes int64) {
	prefix := w.state.space.at(atVersion)
	_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, v []byte) bool {
		bytes += recordBytes(k, v)
		return true
	})
	return bytes
}

// TestFullScopesTakeNothingMore: a scope that holds what its policy allows refuses puts and
// leases, and nothing else, until it holds less.
func TestFullScopesTakeNothingMore(t *testing.T) {
	g, _ := testGenesis(t, 4)
	g.Policy.Limits.ScopeBytes = 2000
	w := newWorldOf(t, g)
	refused := func(m Mutation) {
		t.Helper()
		if o := w.step(m).Outcomes[0]; o.Code != Failed || !errors.Is(Failure(o.Reason), ErrNoSpace) {
			t.Errorf("%s %s", o.Code, o.Reason)
		}
	}
	w.one(w.put("a", "first"))
	value := string(make([]byte, 500))
	puts := 0
	for o := w.step(w.put("b", value)).Outcomes[0]; o.Code == Applied; o = w.step(w.put("b", value)).Outcomes[0] {
		if puts++; puts > 10 {
			t.Fatal("it takes all")
		}
	}
	h := w.state.Head()
	if h.Bytes < 2000 || h.Bytes > 2600 || puts < 3 || !h.Full(&g.Policy) {
		t.Fatalf("full with %d bytes after %d puts", h.Bytes, puts)
	}
	refused(w.put("c", ""))
	refused(w.grant(7, 60))
	refused(w.bind("a", "a2"))
	refused(w.txn(Txn{Success: []Op{{Kind: OpTxn, Txn: &Txn{Success: []Op{put("c", "")}}}}}))
	w.one(w.ops(get("a", "")))
	w.one(w.txn(Txn{Compare: []Compare{{Target: OnVersion, Relation: Equal, Key: []byte("none"), Number: 1}}, Success: []Op{put("c", "")}}))
	refused(w.move("a", "a3", 0))
	w.one(w.ops(del("a", "")))
	w.one(w.compaction(w.state.Head().Revision))
	for range 3 {
		w.step()
	}
	if h = w.state.Head(); h.Full(&g.Policy) || h.Bytes != w.counted() {
		t.Errorf("%d bytes after a compaction, and %d are there", h.Bytes, w.counted())
	}
	w.one(w.put("c", "again"))
	w.one(w.grant(7, 60))
}
