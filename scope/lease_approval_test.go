package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
)

// TestLeasesAreNoWayAroundApproval: where the deletion of a key takes approval, no put names
// a lease, whether the put itself takes approval or not, and none keeps one.
func TestLeasesAreNoWayAroundApproval(t *testing.T) {
	for _, matter := range []Matter{Changes, Deletions} {
		t.Run(matter.String(), func(t *testing.T) {
			w := newAssembly(t, 4, func(p *Policy) { p.Approvals[0].Matter = matter })
			w.one(w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{7}, TTL: 600}))
			for name, ops := range map[string][]Op{
				"alone":               {{Kind: OpPut, Key: []byte("/secrets/a"), Value: []byte("1"), Lease: 7}},
				"among others":        {put("/free", "1"), {Kind: OpPut, Key: []byte("/secrets/a"), Value: []byte("1"), Lease: 7}},
				"in a branch within":  {{Kind: OpTxn, Txn: &Txn{Success: []Op{{Kind: OpPut, Key: []byte("/secrets/a"), Value: []byte("1"), Lease: 7}}}}},
				"the end of a prefix": {{Kind: OpPut, Key: []byte("/secrets/"), Value: []byte("1"), Lease: 7}},
			} {
				if out := w.step(w.ops(ops...)).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrLeased {
					t.Errorf("%s: %s: %s", name, out.Code, out.Reason)
				}
			}
			w.one(w.ops(Op{Kind: OpPut, Key: []byte("/free"), Value: []byte("1"), Lease: 7}))
			if matter == Deletions {
				w.one(w.put("/secrets/a", "1"))
				if out := w.step(w.ops(Op{Kind: OpPut, Key: []byte("/secrets/a"), IgnoreValue: true, Lease: 7})).Outcomes[0]; out.Code != Failed {
					t.Errorf("attached later: %s", out.Code)
				}
			}
			if id := w.propose(w.ops(put("/secrets/b", "2"), del("/secrets/c", ""), Op{Kind: OpPut, Key: []byte("/free"), Value: []byte("2"), Lease: 7})); matter == Changes {
				mo, _, err := w.state.Motion(id)
				if err != nil || mo.Basis[2].TTL != 600 || mo.Basis[2].Keeper != w.author.Public().ID() {
					t.Errorf("voters are not told of the lease beside it: %+v, %v", mo, err)
				}
			}
		})
	}
}

// guarding is an assembly whose policy asks for approval of deletions below /secrets/ only
// after keys there were attached to lease 7, which also holds /free.
func guarding(t *testing.T, ttl int64, before ...func(*assembly)) *assembly {
	t.Helper()
	w := newAssembly(t, 4, func(p *Policy) { p.Approvals[0].Prefix = []byte("/other/") })
	w.one(w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{7}, TTL: ttl}))
	for _, k := range []string{"/free", "/secrets/a", "/secrets/b"} {
		w.one(w.ops(Op{Kind: OpPut, Key: []byte(k), Value: []byte("of " + k), Lease: 7}))
	}
	for _, do := range before {
		do(w)
	}
	p := w.g.Policy
	p.EpochBlocks++
	p.Approvals = []Approval{{Matter: Deletions, Prefix: []byte("/secrets/"), Num: 3, Den: 4, Window: time.Hour}}
	client := w.author
	w.author = w.keys[0]
	out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
	if out.Code != Applied {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	w.author = client
	w.cast(w.approve(out.Mutation, 4)[1:])
	w.turn()
	return w
}

// expire makes the first block after a lease's end.
func (w *assembly) expire(id int64) {
	w.t.Helper()
	g, ok, err := w.state.Lease(id)
	if err != nil || !ok {
		w.t.Fatalf("lease %d: %v, %v", id, ok, err)
	}
	w.now = g.Expires.Add(-time.Second)
	w.step()
}

