package machine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestForbiddenWritesAreRefused: a policy begins that does not take all of what waits.
// Who waits for such a write is told, and nobody is told of one that another bundle
// holds, too.
func TestForbiddenWritesAreRefused(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), false)
	small, large := n.write("/small", "v"), n.write("/large", strings.Repeat("v", 100))
	both := n.sign(small, large)
	n.step(Submit{Bundle: both}, Submit{Bundle: n.sign(small)})
	if n.Flying() != 2 || n.pool.mutations != 3 {
		t.Fatalf("%d mutations are to be answered, %d wait", n.Flying(), n.pool.mutations)
	}
	n.fx = Effects{}
	lim := n.chain.policy.Limits
	lim.ValueBytes = 50
	n.refit(lim, true)
	if n.Flying() != 1 || n.pool.mutations != 1 || len(n.fx.Reply) != 1 {
		t.Fatalf("%d mutations are to be answered, %d wait, told are %v", n.Flying(), n.pool.mutations, n.fx.Reply)
	}
	if r := n.fx.Reply[0]; r.Mutation != both.Mutations()[1].ID || !errors.Is(r.Refused, scope.ErrInvalid) {
		t.Errorf("told is %+v", r)
	}
}

// TestAuthorsThatAreNotListedAreRefused: a bundle of an author that the policy does not list never waits for a block,
// whether a client hands it in or a peer sends it. A peer is not blamed: it may know another policy.
func TestAuthorsThatAreNotListedAreRefused(t *testing.T) {
	n := newLone(t, scope.DefaultPolicy(quorum.BFT), false)
	n.author = loneKey(t, 9) // no anchor's
	b := n.sign(n.write("/a", "v"))
	fx := n.step(Submit{Bundle: b})
	if n.pool.mutations != 0 || len(fx.Reply) != 1 || !errors.Is(fx.Reply[0].Refused, scope.ErrNoAuthor) {
		t.Fatalf("%d mutations wait, told are %+v", n.pool.mutations, fx.Reply)
	}
	fx = n.step(Arrived{From: "stranger", Message: BundleIn{Bundle: b}})
	if n.pool.mutations != 0 || len(fx.Notes) != 1 {
		t.Fatalf("%d mutations wait, noted are %v", n.pool.mutations, fx.Notes)
	}
	if d, ok := fx.Notes[0].(Dropped); !ok || d.Class != refusal.Denied || d.Class.Blame() {
		t.Errorf("noted is %+v", fx.Notes[0])
	}
}

// TestRevokedAuthorsDoNotWait: an epoch begins whose policy does not list an author whose bundle waits: no honest
// anchor proposes it, and a request for it fails.
func TestRevokedAuthorsDoNotWait(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), false)
	anchor, author := n.author, loneKey(t, 9)
	kept := n.sign(n.write("/a", "v"))
	n.author = author
	b := n.sign(n.write("/b", "v"))
	n.step(Submit{Bundle: kept}, Submit{Bundle: b})
	n.fx = Effects{}
	closed := newLone(t, scope.DefaultPolicy(quorum.BFT), false)
	n.chain.terms = closed.chain.terms
	n.refit(n.chain.policy.Limits, false)
	if n.pool.get(b.ID()) != nil || n.pool.get(kept.ID()) == nil {
		t.Errorf("the bundle of the revoked author waits: %v; that of %v: %v", n.pool.get(b.ID()) != nil, anchor.Public(), n.pool.get(kept.ID()) != nil)
	}
	if len(n.fx.Reply) != 1 || !errors.Is(n.fx.Reply[0].Refused, scope.ErrNoAuthor) {
		t.Errorf("told are %+v", n.fx.Reply)
	}
}

