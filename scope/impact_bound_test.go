package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// bounded is a scope whose changes below /s/ wait for approval, with bounds.
func bounded(t *testing.T, bounds ...ImpactBound) *assembly {
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/s/"), Num: 1, Den: 2, Window: time.Hour, Bounds: bounds}}
	})
	w.skip = true
	return w
}

// carries proposes a mutation, approves it, and returns the motion's fate.
func (w *assembly) carries(m Mutation) string {
	w.t.Helper()
	id := w.propose(m)
	w.cast(w.approve(id, 4))
	return w.fate(id)
}

// TestBoundsRefuseMotions: a motion on keys that would change more than the policy permits does not open, and one that
// changes as much does.
func TestBoundsRefuseMotions(t *testing.T) {
	for _, c := range []struct {
		bound  ImpactBound
		within func(w *assembly) Mutation
		beyond func(w *assembly) Mutation
		says   string
	}{
		{ImpactBound{Of: ChangedKeys, Limit: 2},
			func(w *assembly) Mutation { return w.ops(put("/s/1", "x"), put("/s/2", "x")) },
			func(w *assembly) Mutation { return w.ops(put("/s/1", "x"), put("/s/2", "x"), put("/s/3", "x")) },
			"3 keys that change, and at most 2 keys that change may be in one motion"},
		{ImpactBound{Of: DeletedKeys},
			func(w *assembly) Mutation { return w.put("/s/a", "x") },
			func(w *assembly) Mutation { return w.ops(del("/s/a", "")) },
			"1 key that is deleted, and at most 0 keys that are deleted"},
		{ImpactBound{Of: EndedObjects},
			func(w *assembly) Mutation { return w.ops(del("/s/none", "")) },
			func(w *assembly) Mutation { return w.ops(del("/s/a", "/s/b")) },
			"1 object that ends, and at most 0 objects that end"},
		{ImpactBound{Of: WrittenBytes, Limit: 10},
			func(w *assembly) Mutation { return w.put("/s/a", "123456") },
			func(w *assembly) Mutation { return w.put("/s/a", "1234567") },
			"11 bytes that are written, and at most 10 bytes that are written"},
	} {
		w := bounded(t, c.bound)
		if fate := w.carries(w.put("/s/a", "1")); fate != "carried" {
			t.Fatalf("%s: the first put is %s", c.bound, fate)
		}
		out := w.step(c.beyond(w)).Outcomes[0]
		if out.Code != Failed || !strings.Contains(out.Reason, c.says) {
			t.Errorf("%s: beyond it, %s: %s", c.bound, out.Code, out.Reason)
		}
		if open := w.state.Head().Docket.Open; open != 0 {
			t.Errorf("%s: %d motions are open", c.bound, open)
		}
		if fate := w.carries(c.within(w)); fate != "carried" {
			t.Errorf("%s: within it, %s", c.bound, fate)
		}
	}
}

// TestBoundsAreJudgedAgain: an object that has another name by now makes a motion change two keys, so it is void.
func TestBoundsAreJudgedAgain(t *testing.T) {
	for _, limit := range []int64{1, 2} {
		w := bounded(t, ImpactBound{Of: ChangedKeys, Limit: limit})
		if fate := w.carries(w.put("/s/a", "1")); fate != "carried" {
			t.Fatal(fate)
		}
		id := w.propose(w.put("/s/a", "2"))
		if fate := w.carries(w.bind("/s/a", "/plain")); fate != "carried" {
			t.Fatal(fate)
		}
		want, value := "void", "1"
		if limit == 2 {
			want, value = "carried", "2"
		}
		if why := w.doomed(w.approve(id, 4))[id]; (why != "") != (want == "void") {
			t.Errorf("limit %d: doomed %q", limit, why)
		}
		w.cast(w.approve(id, 4))
		if fate := w.fate(id); !strings.HasPrefix(fate, want) {
			t.Errorf("limit %d: %s", limit, fate)
		}
		if got := w.value("/s/a"); got != value {
			t.Errorf("limit %d: the key has %q", limit, got)
		}
	}
}

// TestBoundsOfDecisions: rights that change are counted, how few could stop the scope must not fall, and a decision
// that takes the bounds away is within them.
func TestBoundsOfDecisions(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) {
		p.Authors = []Author{{Name: "anchors", Who: Anchors}}
		p.Approvals = []Approval{{Matter: Policies, Num: 2, Den: 3, Window: time.Hour, Bounds: []ImpactBound{
			{Of: FlippedRights, Limit: 1}, {Of: FewestToStop, Limit: 3}, {Of: FewestToBreak, Limit: 2},
		}}}
	})
	w.author = w.keys[0]
	policy := func(change func(p *Policy)) Mutation {
		p := w.g.Policy
		change(&p)
		return w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})
	}
	ann := Author{Name: "ann", Who: OneKey, Key: testKey(t, 51).Public(), Prefixes: [][]byte{[]byte("/a/")}, Verbs: []string{VerbDelete, VerbPut}}
	for _, c := range []struct {
		name   string
		change func(p *Policy)
		says   string
	}{
		{"two rights", func(p *Policy) { p.Authors = []Author{w.g.Policy.Authors[0], ann} }, "2 rights that change, and at most 1 right"},
		{"one anchor stops it", func(p *Policy) { p.Rules.Finalize = quorum.Rule{Num: 9, Den: 10} }, "1 anchor to stop the scope, and at least 3 anchors"},
		{"one right", func(p *Policy) { b := ann; b.Verbs = b.Verbs[:1]; p.Authors = []Author{w.g.Policy.Authors[0], b} }, ""},
		{"no bounds", func(p *Policy) { p.Approvals = nil }, ""},
	} {
		out := w.step(policy(c.change)).Outcomes[0]
		if c.says == "" && out.Code != Applied || c.says != "" && (out.Code != Failed || !strings.Contains(out.Reason, c.says)) {
			t.Errorf("%s: %s: %s", c.name, out.Code, out.Reason)
		}
	}
}

// TestBoundsAreChecked: a policy has no bounds that say nothing.
func TestBoundsAreChecked(t *testing.T) {
	for _, c := range []struct {
		matter Matter
		bounds []ImpactBound
		ok     bool
	}{
		{Changes, []ImpactBound{{Of: ChangedKeys}, {Of: WrittenBytes, Limit: mostBound}}, true},
		{Membership, []ImpactBound{{Of: FewestToStop, Limit: 2}}, true},
		{Changes, []ImpactBound{{Of: FlippedRights}}, false},
		{Policies, []ImpactBound{{Of: ChangedKeys}}, false},
		{Changes, []ImpactBound{{Of: DeletedKeys}, {Of: ChangedKeys}}, false},
		{Changes, []ImpactBound{{Of: DeletedKeys}, {Of: DeletedKeys, Limit: 1}}, false},
		{Changes, []ImpactBound{{Of: DeletedKeys, Limit: -1}}, false},
		{Changes, []ImpactBound{{Of: DeletedKeys, Limit: mostBound + 1}}, false},
		{Policies, []ImpactBound{{Of: FewestToBreak + 1}}, false},
		{Changes, []ImpactBound{{}}, false},
	} {
		p := DefaultPolicy(quorum.BFT)
		p.Approvals = []Approval{{Matter: c.matter, Num: 1, Den: 2, Window: time.Hour, Bounds: c.bounds}}
		if err := p.Check(); (err == nil) != c.ok {
			t.Errorf("%s with %v: %v", c.matter, c.bounds, err)
		}
	}
}
