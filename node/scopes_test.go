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

// delegate has the anchors of a scope decide to delegate a prefix to some of them, and
// waits until all nodes have the child.
func (c *cluster) delegate(ctx context.Context, from, prefix string, mode quorum.Mode, anchors ...int) {
	c.t.Helper()
	c.delegateUnder(ctx, from, prefix, scope.OpenPolicy(mode), anchors...)
}

func (c *cluster) delegateUnder(ctx context.Context, from, prefix string, policy scope.Policy, anchors ...int) {
	c.t.Helper()
	c.found(ctx, from, c.child(prefix, policy, anchors...))
}

// child is a scope to delegate to, with some of the anchors.
func (c *cluster) child(prefix string, policy scope.Policy, anchors ...int) scope.Child {
	child := scope.Child{Prefix: []byte(prefix), Policy: policy}
	for _, a := range c.nodes[0].root.Genesis().Anchors {
		for _, i := range anchors {
			if a.Name == fmt.Sprintf("n%d", i) {
				child.Anchors = append(child.Anchors, a)
			}
		}
	}
	return child
}

// found decides to delegate to a child, and waits until all nodes know it.
func (c *cluster) found(ctx context.Context, from string, child scope.Child) {
	c.t.Helper()
	c.decide(ctx, from, child)
	for _, n := range c.nodes {
		testwait.For(c.t, func() error {
			if _, err := n.In(string(child.Prefix)); err != nil {
				return fmt.Errorf("%s has no part in %q: %w", n.Name(), child.Prefix, err)
			}
			return nil
		})
	}
}