// TestProposalsGetTheBundlesOfUnlistedAuthors: a bundle that a proposal waits for is taken from any author, or one
// bundle that only the leader admitted would cost its view. Execution denies it.
func TestProposalsGetTheBundlesOfUnlistedAuthors(t *testing.T) {
	n := newLone(t, scope.DefaultPolicy(quorum.BFT), false)
	n.author = loneKey(t, 9)
	b := n.sign(n.write("/a", "v"))
	if err := n.admit(b, "leader"); !errors.Is(err, scope.ErrNoAuthor) {
		t.Fatal(err)
	}
	n.wants.parts = []*part{{hash: b.ID(), lacks: map[aweigh.Hash]bool{b.ID(): true}}}
	if err := n.admit(b, "leader"); err != nil || n.pool.get(b.ID()) == nil {
		t.Errorf("a proposal cannot be assembled: %v", err)
	}
}

// TestFloodsOverTheRateAreRefused: bundles beyond what an entry's rate permits never wait for a block, counted with
// those that wait already. A peer is not blamed, and a proposal gets its bundles all the same.
func TestFloodsOverTheRateAreRefused(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Authors[0].Quota.Rate = 1
	n := newLone(t, p, false)
	for range 9 {
		if fx := n.step(Submit{Bundle: n.sign(n.write("/a", "v"))}); len(fx.Reply) > 0 {
			t.Fatalf("told are %+v", fx.Reply)
		}
	}
	if fx := n.step(Submit{Bundle: n.sign(n.write("/a", "v"), n.write("/b", "v"))}); len(fx.Reply) != 2 || !errors.Is(fx.Reply[0].Refused, scope.ErrRate) {
		t.Fatalf("told are %+v", fx.Reply)
	}
	n.step(Submit{Bundle: n.sign(n.write("/a", "v"))})
	b := n.sign(n.write("/a", "v"))
	fx := n.step(Arrived{From: "stranger", Message: BundleIn{Bundle: b}})
	if n.pool.mutations != 10 || len(fx.Notes) != 1 || n.pool.paced["any"] != 10 {
		t.Fatalf("%d mutations wait, %v count, noted are %v", n.pool.mutations, n.pool.paced, fx.Notes)
	}
	if d, ok := fx.Notes[0].(Dropped); !ok || d.Class != refusal.Full || d.Class.Blame() {
		t.Errorf("noted is %+v", fx.Notes[0])
	}
	n.wants.parts = []*part{{hash: b.ID(), lacks: map[aweigh.Hash]bool{b.ID(): true}}}
	if err := n.admit(b, "leader"); err != nil || n.pool.get(b.ID()) == nil {
		t.Errorf("a proposal cannot be assembled: %v", err)
	}
	for _, e := range n.pool.order {
		n.pool.drop(e)
	}
	if len(n.pool.paced) != 0 {
		t.Errorf("an empty pool counts %v", n.pool.paced)
	}
}

// TestHoldersHaveNoSeat: a holder has no turns of the anchor that signed its grant.
func TestHoldersHaveNoSeat(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	holder := loneKey(t, 9)
	g, err := scope.SignGrant(n.author.Signer(), scope.Grant{Scope: n.id, To: holder.Public(), Name: "ci", NotAfter: n.now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := scope.Sign(holder, n.chain.policy.Limits, scope.Mutation{
		Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn("/k", "v")), Grants: [][]byte{g.Encode()},
		Nonce: []byte("12345678"), ValidUntil: n.now.Add(time.Minute),
	})
	if err == nil {
		err = n.admit(b, "stranger")
	}
	if err != nil {
		t.Fatal(err)
	}
	if seats, nonMembers := n.lines(nil, n.now); len(seats) != 0 || len(nonMembers) != 1 {
		t.Errorf("%d seats and %d non-members have bundles", len(seats), len(nonMembers))
	}
}

// TestBundlesAreCheckedUnderThePolicyInForce: one that was checked under another policy is checked again.
func TestBundlesAreCheckedUnderThePolicyInForce(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	for key, valid := range map[string]bool{"/" + strings.Repeat("k", 2000): false, "/k": true} {
		b, err := scope.Sign(loneKey(t, 9), scope.MostLimits(), scope.Mutation{
			Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn(key, "v")),
			Nonce: []byte("12345678"), ValidUntil: n.now.Add(time.Minute),
		})
		if err == nil {
			err = n.admit(b, "stranger")
		}
		if errors.Is(err, scope.ErrInvalid) == valid {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
}
