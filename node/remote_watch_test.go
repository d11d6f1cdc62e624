package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// watched gives what a watch at a node delivers, until the test ends it.
func watched(t *testing.T, n *Node, key, end string, from int64) (events <-chan scope.Event, ended <-chan error, stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all, done := make(chan scope.Event, 1000), make(chan error, 1)
	started := make(chan struct{})
	go func() {
		first := true
		done <- n.Watch(ctx, []byte(key), []byte(end), from, func(c Changes) error {
			for _, e := range c.Events {
				all <- *e
			}
			if first {
				close(started)
				first = false
			}
			return nil
		})
	}()
	select {
	case <-started:
	case err := <-done:
		done <- err
	case <-time.After(20 * time.Second):
		t.Fatal("no watch begins")
	}
	return all, done, stop
}

// TestForeignScopesAreWatched: a node that holds the root scope alone delivers every change of all scopes
// once, in the order of revisions, from now on and from a revision on, and neither loses nor repeats what comes
// while anchors stop.
func TestForeignScopesAreWatched(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, a, o := newRegions(t, quorum.Crash)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	first := got(t, o, "/b/1", true)
	if first != "first" {
		t.Fatal(first)
	}
	events, ended, stop := watched(t, o, "/", "0", 0)
	keys := []string{"/a", "/b/1", "/b/c/1"}
	const rounds = 20
	var start int64
	for i := range rounds {
		for _, key := range keys {
			r, err := c.nodes[i%3].Txn(ctx, putTxn(key, fmt.Sprint(i)), Once{})
			if err != nil || r.Code != scope.Applied {
				t.Fatal(r, err)
			}
			if start == 0 {
				start = r.Revision
			}
		}
		if i == rounds/2 {
			if err := a.end(3); err != nil { // one of four, which it may be asking
				t.Fatal(err)
			}
		}
	}
	if _, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/b/c/1")}}}, Once{}); err != nil {
		t.Fatal(err)
	}
	check := func(what string, events <-chan scope.Event, ended <-chan error) {
		t.Helper()
		next, last := make(map[string]int), int64(0)
		for range rounds*len(keys) + 1 {
			select {
			case e := <-events:
				key := string(e.Kv.Key)
				if e.Class == lineage.Delete {
					if key != "/b/c/1" || next[key] != rounds {
						t.Fatalf("%s: %s is deleted after %d puts", what, key, next[key])
					}
					break
				}
				if string(e.Kv.Value) != fmt.Sprint(next[key]) || e.Kv.ModRevision < last || e.Prev == nil {
					t.Fatalf("%s: %s is %q at revision %d, where %d comes next after %d; before: %v", what, key, e.Kv.Value, e.Kv.ModRevision, next[key], last, e.Prev)
				}
				next[key]++
				last = e.Kv.ModRevision
			case err := <-ended:
				t.Fatalf("%s: %v after %v", what, err, next)
			case <-ctx.Done():
				t.Fatalf("%s: in vain after %v", what, next)
			}
		}
		select {
		case e := <-events:
			t.Fatalf("%s: once more: %+v", what, e)
		case <-time.After(3 * pollScopeEvery):
		}
	}
	check("from now on", events, ended)
	again, endedToo, stopToo := watched(t, o, "/", "0", start)
	check("from a revision on", again, endedToo)
	stop()
	stopToo()
	for _, e := range []<-chan error{ended, endedToo} {
		if err := <-e; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	testwait.Until(t, "no watch asks any more", func() bool {
		for _, f := range o.remotes.all {
			f.poller.mu.Lock()
			taps := f.poller.taps
			f.poller.mu.Unlock()
			if taps > 0 {
				return false
			}
		}
		return true
	})
}

