package machine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// newNarrow is a machine whose policy lets key 9 put below /a/, 1 a second.
func newNarrow(t *testing.T) *lone {
	p := scope.DefaultPolicy(quorum.BFT)
	p.Authors = append(p.Authors[:1], scope.Author{
		Name: "app", Who: scope.OneKey, Key: loneKey(t, 9).Public(), Verbs: []string{scope.VerbPut}, Prefixes: [][]byte{[]byte("/a/")},
		Quota: scope.Quota{Rate: 1},
	})
	n := newLone(t, p, false)
	n.author = loneKey(t, 9)
	return n
}

// TestDeniedWritesReachNoBlock: what the rights of a listed author do not permit takes no place in a pool and none of
// its rate, whether a client hands it in or a peer sends it. A proposal that waits for it gets it.
func TestDeniedWritesReachNoBlock(t *testing.T) {
	n := newNarrow(t)
	denied := n.sign(n.write("/b", "v"))
	fx := n.step(Submit{Bundle: denied})
	if n.pool.mutations != 0 || len(fx.Reply) != 1 || !errors.Is(fx.Reply[0].Refused, scope.ErrDenied) || errors.Is(fx.Reply[0].Refused, scope.ErrNoAuthor) {
		t.Fatalf("%d mutations wait, told are %+v", n.pool.mutations, fx.Reply)
	}
	for range 30 {
		fx = n.step(Arrived{From: "stranger", Message: BundleIn{Bundle: denied}})
		if d, ok := fx.Notes[0].(Dropped); !ok || d.Class != refusal.Denied || d.Class.Blame() || n.pool.mutations != 0 {
			t.Fatalf("%d mutations wait, noted is %+v", n.pool.mutations, fx.Notes[0])
		}
	}
	for range 10 { // as many as are saved up
		if fx := n.step(Submit{Bundle: n.sign(n.write("/a/x", "v"))}); len(fx.Reply) > 0 {
			t.Fatalf("told are %+v", fx.Reply)
		}
	}
	n.wants.parts = []*part{{hash: denied.ID(), lacks: map[aweigh.Hash]bool{denied.ID(): true}}}
	if err := n.admit(denied, "leader"); err != nil || n.pool.get(denied.ID()) == nil {
		t.Errorf("a proposal cannot be assembled: %v", err)
	}
}

// TestFewDeniedWritesSpoilNoBundle: a policy may change while a node signs. A bundle is refused if most of it is
// denied, and one that waits is dropped if nothing of it is permitted any more.
func TestFewDeniedWritesSpoilNoBundle(t *testing.T) {
	n := newNarrow(t)
	few := n.sign(n.write("/b", "v"), n.write("/a/x", "v"))
	most := n.sign(n.write("/b", "v"), n.write("/c", "v"), n.write("/a/x", "v"))
	if err := n.admit(few, "anchor"); err != nil {
		t.Errorf("half of it is permitted: %v", err)
	}
	if err := n.admit(most, "anchor"); !errors.Is(err, scope.ErrDenied) {
		t.Errorf("most of it is denied: %v", err)
	}
	n.wants.parts = []*part{{hash: most.ID(), lacks: map[aweigh.Hash]bool{most.ID(): true}}}
	if err := n.admit(most, "anchor"); err != nil {
		t.Fatal(err)
	}
	n.refit(n.chain.policy.Limits, false)
	if n.pool.get(few.ID()) == nil || n.pool.get(most.ID()) == nil {
		t.Error("a write that is permitted was dropped with others")
	}
}

// TestApplicationsHaveLittleRoom: any key may ask to become an anchor. Few such bundles wait at a time, and one that
// would fail does not.
func TestApplicationsHaveLittleRoom(t *testing.T) {
	n := newLone(t, scope.DefaultPolicy(quorum.BFT), false)
	sponsor := n.chain.terms.Roster.Anchors[0].Key.ID()
	apply := func(i byte, sponsor aweigh.AnchorID) *scope.CheckedBundle {
		t.Helper()
		n.author = loneKey(t, i)
		peer, err := PeerOf(n.author)
		if err != nil {
			t.Fatal(err)
		}
		d := scope.Admission(n.id, n.author, fmt.Sprint("n", i), string(peer), sponsor)
		m := n.write("", "")
		m.Class, m.Content = scope.Govern, canon.Encode(d)
		return n.sign(m)
	}
	for i := range byte(maxApplications) {
		if err := n.admit(apply(10+i, sponsor), "stranger"); err != nil {
			t.Fatalf("application %d: %v", i, err)
		}
	}
	if err := n.admit(apply(10, sponsor), "another"); err != nil || n.pool.applications != maxApplications {
		t.Errorf("a copy of the first, by another peer: %v", err)
	}
	if err := n.admit(apply(100, sponsor), "stranger"); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	for _, e := range n.pool.order {
		n.pool.drop(e)
	}
	if err := n.admit(apply(101, sponsor), "stranger"); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	if err := n.admit(apply(102, aweigh.AnchorID{1}), "stranger"); !errors.Is(err, scope.ErrDenied) {
		t.Errorf("one that would fail: %v", err)
	}
}
