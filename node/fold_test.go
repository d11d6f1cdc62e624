package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// fold has the anchors of the root scope decide that a scope comes home.
func (c *cluster) fold(ctx context.Context, prefix string) {
	c.t.Helper()
	for i, n := range c.nodes {
		r, err := n.root.Govern(ctx, scope.Folding([]byte(prefix)), Once{})
		if err != nil {
			c.t.Fatal(err)
		}
		if r.Code != scope.Applied && i == 0 {
			c.t.Fatalf("the decision of anchor %d: %s %s", i, r.Code, r.Reason)
		}
	}
}

// home waits until all nodes have what a prefix held in the root scope, so many times.
func (c *cluster) home(times int64) {
	c.t.Helper()
	for i, n := range c.nodes {
		testwait.For(c.t, func() error {
			if h := n.root.LastHead(); h.Folded < times {
				return fmt.Errorf("node %d: %d scopes came home", i, h.Folded)
			}
			return nil
		})
	}
}

// TestFoldsLoseNoWrite: clients write below a prefix through all nodes while it gets a scope of its own and comes home,
// twice. No write is lost, refused or done twice, a watch sees every value in order, and the history goes through.
func TestFoldsLoseNoWrite(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := noticed(t, 4, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	const writers = 4
	var counts [writers]atomic.Int64
	var working, watching sync.WaitGroup
	seen := make(map[string]string)
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	var last atomic.Int64
	watching.Go(func() {
		err := c.nodes[1].Watch(watched, []byte("/"), []byte("0"), 0, func(ch Changes) error {
			for _, e := range ch.Events {
				key, value := string(e.Kv.Key), string(e.Kv.Value)
				was := seen[key]
				if value != was && (e.Kv.Lease != 0 || fmt.Sprint(1+number(was)) != value) {
					return fmt.Errorf("%s is %q after %q, at revision %d", key, value, was, e.Kv.ModRevision)
				}
				seen[key] = value
			}
			last.Store(ch.Revision)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ends: %v", err)
		}
	})
	testwait.More(t, "the watch has begun", 0, func() int { return int(last.Load()) })
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
	total := func() int { return sum(counts[:]) }
	var took []time.Duration
	for turn := range int64(2) {
		testwait.More(t, "writes above", 10*writers, total)
		c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
		testwait.More(t, "writes below", 10*writers, total)
		began := time.Now()
		c.fold(ctx, "/b/")
		c.home(turn + 1)
		took = append(took, time.Since(began))
	}
	testwait.More(t, "writes above again", 10*writers, total)
	close(stop)
	working.Wait()
	for w := range writers {
		n := counts[w].Load()
		key := fmt.Sprint("/b/", w)
		for i := range c.nodes {
			if got := c.value(ctx, i, key); got != fmt.Sprint(n) {
				t.Errorf("node %d: %s is %q after %d writes", i, key, got, n)
			}
		}
		v, err := c.nodes[3].ReadOf(ctx, referral.Keys([]byte(key)), true)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := v.Range([]byte(key), nil, scope.Range{}); err != nil || len(res.Kvs) != 1 || res.Kvs[0].Version != n+2 {
			t.Errorf("%s after %d writes: %+v, %v", key, n, res.Kvs, err)
		}
		v.Close()
		l, _, err := c.nodes[2].Lineage(ctx, []byte(key), 100_000)
		if err != nil {
			t.Fatal(err)
		}
		var wrote, homes int64
		for i := range l.Entries {
			switch l.Entries[i].Class {
			case lineage.Insert, lineage.Update:
				wrote++
			case lineage.CameHome:
				homes++
			}
		}
		if wrote != n || homes != 2 || l.More {
			t.Errorf("the history of %s has %d writes and %d homecomings, of %d and 2", key, wrote, homes, n)
		}
		testwait.For(t, func() error {
			if last.Load() < res(ctx, t, c, key) {
				return errors.New("the watch is behind")
			}
			return nil
		})
	}
	unwatch()
	watching.Wait()
	for w := range writers {
		if key, want := fmt.Sprint("/b/", w), fmt.Sprint(counts[w].Load()); seen[key] != want {
			t.Errorf("the watch saw %q last of %s, want %s", seen[key], key, want)
		}
	}
	t.Logf("%d writes by %d clients; home in %v, a second of that is the notice", total(), writers, took)
}

func number(text string) (n int64) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// res is the revision of a key.
func res(ctx context.Context, t *testing.T, c *cluster, key string) int64 {
	t.Helper()
	r, _, err := c.nodes[0].Range(ctx, []byte(key), nil, scope.Range{}, true)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("reading %s: %v, %v", key, r.Kvs, err)
	}
	return r.Kvs[0].ModRevision
}

// TestOnceAcrossAFold: a client did not hear of its write, and asks again with the same nonce. Meanwhile the key came
// home, or has yet another scope. It is done once.
func TestOnceAcrossAFold(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := noticed(t, 4, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	n := c.nodes[0]
	once := Once{Nonce: []byte("the client's own"), ValidUntil: n.root.runner.now().Add(time.Minute)}
	if r, err := n.Txn(ctx, putTxn("/b/1", "v"), once); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	c.fold(ctx, "/b/")
	c.home(1)
	for _, where := range []string{"above", "below again"} { // in a scope that does not follow the one of the write
		r, err := n.Txn(ctx, putTxn("/b/1", "v"), once)
		if err != nil || r.Code != scope.Duplicate {
			t.Errorf("the write is repeated %s: %s %s, %v", where, r.Code, r.Reason, err)
		}
		if where == "above" {
			c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
		}
	}
	res, _, err := n.Range(ctx, []byte("/b/1"), nil, scope.Range{}, true)
	if err != nil || len(res.Kvs) != 1 || res.Kvs[0].Version != 2 { // once by the client, once by the fold
		t.Errorf("it is there as %+v, %v", res.Kvs, err)
	}
}

// TestOnceAcrossTwoFolds: likewise, where the scope above that has the keys again has come home, too.
func TestOnceAcrossTwoFolds(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := scope.OpenPolicy(quorum.BFT)
	p.Children.Notice = time.Second
	c := startClusterUnder(t, 4, p, func(int, *Node) {})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegateUnder(ctx, "", "/b/", p, 0, 1, 2, 3)
	c.delegate(ctx, "/b/", "/b/c/", quorum.BFT, 0, 1, 2, 3)
	n := c.nodes[0]
	once := Once{Nonce: []byte("the client's own"), ValidUntil: n.root.runner.now().Add(time.Minute)}
	if r, err := n.Txn(ctx, putTxn("/b/c/1", "v"), once); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	for _, x := range c.nodes {
		p, err := x.In("/b/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Govern(ctx, scope.Folding([]byte("/b/c/")), Once{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.For(t, func() error {
		p, err := n.In("/b/")
		if err == nil && p.LastHead().Folded == 0 {
			err = errors.New("/b/c/ is not home")
		}
		return err
	})
	c.fold(ctx, "/b/")
	c.home(1)
	if r, err := n.Txn(ctx, putTxn("/b/c/1", "v"), once); err != nil || r.Code != scope.Duplicate {
		t.Errorf("the write is repeated: %s %s, %v", r.Code, r.Reason, err)
	}
}

// TestFoldsAreSeenFromAfar: a node that does not hold a scope writes and watches its keys while the scope comes home,
// to a scope that the node holds, and then to one that it does not hold either.
func TestFoldsAreSeenFromAfar(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := scope.OpenPolicy(quorum.BFT)
	p.Children.Notice = time.Second
	a, c := newHolders(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	for i, n := range c.nodes {
		if r, err := n.root.Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, Once{}); err != nil || r.Code != scope.Applied && i == 0 {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	c.delegateUnder(ctx, "", "/b/", p, 0, 1, 2, 3)
	c.delegateUnder(ctx, "/b/", "/b/c/", p, 0, 1, 2, 3)
	far := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
	t.Cleanup(func() { far.halt(t) })
	o := far.Node
	var watching sync.WaitGroup
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	var heard atomic.Int64
	watching.Go(func() {
		err := o.Watch(watched, []byte("/b/c/1"), nil, 0, func(ch Changes) error {
			heard.Add(int64(len(ch.Events)))
			return nil
		})
		if !errors.Is(err, context.Canceled) && !errors.Is(err, scope.ErrCompacted) && !errors.Is(err, ErrNotHeld) {
			t.Errorf("the watch ends: %v", err)
		}
	})
	written := 0
	write := func(key string) {
		t.Helper()
		written++
		r, err := o.Txn(ctx, putTxn(key, fmt.Sprint(written)), Once{})
		if err != nil || r.Code != scope.Applied {
			t.Fatalf("write %d of %s: %s %s, %v", written, key, r.Code, r.Reason, err)
		}
		if v := got(t, o, key, true); v != fmt.Sprint(written) {
			t.Fatalf("%s is %q after write %d", key, v, written)
		}
		time.Sleep(10 * time.Millisecond) // a peer that asks without end exceeds its budget
	}
	write("/b/c/1")
	write("/b/1")
	for i, n := range c.nodes { // to a scope that o does not hold
		in, err := n.In("/b/")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := in.Govern(ctx, scope.Folding([]byte("/b/c/")), Once{}); err != nil || r.Code != scope.Applied && i == 0 {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	in, err := c.nodes[0].In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	for in.LastHead().Folded == 0 {
		write("/b/c/1")
	}
	once := Once{Nonce: []byte("the client's own"), ValidUntil: c.nodes[0].root.runner.now().Add(time.Minute)}
	for range 2 {
		if r, err := o.Txn(ctx, putTxn("/b/once", "v"), once); err != nil || r.Code != scope.Applied && r.Code != scope.Duplicate {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	c.fold(ctx, "/b/")
	for c.nodes[0].root.LastHead().Folded == 0 {
		write("/b/c/1")
		write("/b/1")
	}
	c.home(1)
	write("/b/c/1")
	write("/b/1")
	unwatch()
	watching.Wait()
	if heard.Load() == 0 {
		t.Error("the watch heard nothing")
	}
	t.Logf("%d writes, and the watch heard %d changes", written, heard.Load())
}

// TestOnceAcrossAFoldAfterAll: the same where the scope above was compacted and the node started again, and at a node
// that never held the scope that came home. The node that started again still knows the history of that scope.
func TestOnceAcrossAFoldAfterAll(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a, c := newFar(t, nil), &cluster{t: t}
	var disks [4]vfs.FS
	for i := range 4 {
		disks[i] = vfs.NewMem()
		a.start(i, disks[i])
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	p := scope.OpenPolicy(quorum.BFT)
	p.Children.Notice = time.Second
	for i, n := range c.nodes {
		if r, err := n.root.Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, Once{}); err != nil || r.Code != scope.Applied && i == 0 {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	c.delegateUnder(ctx, "", "/b/", p, 0, 1, 2, 3)
	far := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
	t.Cleanup(func() { far.halt(t) })
	testwait.Until(t, "it follows", func() bool { return !far.Node.root.vacant.Load() && len(far.Node.root.Delegations()) == 1 })
	once := func(nonce string) Once {
		return Once{Nonce: []byte(nonce), ValidUntil: c.nodes[0].root.runner.now().Add(time.Minute)}
	}
	near, apart := once("one of a client"), once("one of another client")
	for key, at := range map[string]*Node{"/b/1": c.nodes[3], "/b/2": far.Node} { // order-free
		if r, err := at.Txn(ctx, putTxn(key, "v"), map[string]Once{"/b/1": near, "/b/2": apart}[key]); err != nil || r.Code != scope.Applied {
			t.Fatalf("%s: %s %s, %v", key, r.Code, r.Reason, err)
		}
	}
	c.fold(ctx, "/b/")
	c.home(1)
	testwait.Until(t, "it is home", func() bool { return far.Node.root.LastHead().Folded == 1 })
	if r, err := far.Node.Txn(ctx, putTxn("/b/2", "v"), apart); err != nil || r.Code != scope.Duplicate {
		t.Errorf("from afar: %s %s, %v", r.Code, r.Reason, err)
	}
	r, err := c.nodes[3].Txn(ctx, putTxn("/a", "x"), Once{})
	if err == nil {
		r, err = c.nodes[3].Compact(ctx, r.Revision, Once{})
	}
	if err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s %v", r.Code, r.Reason, err)
	}
	a.running[3].halt(t)
	a.running[3] = nil
	a.start(3, disks[3])
	again := a.running[3].Node
	if r, err := again.Txn(ctx, putTxn("/b/1", "v"), near); err != nil || r.Code != scope.Duplicate {
		t.Errorf("after a compaction and a restart: %s %s, %v", r.Code, r.Reason, err)
	}
	l, _, err := again.Lineage(ctx, []byte("/b/1"), 10)
	if err != nil || len(l.Entries) != 2 || l.Entries[0].Class != lineage.CameHome || l.Entries[1].Class != lineage.Insert {
		t.Errorf("the history is %+v, %v", l.Entries, err)
	}
}

// TestAScopeThatHoldsTooMuchIsLeftAlone: it is not folded, and goes on, and makes no blocks without end.
func TestAScopeThatHoldsTooMuchIsLeftAlone(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c := noticed(t, 4, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	for i := range 26 {
		if r, err := c.nodes[0].Txn(ctx, putTxn(fmt.Sprint("/b/", i), strings.Repeat("v", 1_400_000)), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	p, err := c.nodes[0].In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	before := p.LastHead().Height
	c.fold(ctx, "/b/")
	time.Sleep(4 * time.Second) // the notice, and some attempts of each anchor
	if n := p.LastHead().Height - before; n > 20 || p.LastHead().Closed {
		t.Errorf("it made %d blocks, closed %v", n, p.LastHead().Closed)
	}
	for i := range 8 { // then it does
		txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte(fmt.Sprint("/b/", i))}}}
		if r, err := c.nodes[0].Txn(ctx, txn, Once{}); err != nil || r.Code != scope.Applied {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	c.home(1)
	if got := c.value(ctx, 2, "/b/20"); len(got) != 1_400_000 {
		t.Errorf("a value came home with %d bytes", len(got))
	}
	// The block with which it came home replaced more than is kept of a newest block, so that only the next one lets
	// the audit at the end of the test check the state.
	if r, err := c.nodes[0].Txn(ctx, putTxn("/c", "v"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
	}
	for _, n := range c.nodes {
		testwait.Until(t, "all have it", func() bool { return n.root.LastHead().Revision >= res(ctx, t, c, "/c") })
	}
}

// TestOldFoldsConcernNoRequest: a request that no block of a closed scope can have taken is not looked for there.
func TestOldFoldsConcernNoRequest(t *testing.T) {
	first, last := scope.OpenPolicy(quorum.BFT), scope.OpenPolicy(quorum.BFT)
	first.Limits.ValidFor, last.Limits.ValidFor = time.Minute, time.Hour
	closed := aweigh.Instant(1_700_000_000 * time.Second)
	for ahead, may := range map[time.Duration]bool{-time.Hour: true, time.Minute: true, time.Hour: true, time.Hour + 1: false} {
		once := Once{ValidUntil: closed.Add(ahead)}
		if once.mayBeOf(closed, &first, &last) != may || once.mayBeOf(closed, &last, &first) != may {
			t.Errorf("valid until %v after the scope closed: want %v", ahead, may)
		}
	}
}