// TestForeignWatchesAreTold: that what they ask for is compacted, and from which revision on they may go on.
func TestForeignWatchesAreTold(t *testing.T) {
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var revisions []int64
	for i := range 5 {
		r, err := c.nodes[0].Txn(ctx, putTxn("/b/1", fmt.Sprint(i)), Once{})
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, r.Revision)
	}
	if _, err := c.nodes[0].Compact(ctx, revisions[3], Once{}); err != nil {
		t.Fatal(err)
	}
	err := o.Watch(ctx, []byte("/b/1"), nil, revisions[1], func(Changes) error { return nil })
	if !errors.Is(err, scope.ErrCompacted) {
		t.Errorf("from a compacted revision on: %v", err)
	}
	events, ended, _ := watched(t, o, "/b/1", "", revisions[3])
	for i := 3; i < 5; i++ {
		select {
		case e := <-events:
			if string(e.Kv.Value) != fmt.Sprint(i) {
				t.Errorf("%q instead of %d", e.Kv.Value, i)
			}
		case err := <-ended:
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatal("in vain")
		}
	}
}

// TestHostileScopesMoveNoRevisions: whatever all who answer for a scope say of how far it is, no watch begins, is
// compacted or goes on beyond the present.
func TestHostileScopesMoveNoRevisions(t *testing.T) {
	t.Parallel()
	c, a, o := newRegions(t, quorum.Crash) // whose word is taken
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	got(t, o, "/b/c/1", true)
	a.running[3].halt(t)
	a.running[3] = nil
	var f *remoteScope
	for _, id := range o.remotes.ids() {
		if x := o.foreign(id); string(x.genesis.Prefix()) == "/b/c/" {
			f = x
		}
	}
	const far = 1 << 61
	var lie atomic.Pointer[func(*referral.Answer)]
	a.liar(3, func(_ referral.Question, x referral.Answer) ([]byte, bool) {
		(*lie.Load())(&x)
		return canon.Encode(x), true
	}, c.nodes[0])
	for what, x := range map[string]struct {
		says  func(*referral.Answer)
		taken bool // though not as it was said
	}{
		"it is far in the future":           {func(x *referral.Answer) { x.Revision = far }, true},
		"all was compacted, and will be":    {func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{Compacted: far}) }, false},
		"there is more, from the future on": {func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{Next: far}) }, false},
		"what it will be": {func(x *referral.Answer) {
			x.Body = canon.Encode(referral.Events{All: []referral.Event{{Class: lineage.Update, Kv: scope.KeyValue{Key: []byte("/b/c/1"), ModRevision: far}}}})
		}, false},
	} {
		lie.Store(&x.says)
		for told := false; !told; { // until the liar is who answers
			f.mu.Lock()
			f.askFirst("n3")
			f.knows.Forget()
			f.mu.Unlock()
			_, revision, err := f.events(ctx, referral.Watch{Key: []byte("/b/c/1"), From: 1}, false, 0)
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			f.mu.Lock()
			told = err != nil || f.knows.Newest() == far
			f.mu.Unlock()
			if now := scope.ClockRevision(f.genesis.Descent.Started, o.root.runner.now().Add(time.Second)); revision > now {
				t.Errorf("%s: revision %d, where it is %d now", what, revision, now)
			}
			if told && (err == nil) != x.taken {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestHostileScopesMoveNoWatches: what anchors of a scope say of changes is held to what was asked, and to the clock.
func TestHostileScopesMoveNoWatches(t *testing.T) {
	kv := func(key string, at int64) scope.KeyValue {
		return scope.KeyValue{Key: []byte(key), ModRevision: at, CreateRevision: 1, Version: 2}
	}
	x := referral.Watch{Key: []byte("/b/"), End: []byte("/b0"), From: 10}
	for what, w := range map[string]referral.Events{
		"before what was asked":      {All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 9)}}},
		"in disorder":                {All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 12)}, {Class: lineage.Update, Kv: kv("/b/1", 11)}}},
		"of another scope's key":     {All: []referral.Event{{Class: lineage.Update, Kv: kv("/c/1", 11)}}},
		"of no class":                {All: []referral.Event{{Kv: kv("/b/1", 11)}}},
		"after another key":          {All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 11), Prev: []scope.KeyValue{kv("/b/2", 9)}}}},
		"after two":                  {All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 11), Prev: []scope.KeyValue{kv("/b/1", 9), kv("/b/1", 8)}}}},
		"beyond what comes next":     {Next: 11, All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 11)}}},
		"and nothing more, for ever": {Next: 10},
		"of what it says it dropped": {Compacted: 11, All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 11)}}},
	} {
		if err := w.Wrong(&x); !errors.Is(err, machine.ErrFrame) {
			t.Errorf("changes %s are taken: %v", what, err)
		}
	}
	good := referral.Events{Compacted: 3, Next: 13, All: []referral.Event{{Class: lineage.Update, Kv: kv("/b/1", 11), Prev: []scope.KeyValue{kv("/b/1", 9)}}}}
	if err := good.Wrong(&x); err != nil || good.Through(100) != 12 {
		t.Error(err, good.Through(100))
	}
	good.Next = 0
	if good.Through(5) != 11 || good.Through(15) != 15 {
		t.Error("what was said of later revisions is so as well")
	}
}

