package scope

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/action"
)

// impactOf is what a decision of the first anchor would change.
func (w *assembly) impactOf(d Decision) *Reform {
	w.t.Helper()
	author := w.author
	w.author = w.keys[0]
	defer func() { w.author = author }()
	f, err := w.state.Impact(w.mutation(Govern, d), w.now.Add(time.Second))
	if err != nil || f.Impact == nil || f.Impact.Reform == nil {
		w.t.Fatalf("%+v, %v, %+v", f.Outcome, err, f.Impact)
	}
	return f.Impact.Reform
}

// TestImpactOfPolicies: the verdicts that an impact says will flip do flip with the next epoch, and no others; the same
// is so of approvals, weights, and of how few could do harm.
func TestImpactOfPolicies(t *testing.T) {
	alice, bob := testKey(t, 51), testKey(t, 52)
	w := newAssembly(t, 4, func(p *Policy) {
		p.Authors = []Author{
			{Name: "alice", Who: OneKey, Key: alice.Public(), Prefixes: [][]byte{[]byte("/a/"), []byte("/b/")}},
			{Name: "anchors", Who: Anchors},
			{Name: "quiet", Who: OneKey, Key: testKey(t, 53).Public(), Prefixes: [][]byte{[]byte("/q/")}},
		}
	})
	old := w.g.Policy
	p := old
	p.Approvals = []Approval{{Matter: Deletions, Prefix: []byte("/d/"), Num: 2, Den: 3, Window: time.Hour}}
	p.Actions = action.Table{{Verb: "pay", Class: action.Write, When: "caller.weight > 0"}}
	p.Authors = []Author{
		{Name: "alice", Who: OneKey, Key: alice.Public(), Prefixes: [][]byte{[]byte("/b/")}, Verbs: []string{VerbDelete, VerbPut}},
		{Name: "anchors", Who: Anchors},
		{Name: "bob", Who: OneKey, Key: bob.Public(), Prefixes: [][]byte{[]byte("/c/")}, Verbs: []string{VerbPut}},
		{Name: "silent", Who: OneKey, Key: testKey(t, 53).Public(), Prefixes: [][]byte{[]byte("/q/")}},
	}
	r := w.impactOf(Decision{Kind: SetPolicy, Policy: &p})
	var flips []string
	for _, f := range r.Flips {
		may := "-"
		if f.May {
			may = "+"
		}
		flips = append(flips, may+f.Who+" "+f.Verb+" "+string(f.Prefix))
		if f.Who == "" {
			continue
		}
		key := map[string][]byte{"alice": nil, "bob": nil}
		if _, known := key[f.Who]; !known {
			t.Errorf("%s flips", f.Who)
			continue
		}
		id := alice.Public().ID()
		if f.Who == "bob" {
			id = bob.Public().ID()
		}
		was, is := old.Rights(id, false).Entry(f.Verb, append(f.Prefix, 'x')) != nil, p.Rights(id, false).Entry(f.Verb, append(f.Prefix, 'x')) != nil
		if was == is || is != f.May {
			t.Errorf("%s of %s on %q: %v and then %v, said %v", f.Verb, f.Who, f.Prefix, was, is, f.May)
		}
	}
	for _, want := range []string{"+ pay ", "-alice put /a/", "-alice delete /a/", "-alice alias /b/", "+bob put /c/"} {
		if !slices.Contains(flips, want) {
			t.Errorf("no %q among %q", want, flips)
		}
	}
	if slices.Contains(flips, "-alice put /b/") || r.Flipped != int64(len(r.Flips)) || r.Untold {
		t.Errorf("%d flips, %q, untold %v", r.Flipped, flips, r.Untold)
	}
	var asks []string
	for _, a := range r.Asks {
		asks = append(asks, a.Of+": "+a.Was+" -> "+a.Is)
	}
	if got, want := strings.Join(asks, "; "), `changes below "/secrets/": at least 3/4 of the weight, 3 anchors, within 1h0m0s -> ; deletions below "/d/":  -> at least 2/3 of the weight, within 1h0m0s`; got != want || r.Asked != 2 {
		t.Errorf("approvals %s", got)
	}
	if r.Anchors != 4 || r.Was != (FewestToFail{Stop: 2, Break: 2}) || r.Is != r.Was {
		t.Errorf("%+v", r)
	}
}

// TestImpactOfEviction: the weights that an impact names are those of the next epoch.
func TestImpactOfEviction(t *testing.T) {
	w := newAssembly(t, 5)
	e, _ := w.state.Epoch()
	goes := w.keys[4].Public().ID()
	d := Decision{Kind: Evict, Subject: goes}
	r := w.impactOf(d)
	client := w.author
	w.author = w.keys[0]
	w.cast(w.approve(w.step(w.mutation(Govern, d)).Outcomes[0].Mutation, 5)[1:])
	w.author = client
	w.turn()
	next, err := w.state.Epoch()
	if err != nil || next.Number != e.Number+1 {
		t.Fatal(err)
	}
	if r.Anchors != int64(len(next.Roster.Anchors)) || r.Is != Fewest(next.Policy.Rules, next.Roster.Weights) || r.Was != Fewest(e.Policy.Rules, e.Roster.Weights) {
		t.Errorf("%+v, and %d anchors", r, len(next.Roster.Anchors))
	}
	if !slices.ContainsFunc(r.Seats, func(s Seat) bool { return s.Anchor == goes && s.Is == 0 && s.Was > 0 && s.Name != "" }) {
		t.Errorf("the anchor that goes is not named: %+v", r.Seats)
	}
	for _, s := range r.Seats {
		if s.Was != e.Roster.Weights.Of(s.Anchor) || s.Is != next.Roster.Weights.Of(s.Anchor) {
			t.Errorf("%+v, and it weighs %d", s, next.Roster.Weights.Of(s.Anchor))
		}
	}
}
