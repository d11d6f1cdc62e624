package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// copying are regions as in newRegions, with keys /b/x/00 to /b/x/19 of 100 bytes, and a node that copies what is read
// more than a few times in a minute.
func copying(t *testing.T) (c *cluster, a *anchorage, o *Node) {
	t.Helper()
	c, a, o = newRegions(t, quorum.BFT)
	o.copies.often = 3
	var x scope.Txn
	for i := range 20 {
		x.Success = append(x.Success, putTxn(fmt.Sprintf("/b/x/%02d", i), strings.Repeat("v", 100)).Success...)
	}
	if r, err := c.nodes[0].Txn(t.Context(), x, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	got(t, o, "/b/x/00", true)
	return c, a, o
}

// demanded reads other keys of /b/x/ until the node has copies and answers from one.
func demanded(t *testing.T, o *Node) {
	t.Helper()
	i, before := 0, o.Copies().Answered
	testwait.Until(t, "a copy answers", func() bool {
		key := fmt.Sprintf("/b/x/%02d", i%20)
		if v := got(t, o, key, false); !strings.HasPrefix(v, "v") {
			t.Fatalf("%s is %q", key, v)
		}
		i++
		return o.Copies().Answered > before
	})
}

// TestKeysThatAreReadOftenAreCopied: reads that may be old are answered from a copy, with all changes, in order, and an
// age. A read that may not be old asks the anchors, and no later read shows less than it did.
func TestKeysThatAreReadOftenAreCopied(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, a, o := copying(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	a.running[3].halt(t)
	a.running[3] = nil
	var asked atomic.Int64
	a.liar(3, func(ask referral.Question, x referral.Answer) ([]byte, bool) {
		switch asked.Add(1); ask.Kind {
		case referral.AskEvents:
			x.Body = canon.Encode(referral.Events{All: []referral.Event{{Class: lineage.Update, Kv: scope.KeyValue{Key: []byte("/b/x/00"), Value: []byte("forged"), ModRevision: x.Revision}}}})
		case referral.AskLook:
			x.Body = canon.Encode(referral.Looked{Succeeded: true, Responses: []scope.Response{{Kind: scope.OpRange}}})
		}
		return canon.Encode(x), true
	}, c.nodes[0])
	f := o.remotes.named("/b/")
	askLiar := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.askFirst("n3")
	}
	askLiar()
	demanded(t, o)
	if n := o.Copies(); n.Copies != 1 || n.Used < 20*(100+pairOver) || n.Used > n.Limit {
		t.Fatalf("the node has %+v", n)
	}
	path, end := []byte("/b/x/"), []byte("/b/x0")
	for i := range 30 {
		want := fmt.Sprint("v", i)
		askLiar()
		if r, err := c.nodes[i%3].Txn(ctx, putTxn("/b/x/07", want), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
		if i%3 == 0 {
			if v := got(t, o, "/b/x/07", true); v != want {
				t.Fatalf("linearizable, it is %q, not %q", v, want)
			}
			if v := got(t, o, "/b/x/07", false); v != want {
				t.Fatalf("after a linearizable read of %q it is %q", want, v)
			}
		}
	}
	if r, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/b/x/11")}}}, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	exact, _, err := c.nodes[0].Range(ctx, path, end, scope.Range{Limit: 15, Sort: scope.ByMod, Order: scope.Descending}, true)
	if err != nil {
		t.Fatal(err)
	}
	before := o.Copies().Answered
	testwait.Until(t, "the copy has the last change", func() bool {
		aged, age := Aged(ctx)
		res, head, err := o.Range(aged, path, end, scope.Range{Limit: 15, Sort: scope.ByMod, Order: scope.Descending}, false)
		if err != nil || head.Revision != res.Revision || string(head.Prefix) != "/b/" {
			t.Fatal(head, err)
		}
		if o.Copies().Answered == before {
			return false
		}
		if old := age.Oldest(); old <= 0 || old >= 5*time.Second {
			t.Fatalf("the answer is %v old", old)
		}
		return res.Count == 19 && res.More && len(res.Kvs) == 15 && string(res.Kvs[0].Key) == string(exact.Kvs[0].Key) && res.Kvs[0].ModRevision == exact.Kvs[0].ModRevision
	})
	if asked.Load() == 0 {
		t.Error("the liar was not asked")
	}
	// Many reads cost no questions but those for changes.
	served, begin := o.Copies().Answered, time.Now()
	asked.Store(0)
	for i := range 2000 {
		got(t, o, fmt.Sprintf("/b/x/%02d", i%10), false)
	}
	if n := o.Copies().Answered - served; n < 1900 {
		t.Errorf("of 2000 reads, %d were answered from the copy", n)
	}
	if most := 4 + 4*int64(time.Since(begin)/copyEvery); asked.Load() > most {
		t.Errorf("for 2000 reads one anchor was asked %d times", asked.Load())
	}
}

// TestCopiesAreNeverTooOld: where the anchors cannot be reached, a copy answers for as long as the policy lets answers
// be old, and no longer.
func TestCopiesAreNeverTooOld(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	_, a, o := copying(t)
	demanded(t, o)
	for i := range 3 {
		if err := a.end(i + 1); err != nil {
			t.Fatal(err)
		}
	}
	stopped := time.Now()
	testwait.Until(t, "the copy is too old", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		aged, age := Aged(ctx)
		_, _, err := o.Range(aged, []byte("/b/x/05"), nil, scope.Range{}, false)
		if err == nil && (age.Oldest() == 0 || time.Since(stopped) > 6*time.Second) {
			t.Fatalf("%v after the anchors stopped, an answer is %v old", time.Since(stopped), age.Oldest())
		}
		return errors.Is(err, referral.ErrMute)
	})
}

// TestCopiesEndWithWhatTheyCopy: a copy ends where the scope delegates some of its keys, and the new scope's keys are
// copied from there.
func TestCopiesEndWithWhatTheyCopy(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := copying(t)
	demanded(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	c.delegate(ctx, "/b/", "/b/x/", quorum.BFT, 0, 1, 2, 3)
	delegated := time.Now()
	testwait.Until(t, "the copy ends", func() bool { return o.Copies().Copies == 0 && o.Copies().Used == 0 })
	if time.Since(delegated) > copyPeriod/2 {
		t.Error("the copy ended since it was not read")
	}
	if r, err := c.nodes[0].Txn(ctx, putTxn("/b/x/03", "below"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	testwait.Until(t, "the new scope answers", func() bool { return got(t, o, "/b/x/03", false) == "below" })
	if r, err := c.nodes[0].Txn(ctx, putTxn("/b/x/03", "v below"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	demanded(t, o) // from one of the new scope
}

// TestCopiesServeBesideOthers: copies of several paths answer while others write to the scope all the time, and while a
// client watches it.
func TestCopiesServeBesideOthers(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := copying(t)
	const paths = 6
	key := func(i int) string { return fmt.Sprintf("/b/p%d/%d", i%paths, i/paths%3) }
	for i := range 3 * paths {
		if r, err := c.nodes[0].Txn(t.Context(), putTxn(key(i), "v"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = c.nodes[0].Txn(ctx, putTxn("/b/other", fmt.Sprint(i)), Once{})
			time.Sleep(20 * time.Millisecond) // between writes
		}
	}()
	defer func() { cancel(); <-written }()
	_, _, stop := watched(t, o, "/b/p0/", "/b/p00", 0)
	defer stop()
	i := 0
	testwait.Until(t, "all paths are copied", func() bool {
		got(t, o, key(i), false)
		i++
		return o.Copies().Copies >= paths
	})
	testwait.Until(t, "the copies are full", func() bool {
		o.copies.mu.Lock()
		defer o.copies.mu.Unlock()
		full := 0
		for _, x := range o.copies.all { // order-free: a count
			x.mu.RLock()
			if x.as != 0 {
				full++
			}
			x.mu.RUnlock()
		}
		return full >= paths
	})
	before := o.Copies().Answered
	for i := range 60 {
		got(t, o, key(i), false)
		time.Sleep(50 * time.Millisecond) // within what anchors do for non-members, if they are asked
	}
	if n := o.Copies().Answered - before; n < 45 {
		t.Errorf("of 60 reads, %d were answered from copies", n)
	}
}

// TestCopiesThatCostMoreEnd: a copy ends if the changes of its keys take more than what is read of it.
func TestCopiesThatCostMoreEnd(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := copying(t)
	demanded(t, o)
	large, at := strings.Repeat("x", 100<<10), copyRange{o.remotes.named("/b/").id, "/b/x/", "/b/x0"}
	testwait.Until(t, "the copy ends", func() bool {
		if r, err := c.nodes[0].Txn(t.Context(), putTxn("/b/x/large", large), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
		got(t, o, "/b/x/05", false)
		o.copies.mu.Lock()
		defer o.copies.mu.Unlock()
		d := o.copies.demands[at]
		return o.copies.all[at] == nil && d != nil && time.Until(d.refused) > copyRetried
	})
}

// TestLargeCopiesAreNotMade: what takes more than its share of the memory is not copied; a single key of it may be.
func TestLargeCopiesAreNotMade(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := copying(t)
	o.copies.limit = copyShare * 1000
	for i := range 10 {
		got(t, o, fmt.Sprintf("/b/x/%02d", i), false)
	}
	at := copyRange{o.remotes.named("/b/").id, "/b/x/", "/b/x0"}
	testwait.Until(t, "the path is refused", func() bool {
		o.copies.mu.Lock()
		defer o.copies.mu.Unlock()
		d := o.copies.demands[at]
		return d != nil && time.Until(d.refused) > copyRetried
	})
	testwait.Until(t, "one key is copied", func() bool { // once the scope has gone on, the anchors are asked again
		if r, err := c.nodes[0].Txn(t.Context(), putTxn("/b/x/19", "v"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
		got(t, o, "/b/x/19", true)
		got(t, o, "/b/x/05", false)
		return o.Copies().Answered > 0
	})
	if n := o.Copies(); n.Copies == 0 || n.Used > n.Limit {
		t.Errorf("the node has %+v", n)
	}
}

// TestCopiesThatAreReadSeldomEnd: a copy ends with a period in which it was read seldom.
func TestCopiesThatAreReadSeldomEnd(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	_, _, o := copying(t)
	o.copies.period, o.copies.seldom = time.Second, 3
	demanded(t, o)
	for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(100 * time.Millisecond) { // more often than seldom
		got(t, o, "/b/x/05", false)
	}
	if n := o.Copies(); n.Copies != 1 {
		t.Errorf("the node has %+v", n)
	}
	testwait.Until(t, "the copy ends", func() bool { return o.Copies().Copies == 0 })
	if n := o.Copies(); n.Used != 0 {
		t.Errorf("the node has %+v", n)
	}
}

// TestNoCopiesWithoutMemory: a node whose copies may take nothing makes none.
func TestNoCopiesWithoutMemory(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	_, _, o := copying(t)
	o.copies.limit = 0
	for i := range 20 {
		got(t, o, fmt.Sprintf("/b/x/%02d", i), false)
	}
	if n := o.Copies(); n != (CopyCounts{}) {
		t.Errorf("the node has %+v", n)
	}
}
