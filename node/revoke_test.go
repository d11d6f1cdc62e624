package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// noticed is a cluster whose scopes can be given another government after a notice.
func noticed(t *testing.T, n int, notice time.Duration) *cluster {
	t.Helper()
	p := scope.OpenPolicy(quorum.BFT)
	p.Children.Notice = notice
	return startClusterUnder(t, n, p, func(int, *Node) {})
}

// revoke has the anchors of the root scope decide that others shall govern a prefix.
func (c *cluster) revoke(ctx context.Context, prefix string, policy scope.Policy, anchors ...int) {
	c.t.Helper()
	child := scope.Child{Prefix: []byte(prefix), Policy: policy}
	for _, a := range c.nodes[0].root.Genesis().Anchors {
		for _, i := range anchors {
			if a.Name == fmt.Sprintf("n%d", i) {
				child.Anchors = append(child.Anchors, a)
			}
		}
	}
	for i, n := range c.nodes {
		r, err := n.root.Govern(ctx, scope.Decision{Kind: scope.Revoke, Child: &child}, Once{})
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Code != scope.Applied && i == 0 {
			c.t.Fatalf("the decision of anchor %d: %s %s", i, r.Code, r.Reason)
		}
	}
}

// governed waits until nodes agree that a scope has so many anchors, and gives the epoch.
func (c *cluster) governed(prefix string, anchors int, nodes ...int) *scope.Epoch {
	c.t.Helper()
	var e *scope.Epoch
	for _, i := range nodes {
		p, err := c.nodes[i].In(prefix)
		if err != nil {
			c.t.Fatal(err)
		}
		testwait.For(c.t, func() error {
			if e = p.epochs.epoch(); len(e.Roster.Anchors) != anchors {
				return fmt.Errorf("node %d knows %d anchors of %s in epoch %d", i, len(e.Roster.Anchors), prefix, e.Number)
			}
			return nil
		})
	}
	return e
}

// TestRevokedScopesLoseNoWrite: clients write to a scope through all nodes while it is given
// to other anchors, under another mode. No write is lost, refused or done twice, and those
// who governed it before are not needed any more.
func TestRevokedScopesLoseNoWrite(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := noticed(t, 4, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	const writers = 6
	var counts [writers]atomic.Int64
	var working sync.WaitGroup
	stop := make(chan struct{})
	for w := range writers {
		working.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := c.nodes[(w+int(i))%4].Txn(ctx, putTxn(fmt.Sprint("/b/", w), fmt.Sprint(i)), Once{})
				if err != nil || r.Code != scope.Applied {
					t.Errorf("write %d of %d: %s %s, %v", i, w, r.Code, r.Reason, err)
					return
				}
				counts[w].Store(i)
			}
		})
	}
	began := time.Now()
	c.revoke(ctx, "/b/", scope.OpenPolicy(quorum.Crash), 1, 2, 3)
	e := c.governed("/b/", 3, 0, 1, 2, 3)
	if took := time.Since(began); took < time.Second {
		t.Errorf("the notice of a second took %v", took)
	}
	if e.Policy.Rules.Mode != quorum.Crash {
		t.Errorf("the mode is %s", e.Policy.Rules.Mode)
	}
	testwait.More(t, "writes to the new anchors", 10*writers, func() int { return sum(counts[:]) })
	close(stop)
	working.Wait()
	total := int64(0)
	for w := range writers {
		n := counts[w].Load()
		total += n
		key := []byte(fmt.Sprint("/b/", w))
		for i := range c.nodes {
			if got := c.value(ctx, i, string(key)); got != fmt.Sprint(n) {
				t.Errorf("node %d: %s is %q after %d writes", i, key, got, n)
			}
		}
		v, err := c.nodes[3].ReadOf(ctx, referral.Keys(key), true)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := v.Range(key, nil, scope.Range{}); err != nil || len(res.Kvs) != 1 || res.Kvs[0].Version != n {
			t.Errorf("%s after %d writes: %+v, %v", key, n, res.Kvs, err)
		}
		v.Close()
	}
	c.stop[0]() // who governed alone
	if r, err := c.nodes[2].Txn(ctx, putTxn("/b/after", "there"), Once{}); err != nil || r.Code != scope.Applied {
		t.Errorf("without the anchor of before: %s %s, %v", r.Code, r.Reason, err)
	}
	t.Logf("%d writes by %d clients", total, writers)
}