// decide lets all anchors of a scope decide to delegate to a child.
func (c *cluster) decide(ctx context.Context, from string, child scope.Child) {
	c.t.Helper()
	d := scope.Decision{Kind: scope.Delegate, Child: &child}
	for i := range c.nodes {
		p, err := c.nodes[i].In(from)
		if err != nil {
			c.t.Fatal(err)
		}
		r, err := p.Govern(ctx, d, Once{})
		if errors.Is(err, ErrUnseated) {
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Code != scope.Applied && i == 0 {
			c.t.Fatalf("the decision of anchor %d: %s %s", i, r.Code, r.Reason)
		}
	}
}

// sum is how many writes several clients have made.
func sum(counts []atomic.Int64) (all int) {
	for i := range counts {
		all += int(counts[i].Load())
	}
	return all
}

func (c *cluster) value(ctx context.Context, node int, key string) string {
	c.t.Helper()
	v, err := c.nodes[node].ReadOf(ctx, referral.Keys([]byte(key)), true)
	if err != nil {
		c.t.Fatalf("reading %s: %v", key, err)
	}
	defer v.Close()
	res, err := v.Range([]byte(key), nil, scope.Range{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(res.Kvs) == 0 {
		return ""
	}
	return string(res.Kvs[0].Value)
}

// TestBusyPrefixIsHandedOver: clients write to a prefix, through all nodes, and watch
// it, while it gets a scope of its own, and that one a child. No write is lost, refused
// or done twice, and the watch tells of each once.
func TestBusyPrefixIsHandedOver(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/a", "root"), Once{}); err != nil {
		t.Fatal(err)
	}
	const writers = 8
	var counts [writers]atomic.Int64
	var working, watching sync.WaitGroup
	stop := make(chan struct{})

	seen := make(map[string]int64) // newest version of each key
	var last int64
	var events atomic.Int64
	watch, unwatch := context.WithCancel(ctx)
	watching.Go(func() {
		err := c.nodes[3].Watch(watch, []byte("/b/c/"), []byte("/b/c0"), 1, func(ch Changes) error {
			for _, e := range ch.Events {
				if e.Kv.ModRevision <= last || e.Kv.Version != seen[string(e.Kv.Key)]+1 {
					t.Errorf("%s version %d at revision %d after version %d and revision %d", e.Kv.Key, e.Kv.Version, e.Kv.ModRevision, seen[string(e.Kv.Key)], last)
				}
				last, seen[string(e.Kv.Key)] = e.Kv.ModRevision, e.Kv.Version
				events.Add(1)
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended: %v", err)
		}
	})
	for w := range writers {
		working.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := c.nodes[(w+int(i))%4].Txn(ctx, putTxn(fmt.Sprint("/b/c/", w), fmt.Sprint(i)), Once{})
				if err != nil || r.Code != scope.Applied {
					t.Errorf("write %d of %d: %s %s, %v", i, w, r.Code, r.Reason, err)
					return
				}
				counts[w].Store(i)
			}
		})
	}
	busy := func() { testwait.More(t, "writes", 10*writers, func() int { return sum(counts[:]) }) }
	busy()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	busy()
	c.delegate(ctx, "/b/", "/b/c/", quorum.Crash, 0, 1, 2)
	busy()
	close(stop)
	working.Wait()

	total := int64(0)
	for w := range writers {
		n := counts[w].Load()
		total += n
		key := fmt.Sprint("/b/c/", w)
		for i := range c.nodes {
			if got := c.value(ctx, i, key); got != fmt.Sprint(n) {
				t.Errorf("node %d: %s is %q after %d writes", i, key, got, n)
			}
		}
	}
	testwait.Until(t, "the watch tells of all writes", func() bool { return events.Load() >= total })
	unwatch()
	watching.Wait()
	if events.Load() != total {
		t.Errorf("the watch told of %d of %d writes", events.Load(), total)
	}
	for w := range writers {
		key := fmt.Sprint("/b/c/", w)
		if n := counts[w].Load(); seen[key] != n {
			t.Errorf("%s has version %d after %d writes", key, seen[key], n)
		}
	}
	p, err := c.nodes[0].In("/b/c/")
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.Head.Height == 0 || s.Head.Scope == c.nodes[0].root.Scope() || s.Head.Network != c.nodes[0].root.Scope() {
		t.Errorf("the grandchild is at %+v", s.Head)
	}
	if _, err := c.nodes[1].Txn(ctx, scope.Txn{Success: append(putTxn("/a", "x").Success, putTxn("/b/c/0", "x").Success...)}, Once{}); !errors.Is(err, ErrSpans) {
		t.Errorf("a transaction in two scopes: %v", err)
	}
	if _, err := c.nodes[1].ReadOf(ctx, referral.Between([]byte("/"), []byte("0")), true); !errors.Is(err, ErrSpans) {
		t.Errorf("a read of two scopes: %v", err)
	}
	t.Logf("%d writes by %d clients", total, writers)
}

// TestScopesComeBackAfterARestart: what a node follows is what its store holds.
func TestScopesComeBackAfterARestart(t *testing.T) {
	var configs []Config
	c := startClusterWith(t, 3, quorum.Crash, func(_ int, n *Node) { configs = append(configs, n.cfg) })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/x/", quorum.Crash, 0, 1, 2)
	c.delegate(ctx, "/x/", "/x/y/", quorum.Crash, 0)
	if _, err := c.nodes[1].Txn(ctx, putTxn("/x/y/1", "there"), Once{}); err != nil {
		t.Fatal(err)
	}
	if got := c.value(ctx, 2, "/x/y/1"); got != "there" {
		t.Errorf("read %q", got)
	}
	again, err := New(Config{Genesis: configs[1].Genesis, Identity: configs[1].Identity, Store: configs[1].Store})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(again.Replicas()); got != 3 {
		t.Errorf("a node that starts anew has %d parts", got)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := again.Run(ended); err != nil {
		t.Error(err)
	}
	var id aweigh.ScopeID
	for _, p := range again.Replicas() {
		if id == p.Scope() {
			t.Error("two parts in one scope")
		}
		id = p.Scope()
	}
}

// TestObserverComesAfterADelegation: it takes a snapshot of the root scope, in which
// prefixes were delegated long ago, with keys and without; it has them all, starts
// again, and follows.
func TestObserverComesAfterADelegation(t *testing.T) {
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
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c := &cluster{t: t}
	for i := range 4 {
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := c.nodes[0].Txn(ctx, putTxn(key, value), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	put("/b/1", "handed over")
	put("/b/c/1", "twice")
	a.write(farBlocks) // what comes after is in no first answer of blocks
	c.delegate(ctx, "", "/b/", quorum.Crash, 0, 1, 2)
	c.delegate(ctx, "", "/empty/", quorum.Crash, 0)
	c.delegate(ctx, "/b/", "/b/c/", quorum.Crash, 0, 1)
	put("/b/2", "written there")
	put("/empty/1", "there too")
	a.write(farBlocks)
	key, fs := newIdentity(t), vfs.NewMem()
	o := a.observe(key, fs)
	testwait.Until(t, "all scopes", func() bool {
		parts := o.Replicas()
		for _, p := range parts {
			if p.vacant.Load() {
				return false
			}
		}
		return len(parts) == 4
	})
	if p, err := o.In("/b/"); err != nil || p.snapshotParts.Load() == 0 {
		t.Errorf("the state of /b/ came without a snapshot of it (%v)", err)
	}
	for range 2 {
		a.level(o)
		c.nodes = append(c.nodes[:4:4], o.Node)
		for key, want := range map[string]string{"/b/1": "handed over", "/b/c/1": "twice", "/b/2": "written there", "/empty/1": "there too"} {
			if got := c.value(ctx, 4, key); got != want {
				t.Errorf("%s is %q at the observer", key, got)
			}
		}
		o.halt(t)
		o = a.observe(key, fs)
	}
	put("/b/c/1", "newer")
	if got := c.value(ctx, 0, "/b/c/1"); got != "newer" {
		t.Errorf("it is %q", got)
	}
	c.nodes = append(c.nodes[:4:4], o.Node)
	if got := c.value(ctx, 4, "/b/c/1"); got != "newer" {
		t.Errorf("at the observer it is %q", got)
	}
	o.halt(t)
}