// TestWatchedTransactionsMayBeLarge: one that replaced more than an answer holds is told without what it replaced.
func TestWatchedTransactionsMayBeLarge(t *testing.T) {
	testshort.Skip(t)
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	big := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 8 {
		if _, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: fmt.Append(nil, "/b/big/", i), Value: big}}}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	got(t, o, "/b/1", true)
	events, ended, _ := watched(t, o, "/b/", "/b0", 0)
	if r, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/b/big/"), End: []byte("/b/big0")}}}, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	if _, err := c.nodes[0].Txn(ctx, putTxn("/b/1", "after"), Once{}); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		select {
		case e := <-events:
			if string(e.Kv.Value) == "after" {
				if n != 8 {
					t.Errorf("%d events before", n)
				}
				return
			}
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Second):
			t.Fatal("stalled after events: ", n)
		}
	}
}

// TestIdleScopesHoldNoWatchUp: a change in one of two scopes that the node does not hold is heard though the other
// decides nothing, and its anchors have heard nothing of the first.
func TestIdleScopesHoldNoWatchUp(t *testing.T) {
	t.Parallel()
	a, c := newHolders(t, func(i int, cfg *Config) {
		if cfg.Follow = [][]byte{}; i == 3 {
			cfg.Follow = [][]byte{[]byte("/b/")}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	for _, key := range []string{"/a", "/b/1", "/b/c/1"} {
		if r, err := c.nodes[0].Txn(ctx, putTxn(key, "first"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	found := func(from, prefix string, by []int, anchors ...int) {
		child := scope.Child{Prefix: []byte(prefix), Policy: scope.OpenPolicy(quorum.Crash)}
		for _, x := range c.nodes[0].root.Genesis().Anchors {
			for _, i := range anchors {
				if x.Name == fmt.Sprintf("n%d", i) {
					child.Anchors = append(child.Anchors, x)
				}
			}
		}
		for _, i := range by {
			p, err := c.nodes[i].In(from)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Govern(ctx, scope.Decision{Kind: scope.Delegate, Child: &child}, Once{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range anchors {
			testwait.Until(t, "it is held", func() bool { _, err := c.nodes[i].In(prefix); return err == nil })
		}
	}
	found("", "/b/", []int{0, 1, 2, 3}, 0, 1, 2)
	found("/b/", "/b/c/", []int{0, 1, 2}, 3)
	r := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
	t.Cleanup(func() { r.halt(t) })
	o := r.Node
	got(t, o, "/b/1", true)
	got(t, o, "/b/c/1", true)
	events, ended, _ := watched(t, o, "/b/", "/b0", 0)
	if r, err := c.nodes[3].Txn(ctx, putTxn("/b/c/1", "new"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	select {
	case e := <-events:
		if string(e.Kv.Value) != "new" {
			t.Errorf("%q", e.Kv.Value)
		}
	case err := <-ended:
		t.Fatal(err)
	case <-ctx.Done():
		t.Fatal("in vain, while /b/ decides nothing")
	}
}

// TestLiarsHoldNoWatchUp: one of four anchors, which is asked first, lies about what changed or how far the scope is.
// Every change is delivered once all the same, and nothing else.
func TestLiarsHoldNoWatchUp(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, a, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	a.running[3].halt(t)
	a.running[3] = nil
	begin := c.nodes[0].replica(c.nodes[0].root.Delegations()[0].Child).genesis.Descent.Revision
	lies := []struct {
		name string
		lie  func(x *referral.Answer)
	}{
		{"the truth as of long ago", func(x *referral.Answer) { x.Revision = begin }},
		{"the truth as of the far future", func(x *referral.Answer) { x.Revision = 1 << 60 }},
		{"that nothing changed", func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{}) }},
		{"that nothing changed, as of long ago", func(x *referral.Answer) { x.Body, x.Revision = canon.Encode(referral.Events{}), begin }},
		{"what is not so", func(x *referral.Answer) {
			x.Body = canon.Encode(referral.Events{All: []referral.Event{{Class: lineage.Update, Kv: scope.KeyValue{Key: []byte("/b/1"), Value: []byte("forged"), ModRevision: x.Revision, Version: 9}}}})
		}},
		{"that all was compacted", func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{Compacted: x.Revision + 1}) }},
		{"that there is more, for ever", func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{Next: x.Revision}) }},
		{"that keys went elsewhere", func(x *referral.Answer) { x.Body = canon.Encode(referral.Events{Given: 1000}) }},
	}
	var now atomic.Int32
	var told atomic.Int64
	a.liar(3, func(ask referral.Question, honest referral.Answer) ([]byte, bool) {
		if ask.Kind == referral.AskEvents {
			told.Add(1)
			lies[now.Load()].lie(&honest)
		}
		return canon.Encode(honest), true
	}, c.nodes[0])
	got(t, o, "/b/1", true)
	at, err := o.awaitDecider(ctx, o.root.Delegations()[0])
	if err != nil || at.remote == nil {
		t.Fatal(at, err)
	}
	events, ended, _ := watched(t, o, "/b/1", "", 0)
	for i := range lies {
		now.Store(int32(i))
		before := told.Load()
		for k := 0; k < 2 || k < 20 && told.Load() < before+3; k++ {
			f := at.remote
			f.mu.Lock()
			f.askFirst("n3")
			f.mu.Unlock()
			want := fmt.Sprintf("%d-%d", i, k)
			if _, err := c.nodes[0].Txn(ctx, putTxn("/b/1", want), Once{}); err != nil {
				t.Fatal(err)
			}
			select {
			case e := <-events:
				if string(e.Kv.Value) != want {
					t.Fatalf("%s: %q instead of %q", lies[i].name, e.Kv.Value, want)
				}
			case err := <-ended:
				t.Fatalf("%s: %v", lies[i].name, err)
			case <-ctx.Done():
				t.Fatalf("%s: in vain", lies[i].name)
			}
		}
		if told.Load() == before {
			t.Errorf("%s: the liar was not asked", lies[i].name)
		}
	}
}

// TestDroppedChangesAreNotPassedOver: a watch that ends while changes wait for it in a remote watch says nothing of
// revisions that it did not deliver, or its client would go on behind them.
func TestDroppedChangesAreNotPassedOver(t *testing.T) {
	x := &remoteWatch{next: 9, read: []Change{{Place: scope.Place{Key: []byte("/k"), Revision: 7}}}, woken: make(chan struct{}, 1)}
	l := &WatchSegment{Next: 5, Closed: 4, remote: x}
	x.drop()
	if _, err := x.give(l); err != nil || l.Done() >= 7 {
		t.Fatalf("the segment is done up to revision %d, and was given nothing of revision 7: %v", l.Done(), err)
	}
}
