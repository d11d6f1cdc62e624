package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestExceededBundlesAreDone: a bundle that exceeded what it declares waits nowhere any more, and who hands it in
// again hears at once what became of it. The same mutation in another bundle is applied.
func TestExceededBundlesAreDone(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	n.step(Submit{Bundle: n.reserving(n.author, 0, 1, putTxn("/big", strings.Repeat("x", 100<<10)))})
	drop := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/big"), Prev: true}}}
	small, large := n.reserving(n.author, 3, 2, drop), n.reserving(n.author, 1000, 2, drop)
	id := small.Mutations()[0].ID
	if large.Mutations()[0].ID != id {
		t.Fatal("two mutations")
	}
	hear := func(fx Effects) (all []Reply) {
		for _, r := range fx.Reply {
			if r.Mutation == id {
				all = append(all, r)
			}
		}
		return all
	}
	await := func(fx Effects) Reply {
		t.Helper()
		for range 20 {
			if all := hear(fx); len(all) == 1 {
				return all[0]
			}
			fx = n.step()
		}
		t.Fatal("no answer")
		return Reply{}
	}
	first := await(n.step(Submit{Bundle: small}))
	if first.Outcome.Code != scope.Exceeded || first.Bundle != small.ID() {
		t.Fatalf("at first: %+v %+v", first, first.Outcome)
	}
	if !n.applied(small) || n.applied(large) {
		t.Error("the bundle that exceeded is to be done yet, or the other one is done")
	}
	n.step(Arrived{From: "a", Message: BundleIn{Bundle: small}})
	if n.pool.get(small.ID()) != nil {
		t.Error("it waits again")
	}
	again := hear(n.step(Submit{Bundle: large}, Submit{Bundle: small}))
	if len(again) == 0 || again[0].Bundle != small.ID() || again[0].Outcome.Code != scope.Exceeded ||
		again[0].Height != first.Height {
		t.Fatalf("again: %+v", again)
	}
	var done Reply
	if len(again) > 1 {
		done = again[1]
	} else {
		done = await(n.step())
	}
	if done.Outcome.Code != scope.Applied || !done.Bundle.IsZero() {
		t.Errorf("the other bundle: %+v, %+v", done, done.Outcome)
	}
}

// TestBundlesWaitUntilTheyAreTaken: what is valid for longer than the policy allows would be refused without a
// record, and its author could not tell whether it is executed later. So honest leaders let it wait.
func TestBundlesWaitUntilTheyAreTaken(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	at, lim := n.now, n.chain.policy.Limits
	n.now = at.Add(lim.ValidFor + lim.Drift - time.Minute) // it dates what it signs a minute ahead
	b := n.reserving(n.author, 0, 1, putTxn("/k", "v"))
	n.now = at
	if err := n.admit(b, ""); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]int{lim.Drift - time.Nanosecond: 0, lim.Drift: 1} { // order-free
		if got := len(n.pick(nil, at.Add(after))); got != want {
			t.Errorf("%d bundles in a block %v later, want %d", got, after, want)
		}
	}
	n.refit(lim, true)
	if n.pool.get(b.ID()) == nil {
		t.Error("it waits no more")
	}
	lim.ValidFor /= 2 // by another policy; no block should be made for it all the while
	if n.refit(lim, true); n.pool.get(b.ID()) != nil {
		t.Error("it waits for minutes")
	}
}