// TestGuardedKeysOutliveTheirLease: keys whose deletion takes approval by the time that their
// lease ends stay without it, and the lineage records that; the others are deleted. Revoking
// the lease is refused.
func TestGuardedKeysOutliveTheirLease(t *testing.T) {
	w := guarding(t, 600)
	if out := w.step(w.mutation(Lease, LeaseRequest{Kind: LeaseRevoke, IDs: []int64{7}})).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrGuarded {
		t.Fatalf("revoked: %s: %s", out.Code, out.Reason)
	}
	if out := w.step(w.ops(Op{Kind: OpPut, Key: []byte("/secrets/a"), Value: []byte("2"), IgnoreLease: true})).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrLeased {
		t.Errorf("a put that keeps the lease: %s: %s", out.Code, out.Reason)
	}
	w.expire(7)
	if _, there, err := w.state.Lease(7); there || err != nil {
		t.Fatalf("the lease is there: %v", err)
	}
	if w.value("/free") != "" || w.value("/secrets/a") != "of /secrets/a" || w.value("/secrets/b") != "of /secrets/b" {
		t.Fatalf("%q, %q, %q", w.value("/free"), w.value("/secrets/a"), w.value("/secrets/b"))
	}
	v, ok, err := w.state.NewestChange([]byte("/secrets/a"))
	if err != nil || !ok || v.Lease != 0 || v.Version != 2 {
		t.Fatalf("%+v, %v, %v", v, ok, err)
	}
	e, ok, err := w.state.Lineage().Entry(v.Entry)
	if err != nil || !ok || e.Class != lineage.Update || !e.Mutation.IsZero() || !strings.HasPrefix(e.Reason, "lease 7 expired; the policy asks for approval") {
		t.Errorf("the lineage has %+v, %v", e, err)
	}
	if id := w.propose(w.ops(del("/secrets/a", ""))); id.IsZero() {
		t.Error("its deletion takes no approval")
	}
}

// TestGuardedAliasesOutliveTheirLease: all names of an object show the same, with versions in
// step, after one of them lost its lease.
func TestGuardedAliasesOutliveTheirLease(t *testing.T) {
	w := guarding(t, 600, func(w *assembly) {
		w.one(w.mutation(Name, Naming{Kind: Bind, Key: []byte("/secrets/a"), To: []byte("/alias")}))
		w.one(w.put("/alias", "2"))
	})
	w.expire(7)
	if w.value("/secrets/a") != "2" || w.value("/alias") != "2" {
		t.Fatalf("%q, %q", w.value("/secrets/a"), w.value("/alias"))
	}
	w.one(w.put("/alias", "3"))
	if w.value("/secrets/a") != "3" {
		t.Errorf("it shows %q", w.value("/secrets/a"))
	}
	v, ok, err := w.state.NewestChange([]byte("/secrets/a"))
	n := 0
	if err == nil && ok {
		err = w.state.Versions(v.UID, func(Version) bool { n++; return true })
	}
	if err != nil || n != 4 { // put, put under the other name, without the lease, put again
		t.Errorf("%d versions, %v", n, err)
	}
}

// TestGuardedKeysOutliveTheirLeaseInAChild: a scope takes keys over with their leases, and
// its own policy decides what may end with them.
func TestGuardedKeysOutliveTheirLeaseInAChild(t *testing.T) {
	r := newRealm(t, nil)
	r.step(r.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{9}, TTL: 600}))
	r.one(r.ops(leased("/b/secret", "1", 9), leased("/b/free", "2", 9)))
	d := r.decision("/b/", quorum.Crash, "a", "b")
	d.Child.Policy.Approvals = []Approval{{Matter: Deletions, Prefix: []byte("/b/secret"), Num: 1, Den: 2, Window: time.Hour}}
	c := r.child(r.delegate(d).Founded[0])
	g, ok, err := c.state.Lease(9)
	if err != nil || !ok || g.Keeper != r.author.Public().ID() || g.Keys != 2 {
		t.Fatalf("%+v, %v, %v", g, ok, err)
	}
	c.now = g.Expires.Add(-time.Second) // a second before the next block
	c.step()
	all := c.live()
	if v := all["/b/secret"]; string(v.Value) != "1" || v.Lease != 0 || len(all) != 1 {
		t.Errorf("it has %+v", all)
	}
}
