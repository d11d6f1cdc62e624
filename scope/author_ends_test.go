package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/votes"
)

// TestP44LeasesNeedTheRightToDelete: a put that attaches a key to a lease deletes it later, so it takes both rights.
func TestP44LeasesNeedTheRightToDelete(t *testing.T) {
	w := withAuthors(t, nil, alice(t, []string{VerbLease, VerbPut}, "/prod/"), author(t, "root", 97, nil))
	w.author = testKey(t, 97)
	w.step(w.put("/prod/x", "1"))
	w.author = testKey(t, 99)
	w.one(w.grant(7, 1000))
	attach := w.ops(leased("/prod/x", "1", 7))
	if out := w.step(attach).Outcomes[0]; out.Code != Failed || !errors.Is(Failure(out.Reason), ErrDenied) || !strings.Contains(out.Reason, "delete") {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	e, err := w.state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Sign(w.author, w.g.Policy.Limits, attach)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Admits(b); !errors.Is(err, ErrDenied) {
		t.Errorf("admitted: %v", err)
	}
	w.one(w.ops(Op{Kind: OpPut, Key: []byte("/prod/x"), Value: []byte("2"), IgnoreLease: true}))
	w.author = testKey(t, 97)
	w.one(w.ops(leased("/prod/x", "3", 7)))
	w.author = testKey(t, 99)
	w.one(w.ops(Op{Kind: OpPut, Key: []byte("/prod/x"), Value: []byte("4"), IgnoreLease: true}))
}

// TestP45RecordsWithALeasePermitNothing: a holder who may keep leases alive would else keep its own record.
func TestP45RecordsWithALeasePermitNothing(t *testing.T) {
	w := grantTest{withAuthors(t, nil, alice(t, nil), author(t, "root", 97, nil))}
	w.author = testKey(t, 99)
	w.one(w.world.grant(7, 10))
	w.one(w.ops(leased("/tokens/ci", "r", 7)))
	g := w.grant(99, 50, only("/a/", VerbLease, VerbPut), func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci") })
	if out := w.does(50, w.put("/a/x", "1"), g); out.Code != Failed || !strings.Contains(out.Reason, "has a lease") {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	w.author = testKey(t, 99)
	w.one(w.ops(put("/tokens/ci", "r")))
	if out := w.does(50, w.put("/a/x", "1"), g); out.Code != Applied {
		t.Fatalf("without its lease: %s %s", out.Code, out.Reason)
	}
}

// TestP46WhatExceedsItsCostCountsAtTheRate: also where the cost is that of a grant's record.
func TestP46WhatExceedsItsCostCountsAtTheRate(t *testing.T) {
	w := grantTest{withAuthors(t, nil, alice(t, []string{VerbDelete, VerbPut}, "/a/").with(Quota{Rate: 1}), author(t, "root", 97, nil))}
	w.does(97, w.put("/tokens/ci", strings.Repeat("x", 1<<20)))
	grant := w.grant(99, 50, func(g *Grant) { g.Record, g.Object = []byte("/tokens/ci"), w.uid("/tokens/ci") })
	w.author, w.now = testKey(t, 50), w.now.Add(time.Second)
	var all []*CheckedBundle
	for i := range 40 {
		m := w.put(fmt.Sprint("/a/", i), "1")
		m.Grants = [][]byte{grant}
		all = append(all, w.reserving(0, m))
	}
	exceeded, failed := 0, 0
	for _, out := range w.execute(w.block(all)).Outcomes {
		switch out.Code {
		case Exceeded:
			exceeded++
		case Failed:
			failed++
		default:
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	used := w.used("alice")
	if used.Full == 0 || exceeded != 40 || failed != 0 {
		t.Fatalf("%d exceeded and %d failed, usage %+v", exceeded, failed, used)
	}
}

// TestP44MotionsOfRevokedAuthorsAreNotCarried: not in the block that ends the epoch either, where they may have waited
// for their turn.
func TestP44MotionsOfRevokedAuthorsAreNotCarried(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) {
		p.Limits.BlockCost = leastBlockCost
		p.Authors = []Author{alice(t, nil), {Name: "anchors", Who: Anchors}}
	})
	w.skip = true
	w.author = testKey(t, 99)
	for i := 0; i < 300; i += 100 {
		var ops []Op
		for k := i; k < i+100; k++ {
			ops = append(ops, put(fmt.Sprintf("/k/%04d", k), "v"))
		}
		w.run(w.reserving(0, w.ops(ops...)))
	}
	var ids []votes.MotionID
	for i := range 6 {
		ops := []Op{put(fmt.Sprintf("/secrets/%d", i), "1")}
		for range 100 {
			ops = append(ops, get("/k/", "/k0"))
		}
		out := w.run(w.reserving(leastBlockCost-mutationUnit-opUnits*int64(len(ops)), w.ops(ops...))).Outcomes[0]
		if out.Code != Pending {
			t.Fatal(out.Code, out.Reason)
		}
		ids = append(ids, out.Mutation)
	}
	p := w.g.Policy
	p.EpochBlocks++
	p.Authors = DefaultAuthors()
	w.author = w.keys[0]
	revokes := w.run(w.reserving(0, w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p}))).Outcomes[0].Mutation
	all := append(slices.Clone(ids), revokes)
	slices.SortFunc(all, func(a, b votes.MotionID) int { return slices.Compare(a[:], b[:]) })
	var ballots []votes.MotionBallot
	for _, id := range all {
		of := w.approve(id, 4)
		if id == revokes {
			of = of[1:]
		}
		ballots = append(ballots, of...)
	}
	w.cast(ballots)
	carried := func() (n int) {
		for _, id := range ids {
			if w.fate(id) == "carried" {
				n++
			}
		}
		return n
	}
	with := carried() // in the block of the revocation itself
	if w.fate(revokes) != "carried" || with == len(ids) {
		t.Fatalf("%d of %d are carried in the block of the revocation, which is %s", with, len(ids), w.fate(revokes))
	}
	for range 4 {
		w.step()
	}
	for _, id := range ids {
		if fate := w.fate(id); fate != "carried" && !strings.HasPrefix(fate, "void: ") {
			t.Errorf("a motion of an author that is revoked is %s", fate)
		}
	}
	if n := carried(); n != with {
		t.Errorf("%d motions of a revoked author are carried, %d of them after the revocation", n, n-with)
	}
}
