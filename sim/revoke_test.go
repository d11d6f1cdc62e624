package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestRevokedScopesObey: scopes are given to other anchors while nodes crash and links break,
// and one of their own makes believe that it governs alone.
func TestRevokedScopesObey(t *testing.T) {
	testshort.Skip(t)
	reached := make(map[string]uint64)
	few := func() bool {
		return reached["order obeyed"] < testshort.Cases[uint64](0, 4, 10) || reached["order obeyed under fire"] == 0
	}
	for seed := uint64(1); seed <= testshort.Cases[uint64](2, 2, 6) || seed <= 40 && few(); seed++ {
		r := mustRun(t, library(t, "revoked", seed))
		if r.Failed() || !r.Healed.Reached {
			t.Fatalf("seed %d: %s; scopes %+v", seed, r.Failure(), r.Scopes)
		}
		if !slices.ContainsFunc(r.Attacks, func(c Count) bool { return c.Name == "mutiny" && c.Count > 0 }) {
			t.Errorf("seed %d: nobody mutinied", seed)
		}
		reachedGoals(r, reached)
	}
	if few() {
		t.Errorf("orders obeyed: %d, under fire %d", reached["order obeyed"], reached["order obeyed under fire"])
	}
}

// TestObeyedCanBreak gives the machines of honest nodes, by hand, orders that were never given,
// and changes the orders that they are compared with.
func TestObeyedCanBreak(t *testing.T) {
	testshort.Skip(t)
	const notice = time.Second
	for name, c := range map[string]struct {
		change func(w, child *World)
		breaks bool
	}{
		"nothing is changed": {change: func(*World, *World) {}},
		"an order of nobody": {breaks: true, change: func(_, child *World) {
			r := &scope.Revocation{Child: scope.Child{Prefix: []byte("/b/"), Policy: child.Genesis.Policy, Anchors: child.Genesis.Anchors[:1]}, Time: 1, Entry: 1 << 30}
			for _, n := range child.Nodes {
				n.soon(machine.Ordered{Revocation: r})
			}
		}},
		"the notice is longer": {breaks: true, change: func(w, _ *World) { w.orders[0].Time = w.orders[0].Time.Add(time.Minute) }},
		"it was for others": {breaks: true, change: func(w, _ *World) {
			w.orders[0].Child.Anchors = slices.Clone(w.orders[0].Child.Anchors[1:])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scenario.Scenario{
				Network: scenario.Network{Anchors: 4, Notice: notice, EpochBlocks: 12}, Load: scenario.Load{Writes: 60, Under: []string{"/a/", "/b/"}},
				Govern: []scenario.Motion{
					{Kind: "delegate", Prefix: "/b/", Anchors: []int{0, 1, 2}},
					{Kind: "revoke", At: time.Second, Prefix: "/b/", Anchors: []int{1, 2, 3}},
				},
			})
			w.startClients()
			w.government()
			for w.Run(100*time.Millisecond, nil); len(w.orders) == 0; w.Run(100*time.Millisecond, nil) {
				if w.Now() > w.Scenario.Stop {
					t.Fatal("nothing was ordered")
				}
			}
			for i, r := range w.orders { // the machines keep theirs
				own := *r
				w.orders[i] = &own
			}
			c.change(w, w.scopes[1])
			w.Run(w.Scenario.Stop-w.Now(), nil)
			w.audit()
			v := w.watch.verdicts[Obeyed]
			if v.Checks == 0 || (v.Broken > 0) != c.breaks {
				t.Errorf("%+v, %v", v, w.findings.broken)
			}
		})
	}
}
