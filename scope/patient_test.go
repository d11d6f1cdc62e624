package scope

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
)

// TestP49OnlyMotionsWaitForLong: a mutation that is valid for longer than others opens a motion, or is on record as
// failed, whatever else it asks for.
func TestP49OnlyMotionsWaitForLong(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) {
		p.Limits.Pending, p.EpochTime = 30*24*time.Hour, mostEpoch
		p.Actions = action.Table{{Verb: "wave", Class: action.Claim, When: "true"}}
	})
	week := func(m Mutation) Mutation {
		m.ValidUntil = w.now.Add(7 * 24 * time.Hour)
		return m
	}
	id := w.propose(week(w.put("/secrets/a", "1")))
	free := week(w.put("/free", "1"))
	elsewhere := week(w.ops(put("/secrets/b", "1")))
	elsewhere.Content = canon.Encode(Txn{Compare: []Compare{{Key: []byte("/none"), Target: OnVersion, Relation: Equal, Number: 7}},
		Success: []Op{put("/secrets/b", "1")}})
	for name, m := range map[string]Mutation{ // order-free: none of them changes anything
		"without approval":                   free,
		"a branch that takes no approval":    elsewhere,
		"a lease":                            week(w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{7}, TTL: 60, Asked: w.now})),
		"a compaction":                       week(w.compaction(1)),
		"a name":                             week(w.mutation(Name, Naming{Kind: Bind, Key: []byte("/x"), To: []byte("/y")})),
		"a claim":                            week(w.mutation(Act, Action{Verb: "wave", Class: action.Claim, Key: []byte("/free")})),
		"a decision, by which a policy goes": week(w.mutation(Govern, Decision{Kind: Evict, Subject: w.keys[1].Public().ID()})),
	} {
		out := w.step(m).Outcomes[0]
		if out.Code != Failed || !errors.Is(Failure(out.Reason), ErrPatient) {
			t.Errorf("%s: %s %s", name, out.Code, out.Reason)
		}
	}
	longer := w.put("/secrets/c", "1")
	longer.ValidUntil = w.now.Add(31 * 24 * time.Hour)
	if out := w.step(longer).Outcomes[0]; out.Code != Refused {
		t.Errorf("for longer than the policy allows: %s", out.Code)
	}

	// The receipt lasts as long as the mutation, though the motion closes long before.
	w.cast(w.approve(id, 3))
	if fate := w.fate(id); fate != "carried" {
		t.Fatalf("the motion is %s", fate)
	}
	var first Mutation
	m, _, err := w.state.Motion(id)
	if err != nil || first.decode(m.Mutation) != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(6 * 24 * time.Hour)
	if out := w.step(first).Outcomes[0]; out.Code != Pending || out.Mutation != aweigh.Hash(id) {
		t.Errorf("six days later: %s", out.Code)
	}
	if r, err := w.state.Range([]byte("/secrets/a"), nil, Range{}); err != nil || len(r.Kvs) != 1 || r.Kvs[0].Version != 1 {
		t.Errorf("it was applied as %+v, %v", r.Kvs, err)
	}
	w.now = first.ValidUntil.Add(time.Hour)
	if out := w.step(first).Outcomes[0]; out.Code != Expired {
		t.Errorf("when its time is over: %s", out.Code)
	}

	// Near its end it is as any other.
	soon := w.put("/free", "2")
	soon.ValidUntil = w.now.Add(w.g.Policy.Limits.ValidFor)
	if out := w.step(soon).Outcomes[0]; out.Code != Applied {
		t.Errorf("valid for as long as others: %s %s", out.Code, out.Reason)
	}
}