// TestIdleScopesYield: no client writes to the scope, so that the end of the notice alone
// wakes it.
func TestIdleScopesYield(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	c := noticed(t, 4, 3*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	if _, err := c.nodes[1].Txn(ctx, putTxn("/b/1", "there"), Once{}); err != nil {
		t.Fatal(err)
	}
	p, err := c.nodes[0].In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	before := p.Status().Head
	c.revoke(ctx, "/b/", scope.OpenPolicy(quorum.BFT), 1, 2, 3)
	testwait.Until(t, "the order", func() bool { return p.ordered.Load() != nil })
	if h := p.Status().Head; h.Height != before.Height {
		t.Errorf("the order alone took the scope from height %d to %d", before.Height, h.Height)
	}
	e := c.governed("/b/", 3, 0, 1, 2, 3)
	if e.Number != before.Epoch+1 {
		t.Errorf("epoch %d follows epoch %d", e.Number, before.Epoch)
	}
	if got := c.value(ctx, 3, "/b/1"); got != "there" {
		t.Errorf("read %q", got)
	}
	if r, err := c.nodes[0].Txn(ctx, putTxn("/b/2", "too"), Once{}); err != nil || r.Code != scope.Applied {
		t.Errorf("a write through who governed before: %s %s, %v", r.Code, r.Reason, err)
	}
}

// TestRevokedScopesAreFoundByReferral: nodes that hold the root scope alone know the anchors of
// a scope, none of whom governs it any more. They find those who do: where the old ones are there to
// say so, where they are gone, and also who comes later and knows those of the founding alone.
func TestRevokedScopesAreFoundByReferral(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a, c := newHolders(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := c.nodes[0].root.epochs.epoch().Policy
	p.Children.Notice = time.Second
	for _, n := range c.nodes {
		if _, err := n.root.Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the notice is in effect", func() bool { return c.nodes[0].root.epochs.epoch().Policy.Children.Notice > 0 })
	light := func() *Node {
		r := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
		t.Cleanup(func() { r.halt(t) })
		return r.Node
	}
	use := func(what string, n *Node, key string) {
		t.Helper()
		if r, err := n.Txn(ctx, putTxn(key, what), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%s: %s %s, %v", what, r.Code, r.Reason, err)
		}
		if v := got(t, n, key, true); v != what {
			t.Errorf("%s: read %q", what, v)
		}
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0)
	c.delegate(ctx, "", "/c/", quorum.BFT, 0)
	before, silent := light(), light()
	use("before", before, "/b/1")
	use("silent", silent, "/c/1")
	for _, prefix := range []string{"/b/", "/c/"} {
		c.revoke(ctx, prefix, scope.OpenPolicy(quorum.BFT), 1, 2, 3)
		c.governed(prefix, 3, 0, 1, 2, 3)
	}
	use("told by the old anchor", before, "/b/1")
	use("came after", light(), "/b/2")
	if c.revoke(ctx, "/b/", scope.OpenPolicy(quorum.BFT), 2); c.governed("/b/", 1, 0, 1, 2, 3).Number != 2 {
		t.Error("it is not in its third epoch")
	}
	use("revoked again", before, "/b/1")
	if err := a.end(0); err != nil {
		t.Fatal(err)
	}
	use("the old anchor is gone", silent, "/c/1")
	use("came when it was gone", light(), "/c/2")
}

// TestFollowersHoldWhatTheyShallGovern: anchors of the scope above that hold nothing else are to govern a
// scope: they fetch its state during the notice.
func TestFollowersHoldWhatTheyShallGovern(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := scope.OpenPolicy(quorum.BFT)
	p.Children.Notice = 2 * time.Second
	c := startClusterUnder(t, 4, p, func(i int, n *Node) {
		if i > 0 {
			n.cfg.Follow = [][]byte{}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	child := scope.Child{Prefix: []byte("/b/"), Policy: scope.OpenPolicy(quorum.BFT)}
	for _, a := range c.nodes[0].root.Genesis().Anchors {
		if a.Name == "n0" {
			child.Anchors = append(child.Anchors, a)
		}
	}
	for _, n := range c.nodes {
		if _, err := n.root.Govern(ctx, scope.Decision{Kind: scope.Delegate, Child: &child}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.nodes[3].Txn(ctx, putTxn("/b/1", "before"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	if _, err := c.nodes[3].In("/b/"); !errors.Is(err, ErrNotHeld) {
		t.Fatalf("it holds the scope: %v", err)
	}
	c.revoke(ctx, "/b/", scope.OpenPolicy(quorum.BFT), 1, 2, 3)
	for _, n := range c.nodes[1:] {
		testwait.Until(t, "new anchors hold the scope", func() bool { _, err := n.In("/b/"); return err == nil })
	}
	c.governed("/b/", 3, 0, 1, 2, 3)
	c.stop[0]()
	if r, err := c.nodes[2].Txn(ctx, putTxn("/b/2", "after"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	if got := c.value(ctx, 3, "/b/1"); got != "before" {
		t.Errorf("read %q", got)
	}
}

// TestUnknownOrdersHoldNothingUp: two of four anchors know an order of which the others do not hear, and so do
// not vote for what obeys it. The scope goes on all the same.
func TestUnknownOrdersHoldNothingUp(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	c := noticed(t, 4, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	order := &scope.Revocation{
		Entry: 1 << 20, Height: 1, Time: aweigh.InstantOf(time.Now()).Add(-2 * time.Second),
		Child: scope.Child{Prefix: []byte("/b/"), Policy: scope.OpenPolicy(quorum.BFT), Anchors: c.nodes[0].root.Genesis().Anchors},
	}
	for _, n := range c.nodes[:2] {
		p, err := n.In("/b/")
		if err != nil {
			t.Fatal(err)
		}
		p.hearOrder(order)
	}
	const enough = 250 // where each view of the two was lost, 33 took 20 s
	for i := range enough {
		if _, err := c.nodes[i%4].Txn(ctx, putTxn("/b/1", fmt.Sprint(i)), Once{}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// TestOrdersWaitForNobody: a part that has no state takes no events, and whoever tells it of orders goes on.
func TestOrdersWaitForNobody(t *testing.T) {
	c := noticed(t, 1, time.Second)
	p := c.nodes[0].Root()
	idle := &Replica{genesis: p.genesis, log: p.log, runner: &runner{orders: make(chan *scope.Revocation, 1)}}
	idle.runner.stand.Store(p.runner.stand.Load())
	for i := range int64(20) {
		idle.hearOrder(&scope.Revocation{Entry: i, Time: 1})
	}
	if o := <-idle.runner.orders; o.Entry != 19 {
		t.Errorf("it will hear of order %d", o.Entry)
	}
}
