package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestOnceAcrossADelegation: a client did not hear of its write, and asks again
// with the same nonce. Meanwhile the key went to a child. It is done once.
func TestOnceAcrossADelegation(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	once := Once{Nonce: []byte("the client's own"), ValidUntil: c.nodes[0].root.runner.now().Add(time.Minute)}
	if _, err := c.nodes[0].Txn(ctx, putTxn("/b/1", "v"), once); err != nil {
		t.Fatal(err)
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	r, err := c.nodes[0].Txn(ctx, putTxn("/b/1", "v"), once)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.nodes[0].ReadOf(ctx, referral.Keys([]byte("/b/1")), true)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	res, err := v.Range([]byte("/b/1"), nil, scope.Range{})
	if err != nil || res.Kvs[0].Version != 1 {
		t.Errorf("the write was done twice: %s, version %d (%v)", r.Code, res.Kvs[0].Version, err)
	}
}

// TestOnceWithALease: the same, where the first try made a lease known in the
// child.
func TestOnceWithALease(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	n := c.nodes[0]
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	if _, _, err := n.root.Grant(ctx, 7, 600, Once{}); err != nil {
		t.Fatal(err)
	}
	once := Once{Nonce: []byte("the client's own"), ValidUntil: n.root.runner.now().Add(time.Minute)}
	put := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/b/1"), Value: []byte("v"), Lease: 7}}}
	first, err := n.Txn(ctx, put, once)
	if err != nil || first.Code != scope.Applied {
		t.Fatalf("%s %s, %v", first.Code, first.Reason, err)
	}
	again, err := n.Txn(ctx, put, once)
	t.Logf("%v %q %d, before %v %d", again.Code, again.Reason, again.Revision, first.Code, first.Revision)
	if err != nil || scope.Failure(again.Reason) != nil && again.Reason != "" {
		t.Errorf("it was applied, and who asks again is told %s %q (%v)", again.Code, again.Reason, err)
	}
}

// TestAStoppedScopeHoldsUpNoPeer: a scope stopped to stay safe. What peers send
// it must not wait for ever, or their frames for all other scopes wait behind it.
func TestAStoppedScopeHoldsUpNoPeer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l := newLives(t, ctx)
	l.life(func(n *Node) { (&cluster{t: t, nodes: []*Node{n}}).delegate(ctx, "", "/b/", quorum.Crash, 0) })
	var p *Replica
	l.life(func(n *Node) {
		for {
			if _, err := n.Txn(ctx, putTxn("/b/1", "v"), Once{}); errors.Is(err, ErrStopped) {
				break
			}
			if ctx.Err() != nil {
				t.Fatal("it goes on")
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 4096 { // more than may wait of a peer
				p.intake.Put("a peer", machine.Stepwise{}, 1)
			}
		}()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			t.Error("a peer's goroutine waits for a scope that has stopped")
			p.intake.Close()
		}
	}, func(n *Node) {
		var err error
		if p, err = n.In("/b/"); err != nil {
			t.Fatal(err)
		}
		p.runner.notes = func(machine.Note) { must.Hold(false, "a broken invariant") }
	})
}

