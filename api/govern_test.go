package api_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"testing"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// reasonOf is the reason that an error gives to programs.
func reasonOf(t *testing.T, err error) (reason string) {
	t.Helper()
	var e *connect.Error
	if !errors.As(err, &e) {
		return ""
	}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			reason = v.(*aweighv1.Problem).Reason
		}
	}
	return reason
}

func TestGovernmentOverTheAPI(t *testing.T) {
	w := newWorld(t)
	govern := func(d scope.Decision) (*aweighv1.GovernResponse, error) {
		resp, err := w.Govern(w.ctx, connect.NewRequest(&aweighv1.GovernRequest{Decision: canon.Encode(d)}))
		if err != nil {
			return nil, err
		}
		return resp.Msg, nil
	}
	self := w.genesis.Anchors[0].Key.ID()

	before, err := w.Trust(w.ctx, connect.NewRequest(&aweighv1.TrustRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if a := before.Msg.Anchors; len(a) != 1 || !a[0].Self || a[0].Standing != "active" || a[0].Score != 500_000 || a[0].Trend != nil ||
		a[0].Weight != before.Msg.TotalWeight || before.Msg.FewestStop != 1 || before.Msg.FewestBreak != 1 {
		t.Errorf("%v", before.Msg)
	}

	policy := w.genesis.Policy
	policy.Trust.Ceiling = 900
	under, err := w.Trust(w.ctx, connect.NewRequest(&aweighv1.TrustRequest{Policy: canon.Encode(policy)}))
	if err != nil || under.Msg.NextTotal >= before.Msg.NextTotal || under.Msg.TotalWeight != before.Msg.TotalWeight {
		t.Errorf("under another policy: %v, %v", err, under)
	}
	set, err := govern(scope.Decision{Kind: scope.SetPolicy, Policy: &policy})
	if err != nil || set.Kind != "policy" || set.Proposal != nil && set.Proposal.Carried == 0 {
		t.Fatalf("%v, %v", set, err)
	}
	if _, err := w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/k")})); err != nil {
		t.Fatal(err)
	}
	after, err := w.Trust(w.ctx, connect.NewRequest(&aweighv1.TrustRequest{}))
	if err != nil || after.Msg.Header.Epoch != 1 || after.Msg.Anchors[0].Trend == nil || !bytes.Equal(after.Msg.Policy, canon.Encode(policy)) {
		t.Errorf("after the decision: %v, %v", err, after)
	}

	// What led there can be followed from the genesis alone.
	hand, err := w.Handovers(w.ctx, connect.NewRequest(&aweighv1.HandoversRequest{}))
	if err != nil || len(hand.Msg.Handovers) != 1 || hand.Msg.More {
		t.Fatalf("%v, %v", hand, err)
	}
	var h scope.Handover
	if err := canon.Decode(hand.Msg.Handovers[0], &h); err != nil {
		t.Fatal(err)
	}
	first, err := w.genesis.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	next, err := first.Follow(h)
	if err != nil || next.Policy.Hash() != policy.Hash() {
		t.Errorf("%v, %v", next, err)
	}
	if rest, err := w.Handovers(w.ctx, connect.NewRequest(&aweighv1.HandoversRequest{After: uint64(next.Start)})); err != nil || len(rest.Msg.Handovers) != 0 {
		t.Errorf("after the newest epoch's start: %v, %v", rest, err)
	}

	// Page by page.
	policy.Trust.Ceiling = 800
	if _, err := govern(scope.Decision{Kind: scope.SetPolicy, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Put(w.ctx, connect.NewRequest(&aweighv1.PutRequest{Key: []byte("/k")})); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		after aweigh.Height
		more  bool
		next  aweigh.Epoch
	}{{0, true, 1}, {next.Start, false, 2}} {
		page, err := w.Handovers(w.ctx, connect.NewRequest(&aweighv1.HandoversRequest{After: uint64(x.after), Limit: 1}))
		if err != nil || len(page.Msg.Handovers) != 1 || page.Msg.More != x.more || canon.Decode(page.Msg.Handovers[0], &h) != nil ||
			h.Final.Header.Epoch+1 != x.next {
			t.Errorf("the page to epoch %d: %v, %v", x.next, page, err)
		}
	}
	c, err := client.Dial(w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var met []aweigh.Epoch
	if newest, err := c.FollowEpochs(w.ctx, first, func(_ scope.Handover, e *scope.Epoch) { met = append(met, e.Number) }); err != nil ||
		newest.Policy.Hash() != policy.Hash() || !slices.Equal(met, []aweigh.Epoch{1, 2}) {
		t.Errorf("followed through %v to %v: %v", met, newest, err)
	}

	why, err := w.Explain(w.ctx, connect.NewRequest(&aweighv1.ExplainRequest{Anchor: self[:]}))
	if err != nil || len(why.Msg.Changes) == 0 || why.Msg.Changes[len(why.Msg.Changes)-1].Kind != "founded" {
		t.Errorf("%v, %v", why, err)
	}
	kinds := make([]string, 0, len(why.Msg.Changes))
	for _, c := range why.Msg.Changes {
		kinds = append(kinds, c.Kind)
	}
	if len(why.Msg.Changes) > 1 && !slices.Contains(kinds, "attended") {
		t.Errorf("%v", kinds)
	}

	// A decision that is impossible fails with the reason.
	nonMember := aweigh.AnchorID{1}
	for _, x := range []struct {
		what, reason string
		decision     scope.Decision
	}{
		{"evict a non-member", api.Failed, scope.Decision{Kind: scope.Evict, Subject: nonMember}},
		{"evict the only one", api.Failed, scope.Decision{Kind: scope.Evict, Subject: self}},
		{"retire for another", api.Denied, scope.Decision{Kind: scope.Retire, Subject: nonMember}},
		{"nothing", api.Invalid, scope.Decision{}},
	} {
		if _, err := govern(x.decision); reasonOf(t, err) != x.reason {
			t.Errorf("%s: %v, want the reason %s", x.what, err, x.reason)
		}
	}
	if _, err := w.Govern(w.ctx, connect.NewRequest(&aweighv1.GovernRequest{Decision: []byte("?")})); reasonOf(t, err) != api.Invalid {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := w.Apply(w.ctx, connect.NewRequest(&aweighv1.ApplyRequest{Sponsor: self[:]})); reasonOf(t, err) != api.Invalid {
		t.Errorf("an anchor applies: %v", err)
	}
	if _, err := w.Explain(w.ctx, connect.NewRequest(&aweighv1.ExplainRequest{Anchor: []byte("short")})); reasonOf(t, err) != api.Invalid {
		t.Errorf("no ID: %v", err)
	}
}

// TestApplicationsAreShownBeforeTheyAreSigned: asked without an application, a node answers with the one that it would
// sign, without the signature; asked with another one, it signs nothing.
func TestApplicationsAreShownBeforeTheyAreSigned(t *testing.T) {
	identity, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var sponsor aweigh.AnchorID
	w := newWorldUnder(t, scope.OpenPolicy(quorum.BFT), func(cfg *node.Config) {
		sponsor = cfg.Anchor.Public().ID()
		cfg.Name, cfg.Identity, cfg.Anchor = "two", identity, nil
		cfg.MakeAnchor = func() (votes.PrivateKey, error) { return votes.GenerateKey(votes.Ed25519, rand.Reader) }
	})
	ask := func(name string, application []byte) (*aweighv1.GovernResponse, error) {
		r, err := w.Apply(w.ctx, connect.NewRequest(&aweighv1.ApplyRequest{Sponsor: sponsor[:], Name: name, Application: application}))
		if err != nil {
			return nil, err
		}
		return r.Msg, nil
	}
	r, err := ask("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var d scope.Decision
	if err := canon.Decode(r.Proposal.Decision, &d); err != nil {
		t.Fatal(err)
	}
	if d.Kind != scope.Admit || d.Anchor.Name != "two" || d.Sponsor != sponsor || len(d.Consent) > 0 || len(r.Id) > 0 {
		t.Errorf("the answer is %+v, with the ID %x", d, r.Id)
	}
	again, err := ask("", nil)
	if err != nil || !bytes.Equal(again.Proposal.Decision, r.Proposal.Decision) {
		t.Errorf("asked again: %v, %v", again, err)
	}
	if _, err := ask("three", r.Proposal.Decision); reasonOf(t, err) != api.Invalid {
		t.Errorf("the application of another name: %v", err)
	}
}
