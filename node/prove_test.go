package node

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// polling is one real node whose policy asks for approval below /secrets/, by the
// anchor and by alice.
type polling struct {
	*Node
	t      *testing.T
	ctx    context.Context
	anchor votes.PrivateKey
	alice  votes.PrivateKey
	nonce  uint64
}

const keptInPolling = 5 // blocks, once all others are compacted

func startPolling(t *testing.T) *polling {
	t.Helper()
	p := &polling{t: t}
	var err error
	if p.alice, err = votes.KeyFromSeed(votes.Ed25519, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	policy := scope.OpenPolicy(quorum.BFT)
	policy.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Hour,
		Approvers: []scope.Approver{{Name: "alice", Key: p.alice.Public(), Share: 500_000}}}}
	c := startClusterUnder(t, 1, policy, func(_ int, n *Node) {
		p.anchor = *n.cfg.Anchor
		cfg := n.root.runner.machine.Config()
		cfg.Keep = keptInPolling
		if n.root.runner.machine, err = machine.NewMachine(cfg, n.cfg.Store); err != nil {
			t.Fatal(err)
		}
	})
	p.Node = c.nodes[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p.ctx = ctx
	return p
}

// mutations signs and submits mutations of one class with alice's key.
func (p *polling) mutations(class scope.Class, contents ...any) (ids []aweigh.Hash) {
	p.t.Helper()
	var muts []scope.Mutation
	for _, c := range contents {
		p.nonce++
		muts = append(muts, scope.Mutation{Scope: p.root.id, Class: class, Content: canon.Encode(c),
			Nonce: binary.BigEndian.AppendUint64(nil, p.nonce), ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute))})
	}
	b, err := scope.SignReserving(100_000, p.alice, scope.MostLimits(), muts...) // each looks through the docket
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.Submit(p.ctx, b.Raw()); err != nil {
		p.t.Fatal(err)
	}
	for i := range b.Mutations() {
		ids = append(ids, b.Mutations()[i].ID)
	}
	return ids
}

func (p *polling) vote(key votes.PrivateKey, id votes.MotionID, c votes.Choice, comment string) {
	p.t.Helper()
	b, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{Network: p.root.id, Scope: p.root.id, Motion: id, Choice: c}, comment)
	if err != nil {
		p.t.Fatal(err)
	}
	got, err := p.HandIn(p.ctx, []votes.MotionBallot{b})
	if err != nil || got[0].Err != nil {
		p.t.Fatal(err, got)
	}
}

// until waits for the state to say so.
func (p *polling) until(what string, holds func(*View) bool) {
	p.t.Helper()
	for p.ctx.Err() == nil {
		v, err := p.root.Read(p.ctx, true)
		if err != nil {
			p.t.Fatal(err)
		}
		done := holds(v)
		if err := v.Close(); err != nil {
			p.t.Fatal(err)
		}
		if done {
			return
		}
	}
	p.t.Fatalf("never: %s", what)
}

func (p *polling) ballots(id votes.MotionID, n int) func(*View) bool {
	return func(v *View) bool {
		all, err := v.Ballots(id)
		return err == nil && len(all) == n
	}
}

// TestProofsOutliveTheMotion: who approved a key is proven while its motion is on
// record, and after the state has forgotten it.
func TestProofsOutliveTheMotion(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := startPolling(t)
	id := p.mutations(scope.Write, putTxn("/secrets/a", "1"))[0]
	early, _, err := p.root.ProveMotion(p.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := early.Verify(p.root.id); err != nil || r.Motion.ID() != id || len(r.Motion.Voters) != 2 {
		t.Fatalf("the motion: %+v, %v", r, err)
	}
	if _, _, err := p.root.ProveMotion(p.ctx, aweigh.Sum([]byte("none"))); !errors.Is(err, machine.ErrNoMotion) {
		t.Fatalf("no motion: %v", err)
	}
	p.vote(p.anchor, id, votes.Approve, "seen")
	p.until("the approval is recorded", p.ballots(id, 1))
	p.vote(p.alice, id, votes.Reject, "too late")
	p.until("the late ballot is recorded", p.ballots(id, 2))
	check := func(when string) {
		t.Helper()
		proof, _, err := p.Prove(p.ctx, []byte("/secrets/a"))
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		r, err := proof.Verify(p.root.id)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		a := r.Approved
		if a == nil || len(a.Ballots) != 2 || a.Ballots[0].Name != "n0" || a.Ballots[0].Comment != "seen" || !a.Ballots[1].Late || a.Ballots[1].Name != "alice" {
			t.Fatalf("%s: %+v", when, a)
		}
	}
	p.mutations(scope.Write, putTxn("/c", "0")) // a block that covers the late ballot
	check("on record")
	for range 5 {
		var puts, ends []any
		for range 201 {
			puts = append(puts, putTxn("/secrets/b", "1"))
		}
		for _, id := range p.mutations(scope.Write, puts...) {
			ends = append(ends, scope.Withdrawal{Motion: id})
		}
		p.mutations(scope.Withdraw, ends...)
	}
	p.mutations(scope.Write, putTxn("/c", "1"))
	p.until("the state forgets the motion", func(v *View) bool {
		mo, _, err := v.Motion(id)
		return mo == nil && err == nil
	})
	check("forgotten")
	head := p.root.Status().Head
	if _, err := p.Compact(p.ctx, head.Revision, Once{}); err != nil {
		t.Fatal(err)
	}
	for range keptInPolling + 10 {
		p.mutations(scope.Write, putTxn("/c", "2"))
	}
	for p.ctx.Err() == nil && p.root.lowest(t) < head.Height {
		p.mutations(scope.Write, putTxn("/c", "3"))
	}
	if err := p.ctx.Err(); err != nil {
		t.Fatal("the blocks stay: ", err)
	}
	check("its neighbours dropped")
	if again, _, err := p.root.ProveMotion(p.ctx, id); err != nil {
		t.Error(err)
	} else if _, err := again.Verify(p.root.id); err != nil {
		t.Error(err)
	}
}
