package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// TestVisitorsGoByReferral: nodes that know a network's genesis and hold no scope read and write
// in a chain of scopes, while that comes to be, keys and aliases move, epochs end, and an anchor lies
// to them.
func TestVisitorsGoByReferral(t *testing.T) {
	testshort.SkipUnlessLong(t)
	reached := make(map[string]uint64)
	deepest := 0
	goals := []string{"visit", "visitor's write", "referral", "visit over two referrals", "epoch proven to a visitor", "answer from a cache", "asked as of one revision", "answer outvoted", "forged referral", "write followed"}
	missing := func(g string) bool { return reached[g] == 0 }
	for seed := uint64(1); seed <= testshort.Cases[uint64](1, 1, 4) || seed <= 9 && (deepest < 5 || slices.ContainsFunc(goals, missing)); seed++ {
		r := mustRun(t, library(t, "referrals", seed))
		if r.Failed() || !r.Healed.Reached {
			t.Fatalf("seed %d: %s; scopes %+v", seed, r.Failure(), r.Scopes)
		}
		if r.Verdicts[Referred].Checks < 200 {
			t.Errorf("seed %d: %+v", seed, r.Verdicts[Referred])
		}
		for _, x := range r.Scopes {
			deepest = max(deepest, x.Depth)
		}
		reachedGoals(r, reached)
	}
	for _, g := range goals {
		if missing(g) {
			t.Errorf("%q was not reached", g)
		}
	}
	if deepest < 5 {
		t.Errorf("the deepest scope has %d above it", deepest)
	}
}

// TestReferredCanBreak changes by hand what visitors are held to.
func TestReferredCanBreak(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for name, c := range map[string]struct {
		change func(w *World, v *visitor, f *referral.Scope)
		breaks bool
	}{
		"nothing is changed": {change: func(*World, *visitor, *referral.Scope) {}},
		"what is there": {change: func(w *World, v *visitor, f *referral.Scope) {
			kv, _ := w.Nodes[0].get("/a/k0")
			w.truth(v, f, "/a/k0", kv, kv.ModRevision)
		}},
		"another value": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			kv, _ := w.Nodes[0].get("/a/k0")
			kv.Value = []byte("forged")
			w.truth(v, f, "/a/k0", kv, kv.ModRevision)
		}},
		"what was there before": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			kv, _ := w.Nodes[0].get("/a/k0")
			was, err := w.Nodes[0].state().Range([]byte("/a/k0"), nil, scope.Range{Revision: kv.ModRevision - 1})
			if err != nil {
				t.Fatal(err)
			}
			w.truth(v, f, "/a/k0", was.Kvs[0], kv.ModRevision)
		}},
		"that there is nothing": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			w.truth(v, f, "/a/k0", scope.KeyValue{}, w.answered)
		}},
		"the far future": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			kv, _ := w.Nodes[0].get("/a/k0")
			w.truth(v, f, "/a/k0", kv, 1<<60)
		}},
		"an epoch that turns out another": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			e := *w.epochs[0]
			e.Number = aweigh.Epoch(len(w.epochs))
			w.proven(v, f, &e)
			next := e
			next.Policy.EpochBlocks++
			w.shown[e.Number] = votes.Domain{}
			w.enter(&next)
		}},
		"a scope without a founding": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			w.referral(v, f, scope.Delegation{Prefix: []byte("/x/"), Child: aweigh.ScopeID{1}})
		}},
		"what was kept for too long": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			id := f.ID()
			v.told[string(id[:])+"/a/k0"] = w.Now() - 6*time.Second
			w.aged(v, f, &referral.Answer{Revision: 1 << 40}, "/a/k0", true)
		}},
		"what is older than what it knows": {breaks: true, change: func(w *World, v *visitor, f *referral.Scope) {
			id := f.ID()
			v.told[string(id[:])+"/a/k0"] = w.Now()
			v.heard[id] = 100
			w.aged(v, f, &referral.Answer{Revision: 99}, "/a/k0", true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Load: scenario.Load{Writes: 60, Keys: 1, Under: []string{"/a/"}}})
			w.startClients()
			w.Run(w.Scenario.Stop, nil)
			f, err := referral.NewScope(w.Genesis, store.NewMem())
			if err != nil {
				t.Fatal(err)
			}
			head := w.Nodes[0].state().Head()
			w.answered = head.ClosedTimestamp()
			c.change(w, &visitor{guest: guest{w: w}, told: make(map[string]time.Duration), heard: make(map[aweigh.ScopeID]int64)}, f)
			if broke := w.findings.verdicts[Referred].Broken > 0; broke != c.breaks {
				t.Errorf("broken: %v; %v", broke, w.findings.broken)
			}
		})
	}
}