// TestAScopeThatCannotDecideHoldsUpNothingElse: a prefix with keys is delegated to an
// anchor that comes when the parent's blocks are too far ahead for it, so that it takes a
// snapshot of the parent. All others have the child's first state.
func TestAScopeThatCannotDecideHoldsUpNothingElse(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a := newFar(t, nil)
	startAll(a)
	defer func() {
		for i := range 4 {
			a.running[i].halt(t)
			a.running[i] = nil
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	n := a.running[0].Node
	if _, err := n.Txn(ctx, putTxn("/b/1", "handed over"), Once{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.root.Grant(ctx, 7, 600, Once{}); err != nil {
		t.Fatal(err)
	}
	a.write(farBlocks) // what comes after is in no first answer of blocks
	key, anchor := newIdentity(t), newIdentity(t)
	late, err := machine.PeerOf(key)
	if err != nil {
		t.Fatal(err)
	}
	child := scope.Child{Prefix: []byte("/b/"), Policy: scope.OpenPolicy(quorum.BFT), Anchors: []scope.Anchor{
		{Name: "late", Key: anchor.Public(), Peer: string(late), Score: machine.FoundingScore},
	}}
	for i := range 4 {
		if _, err := a.running[i].root.Govern(ctx, scope.Decision{Kind: scope.Delegate, Child: &child}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the child", func() bool { _, err := n.In("/b/"); return err == nil })
	a.write(100)

	short := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 15*time.Second) }
	t.Run("the others go on", func(t *testing.T) {
		ctx, cancel := short()
		defer cancel()
		if _, err := n.Compact(ctx, n.root.Status().Head.Revision, Once{}); err != nil {
			t.Errorf("compacting: %v", err)
		}
		ctx2, cancel2 := short()
		defer cancel2()
		if _, _, _, _, err := n.Lease(ctx2, 7, true); err != nil {
			t.Errorf("looking at a lease of the root scope: %v", err)
		}
	})
	t.Run("a watch says for whom it waits", func(t *testing.T) {
		ctx, cancel := short()
		defer cancel()
		if _, err := n.Txn(ctx, putTxn("/a", "waits"), Once{}); err != nil {
			t.Fatal(err)
		}
		told := errors.New("told")
		err := n.Watch(ctx, []byte("/"), []byte("0"), n.root.Status().Head.Revision, func(c Changes) error {
			if len(c.Events) > 0 {
				t.Errorf("%s at revision %d, though %q may come with an earlier one", c.Events[0].Kv.Key, c.Revision, child.Prefix)
			}
			if len(c.WaitsFor) == 0 {
				return nil
			}
			if len(c.WaitsFor) != 1 || string(c.WaitsFor[0]) != "/b/" {
				t.Errorf("it waits for %q", c.WaitsFor)
			}
			return told
		})
		if !errors.Is(err, told) {
			t.Error(err)
		}
	})
	for i := range 4 { // and then nobody has the first state either
		p, err := a.running[i].In("/b/")
		if err != nil {
			t.Fatal(err)
		}
		p.vacant.Store(true)
	}
	o := a.observeWith(key, vfs.NewMem(), func(cfg *Config) { cfg.Anchor = &anchor })
	defer o.halt(t)
	testwait.Until(t, "the child at the late node", func() bool { _, err := o.In("/b/"); return err == nil })
	t.Run("the late node serves the root scope", func(t *testing.T) {
		p, err := o.In("/b/")
		if err != nil {
			t.Fatal(err)
		}
		if !p.vacant.Load() {
			t.Fatal("it has the state, which nobody gives")
		}
		ctx, cancel := short()
		defer cancel()
		if _, err := o.KeepAlive(ctx, []int64{7}); err != nil {
			t.Errorf("keeping a lease of the root scope alive: %v", err)
		}
		if _, _, err := o.Motions(true); err != nil {
			t.Errorf("motions: %v", err)
		}
		if _, err := o.Node.Object(ctx, "aaaaaaaaaa", 1, false); errors.Is(err, ErrInstalling) {
			t.Errorf("looking for an object: %v", err)
		}
	})
}

// TestNonMembersOfOneScopeHoldUpNoAnchorOfAnother: non-members flood the root scope.
// An anchor of a child is a non-member there, too. What it sends to the root scope
// waits with theirs, and behind it, on the same connection, its ballots for the child.
func TestNonMembersOfOneScopeHoldUpNoAnchorOfAnother(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n := c.nodes[0]
	key := newIdentity(t)
	id, err := machine.PeerOf(key)
	if err != nil {
		t.Fatal(err)
	}
	child := scope.Child{Prefix: []byte("/b/"), Policy: scope.OpenPolicy(quorum.BFT), Anchors: []scope.Anchor{
		{Name: "child's", Key: newIdentity(t).Public(), Peer: string(id), Score: machine.FoundingScore},
	}}
	if _, err := n.root.Govern(ctx, scope.Decision{Kind: scope.Delegate, Child: &child}, Once{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the child", func() bool { _, err := n.In("/b/"); return err == nil })
	p, err := n.In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	ask := []byte{machine.TagCatchUp}
	for i := range 100 { // one frame of each waits
		n.root.budgets.Wait(machine.Peer(fmt.Sprint("sybil ", i)), ask)
	}
	anchor, err := peer.Decode(string(id))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.frame(anchor, ask) // the p2p host reads the next frame after that
	to := addressOf(p.id)
	n.frame(anchor, to.on([]byte{machine.TagBallot, 0, 0})) // of the child
	if d := time.Since(began); d > time.Second {
		t.Errorf("a ballot for the child was read after %v", d)
	}
}

// TestNonMembersHaveOneBudget: what non-members may make a node do does not grow
// with the number of its scopes.
func TestNonMembersHaveOneBudget(t *testing.T) {
	c := startCluster(t, 1, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n := c.nodes[0]
	for i := range 4 {
		c.delegate(ctx, "", fmt.Sprintf("/%d/", i), quorum.BFT, 0)
	}
	taken, first, ask := 0, 0, []byte{machine.TagAsk}
	for _, p := range n.Replicas() {
		for i := range 5 { // each spends what the peer and all non-members have at once
			for p.budgets.Wait(machine.Peer(fmt.Sprint("stranger ", i)), ask) == 0 {
				taken++
			}
		}
		if first == 0 {
			first = taken
		}
	}
	if first == 0 || taken > 2*first {
		t.Errorf("of non-members %d frames are taken at once in one scope, and %d in all", first, taken)
	}
}

// TestAChildLivesWithoutItsParent: the root scope lost its quorum. A child whose
// anchors are there goes on, proofs of its keys included: what leads to it is final.
func TestAChildLivesWithoutItsParent(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	n := c.nodes[0]
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	for range 2 {
		if _, err := n.Txn(ctx, putTxn("/b/1", "v"), Once{}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Txn(ctx, putTxn("/a", "v"), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := n.Prove(ctx, []byte("/b/1")); err != nil {
		t.Fatal(err)
	}
	for _, stop := range c.stop[1:] {
		stop()
	}
	testwait.Until(t, "the others are gone", func() bool { return n.NetworkStats().Peers == 0 })
	if _, err := n.Txn(ctx, putTxn("/b/1", "w"), Once{}); err != nil {
		t.Errorf("writing: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	began := time.Now()
	if _, _, err := n.Prove(short, []byte("/b/1")); err != nil {
		t.Errorf("proving, after %v: %v", time.Since(began), err)
	}
}

func TestRequestsMadeAgainStayApart(t *testing.T) {
	one, other := make([]byte, 32), make([]byte, 32)
	other[31] = 1
	if a, b := nonceAgain(one), nonceAgain(other); bytes.Equal(a, b) || !bytes.Equal(a, nonceAgain(one)) || len(a) > 32 {
		t.Errorf("%x and %x", a, b)
	}
}
