package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/action"
)

// newTill is an assembly in which the verb pay takes approval below /acc/, and other ways to change keys do not.
func newTill(t fataler, change ...func(*Policy)) *assembly {
	all := append([]func(*Policy){func(p *Policy) {
		p.Actions = action.Table{{Verb: "note", Class: action.Write}, {Verb: "pay", Class: action.Write}}
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/acc/"), Num: 3, Den: 4, Window: time.Hour, Verbs: []string{"pay"}}}
	}}, change...)
	return newAssembly(t, 4, all...)
}

func (w *assembly) do(verb, key, value string) Mutation {
	return w.mutation(Act, Action{Verb: verb, Class: action.Write, Key: []byte(key), Value: []byte(value)})
}

// TestVerbsHaveApprovalsOfTheirOwn: an action waits for the approval that names its verb, and other changes of the key
// do not; of one prefix, the approval that names the verb decides, and a longer prefix goes before.
func TestVerbsHaveApprovalsOfTheirOwn(t *testing.T) {
	w := newTill(t)
	w.one(w.put("/acc/a", "1"))
	w.one(w.do("note", "/acc/a", "2"))
	w.one(w.do("pay", "/other", "1"))
	id := w.propose(w.do("pay", "/acc/a", "3"))
	w.cast(w.approve(id, 2))
	if got := w.fate(id); got != "open" || w.value("/acc/a") != "2" {
		t.Fatalf("half of the weight makes it %s, the value is %q", got, w.value("/acc/a"))
	}
	w.cast(w.approve(id, 3)[2:])
	if got := w.fate(id); got != "carried" || w.value("/acc/a") != "3" {
		t.Fatalf("three quarters make it %s, the value is %q", got, w.value("/acc/a"))
	}

	w = newTill(t, func(p *Policy) {
		p.Approvals = append(p.Approvals,
			Approval{Matter: Changes, Prefix: []byte("/acc/"), Num: 1, Den: 4, Window: time.Hour},
			Approval{Matter: Changes, Prefix: []byte("/acc/deep/"), Num: 1, Den: 1, Window: time.Hour})
	})
	for name, x := range map[string]struct {
		m   Mutation
		num uint32
		den uint32
	}{
		"pay":            {w.do("pay", "/acc/a", "1"), 3, 4},
		"note":           {w.do("note", "/acc/b", "1"), 1, 4},
		"a put":          {w.put("/acc/c", "1"), 1, 4},
		"pay below more": {w.do("pay", "/acc/deep/d", "1"), 1, 1},
	} {
		m, _, err := w.state.Motion(w.propose(x.m))
		if err != nil || m.Approval.Num != x.num || m.Approval.Den != x.den {
			t.Errorf("%s takes %s, %v", name, &m.Approval, err)
		}
	}
}

// TestVerbsHoldUnderEveryName: an action on another alias of an object waits as well.
func TestVerbsHoldUnderEveryName(t *testing.T) {
	w := newTill(t)
	w.one(w.put("/acc/a", "1"))
	w.one(w.bind("/acc/a", "/free"))
	w.propose(w.do("pay", "/free", "2"))
	w.one(w.put("/free", "3"))
}

// TestApprovalsOfVerbsAreChecked, with the reason.
func TestApprovalsOfVerbsAreChecked(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*Policy)
		why    string
	}{
		"write":            {func(p *Policy) { p.Approvals[0].Verbs = []string{"write"} }, "an approval without verbs"},
		"an unknown verb":  {func(p *Policy) { p.Approvals[0].Verbs = []string{"refund"} }, `no rule about the verb "refund"`},
		"a claim":          {func(p *Policy) { p.Actions[1].Class = action.Claim }, "is of class claim"},
		"no verb":          {func(p *Policy) { p.Approvals[0].Verbs = []string{"Pay it"} }, "lower-case word"},
		"out of order":     {func(p *Policy) { p.Approvals[0].Verbs = []string{"pay", "note"} }, "distinct and in order"},
		"twice":            {func(p *Policy) { p.Approvals = append(p.Approvals, p.Approvals[0]) }, "two approvals of changes by pay"},
		"of deletions":     {func(p *Policy) { p.Approvals[0].Matter = Deletions }, "is one of changes"},
		"too many":         {func(p *Policy) { p.Approvals[0].Verbs = make([]string, maxApprovalVerbs+1) }, "at most 16"},
		"a second of note": {func(p *Policy) { a := p.Approvals[0]; a.Verbs = []string{"note"}; p.Approvals = append(p.Approvals, a) }, ""},
	} {
		w := newTill(t)
		p := w.g.Policy
		x.change(&p)
		if err := p.Check(); (err == nil) != (x.why == "") || err != nil && !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
