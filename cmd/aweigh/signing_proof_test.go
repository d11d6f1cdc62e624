package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// liar is a node that states a policy, and proves a motion with what it has, or nothing.
type liar struct {
	aweighv1connect.UnimplementedNodeHandler
	scope  aweigh.ScopeID
	policy scope.Policy
	proof  []byte
}

func (x *liar) Trust(context.Context, *connect.Request[aweighv1.TrustRequest]) (*connect.Response[aweighv1.TrustResponse], error) {
	return connect.NewResponse(&aweighv1.TrustResponse{Header: &aweighv1.Header{Scope: x.scope[:]}, Policy: canon.Encode(x.policy)}), nil
}

func (x *liar) ExportMotion(context.Context, *connect.Request[aweighv1.MotionRequest]) (*connect.Response[aweighv1.ExportMotionResponse], error) {
	if x.proof == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("older blocks are not here"))
	}
	return connect.NewResponse(&aweighv1.ExportMotionResponse{Proof: x.proof}), nil
}

// TestVotesGoByWhatIsProven: a voter at a node that lies about the policy in force sees all of the policy that the
// motion sets, and that nothing proves the rest. A proof that does not hold, or another network than the one that the
// voter knows, ends the command before anything is shown.
func TestVotesGoByWhatIsProven(t *testing.T) {
	sets := scope.OpenPolicy(quorum.BFT)
	sets.Limits.TTL, sets.Limits.KeyBytes, sets.Limits.TxnOps = 6*time.Second, 2000, 64
	stated := vary.Clone(sets)
	stated.Limits.TTL = 5 * time.Second // the rest is as if in force already
	m := vary.Mutation(scope.Govern, scope.Decision{Kind: scope.SetPolicy, Policy: &sets})
	mo := vary.Motion()
	mo.Mutation, mo.Policy = m.Encode(), stated.Hash()
	id, network := mo.ID(), aweigh.Sum([]byte("network"))
	x := &liar{scope: m.Scope, policy: stated}
	mux := http.NewServeMux()
	mux.Handle(aweighv1connect.NewNodeHandler(x))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	c, err := client.Dial(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	vote := func(named string) (string, error) {
		var out bytes.Buffer
		s := &session{Client: c, told: &out, timeout: 10 * time.Second, Printer: show.Printer{Format: show.Table}}
		r := &aweighv1.MotionResponse{Header: &aweighv1.Header{Network: network[:], Node: "liar"}, Motion: &aweighv1.Motion{
			Id: id[:], Scope: m.Scope[:], Mutation: mo.Mutation, Opening: canon.Encode(mo), Fate: "open",
		}}
		v, err := new(app).vouch(t.Context(), s, r, named)
		if err == nil {
			err = s.mayVote(t.Context(), r.Motion, "approve", v)
		}
		return out.String(), err
	}
	text, err := vote("")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"limits.key_bytes: 2000\n", "limits.txn_ops: 64\n", "is as liar states, and nothing proves it", "older blocks are not here"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text, err := vote(network.String()); err == nil || text != "" {
		t.Errorf("without a proof for a network that is named: %v\n%s", err, text)
	}
	if text, err := vote(aweigh.Sum([]byte("other")).String()); exitCode(err, true) != exitUnverified || text != "" {
		t.Errorf("of another network: %v\n%s", err, text)
	}
	x.proof = []byte("no proof")
	if text, err := vote(""); exitCode(err, true) != exitUnverified || text != "" {
		t.Errorf("a proof that does not hold: %v\n%s", err, text)
	}
}

// TestAnchorsSeeADifferenceToTheirPolicy: a policy is shown as a difference only to the one that the motion names.
func TestAnchorsSeeADifferenceToTheirPolicy(t *testing.T) {
	stated, other := scope.OpenPolicy(quorum.BFT), scope.OpenPolicy(quorum.Crash)
	mo := vary.Motion()
	mo.Policy = stated.Hash()
	own, proven := &vouched{own: true}, &vouched{proof: &scope.MotionReport{Under: &scope.Epoch{Policy: stated}}}
	if own.base(&mo, &stated) != &stated || own.base(&mo, &other) != nil || own.base(&mo, nil) != nil {
		t.Error("by what the anchor's node states")
	}
	if (&vouched{}).base(&mo, &stated) != nil || proven.base(&mo, &other).Hash() != stated.Hash() {
		t.Error("by what is proven")
	}
}
