package scope

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/kv"
)

// counted is the content that the head counts, counted again.
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
	g.Policy.Limits.ScopeBytes = 4000
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
	if h.Bytes > 4000 || puts < 2 || h.Full(&g.Policy) {
		t.Fatalf("%d bytes after %d puts, full: %v", h.Bytes, puts, h.Full(&g.Policy))
	}
	refused(w.put("b", value)) // which would cross the bound
	w.one(w.put("d", ""))      // a smaller one does not
	w.one(w.bind("d", "d2"))
	before := w.state.Head().Bytes
	refused(w.put("d", value[:(4000-before)/2])) // it counts under both
	for range 20 {                               // a put takes less than it must find room for
		if h = w.state.Head(); h.Full(&g.Policy) {
			break
		}
		w.step(w.put("e", ""), w.ops(del("e", "")), w.ops(del("d", ""), put("f", "")), w.put("d", ""))
	}
	if h = w.state.Head(); !h.Full(&g.Policy) {
		t.Fatalf("%d bytes, and not full", h.Bytes)
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
