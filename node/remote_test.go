package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// newHolders are four anchors that run, in whose network scopes are to be founded.
func newHolders(t testing.TB, change func(int, *Config)) (a *anchorage, c *cluster) {
	t.Helper()
	a, c = newFar(t, change), &cluster{t: t}
	for i := range 4 {
		a.start(i, vfs.NewMem())
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	return a, c
}

// newRegions are four anchors that hold a scope below the root's, and one below that, and a
// node that holds the root's alone.
func newRegions(t testing.TB, deepest quorum.Mode) (c *cluster, a *anchorage, o *Node) {
	t.Helper()
	a, c = newHolders(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, key := range []string{"/a", "/b/1", "/b/c/1"} {
		if r, err := c.nodes[0].Txn(ctx, putTxn(key, "first"), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	c.delegate(ctx, "", "/b/", quorum.BFT, 0, 1, 2, 3)
	c.delegate(ctx, "/b/", "/b/c/", deepest, 0, 1, 2, 3)
	r := a.observeWith(newIdentity(t), vfs.NewMem(), func(cfg *Config) { cfg.Follow = [][]byte{} })
	t.Cleanup(func() { r.halt(t) })
	return c, a, r.Node
}

// askedWell reports whether at least two anchors answered, each with trust and a known distance, and were asked in the
// order of their costs.
func askedWell(all []referral.Asked) bool {
	answered := 0
	for i := range all {
		if all[i].Err == nil && all[i].Answer > 0 {
			answered++
		}
		if w := &all[i].Why; w.Trust == 0 || w.Last() || i > 0 && all[i-1].Why.Cost() > w.Cost() {
			return false
		}
	}
	return answered >= 2
}

func uidOf(t testing.TB, n *Node, key string) aweigh.UID {
	t.Helper()
	r, _, err := n.Resolve(context.Background(), []byte(key), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	return r.Kv.UID
}

func got(t testing.TB, n *Node, key string, linearizable bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, _, err := n.Range(ctx, []byte(key), nil, scope.Range{}, linearizable)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if len(res.Kvs) == 0 {
		return ""
	}
	return string(res.Kvs[0].Value)
}

// TestForeignScopesAreReached: a node that holds the root scope alone answers for all
// names, by two referrals, and what it says is as new as every write before.
func TestForeignScopesAreReached(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.Crash)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, key := range []string{"/a", "/b/1", "/b/c/1"} {
		if v := got(t, o, key, true); v != "first" {
			t.Errorf("%s is %q", key, v)
		}
		r, err := o.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte("second"), Prev: true}}}, Once{Nonce: []byte("nonce of " + key)})
		if err != nil || r.Code != scope.Applied || len(r.Responses) != 1 || len(r.Responses[0].Prev) != 1 || string(r.Responses[0].Prev[0].Value) != "first" {
			t.Fatalf("%s: %+v, %v", key, r, err)
		}
		if v := got(t, c.nodes[3], key, true); v != "second" {
			t.Errorf("%s is %q at an anchor", key, v)
		}
		proof, _, err := o.Prove(ctx, []byte(key))
		if err != nil {
			t.Fatalf("the proof of %s: %v", key, err)
		}
		visits, err := proof.Visits(c.nodes[0].root.network())
		if err != nil || len(visits) != strings.Count(key, "/") || string(proof.Kv.Value) != "second" {
			t.Errorf("the proof of %s leads through %d scopes to %v: %v", key, len(visits), proof.Kv, err)
		}
		l, _, err := o.Lineage(ctx, []byte(key), 10)
		if err != nil || len(l.Entries) < 2 {
			t.Errorf("the history of %s: %d, %v", key, len(l.Entries), err)
		}
		res, _, err := o.Resolve(ctx, []byte(key), 1, true)
		if err != nil || string(res.Kv.Value) != "first" || res.Newest != 2 || !res.Claims {
			t.Errorf("%s resolves to %+v, %v", key, res, err)
		}
	}
	traced, trace := Traced(ctx)
	if _, _, err := o.Resolve(traced, []byte("/b/1"), 0, true); err != nil {
		t.Errorf("a traced call: %v", err)
	}
	if trips := trace.Trips(); len(trips) != 1 || string(trips[0].Prefix) != "/b/" || !askedWell(trips[0].Asked) {
		t.Errorf("the trace of a call says %+v", trips)
	}
	res, head, err := o.Range(ctx, []byte("/"), []byte("0"), scope.Range{}, true)
	if err != nil || len(res.Kvs) != 3 || res.Count != 3 {
		t.Fatalf("all keys: %+v, %v", res, err)
	}
	again, _, err := o.Range(ctx, []byte("/"), []byte("0"), scope.Range{Revision: head.Revision}, true)
	if err != nil || len(again.Kvs) != 3 {
		t.Errorf("all keys as of revision %d: %+v, %v", head.Revision, again, err)
	}
	if r, err := o.Naming(ctx, scope.Naming{Kind: scope.Move, Key: []byte("/b/c/1"), To: []byte("/b/c/2"), Until: aweigh.InstantOf(time.Now().Add(time.Hour))}, Once{}); err != nil || r.Code != scope.Applied {
		t.Fatalf("a move: %+v, %v", r, err)
	}
	if res, _, err := o.Resolve(ctx, []byte("/b/c/1"), 0, true); err != nil || string(res.Key) != "/b/c/2" || res.Moved == nil {
		t.Errorf("what was moved resolves to %+v, %v", res, err)
	}
	if _, _, err := o.Resolve(ctx, []byte("/b/c/none"), 0, true); !errors.Is(err, scope.ErrKeyNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := o.Txn(ctx, scope.Txn{Success: append(putTxn("/b/1", "x").Success, putTxn("/b/c/3", "x").Success...)}, Once{}); !errors.Is(err, ErrSpans) {
		t.Errorf("a transaction in two scopes: %v", err)
	}
	u := uidOf(t, c.nodes[0], "/b/1")
	if at, err := c.nodes[0].Object(ctx, u.String(), 10, true); err != nil || len(at.Aliases) != 1 {
		t.Errorf("an object at an anchor: %+v, %v", at, err)
	}
	if at, err := o.Object(ctx, u.String(), 10, true); !errors.Is(err, ErrNotHeld) {
		t.Errorf("an object that was handed over: %+v, %v", at, err)
	}
	for _, name := range []string{"/b/", "/b"} {
		if _, err := o.In(name); !errors.Is(err, ErrNotHeld) {
			t.Errorf("scope %s by name, where it is not held: %v", name, err)
		}
		if p, err := c.nodes[0].In(name); err != nil || string(p.prefix) != "/b/" {
			t.Errorf("scope %s by name: %v", name, err)
		}
	}
	if _, err := c.nodes[0].In("/none"); !errors.Is(err, ErrNoScope) {
		t.Errorf("no scope by name: %v", err)
	}
	if len(o.Replicas()) != 1 {
		t.Errorf("the node holds %d scopes", len(o.Replicas()))
	}
}

// TestLargeForeignRangesAreReadInPages: a range may have more than one answer holds, if its keys, their count, or some
// of them are asked for.
func TestLargeForeignRangesAreReadInPages(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.BFT)
	const keys = 8
	value := strings.Repeat("x", 1<<20)
	for i := range keys {
		if r, err := c.nodes[0].Txn(t.Context(), putTxn(fmt.Sprintf("/b/big/%d", i), value), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
	}
	got(t, o, "/b/1", true)
	from, end := []byte("/b/big/"), []byte("/b/big0")
	for _, x := range []struct {
		r   scope.Range
		has int
	}{{scope.Range{Limit: 3}, 3}, {scope.Range{KeysOnly: true}, keys}, {scope.Range{CountOnly: true}, 0}, {scope.Range{Limit: 1, KeysOnly: true}, 1}} {
		res, _, err := o.Range(t.Context(), from, end, x.r, true)
		if err != nil || len(res.Kvs) != x.has || res.Count != keys || res.More != (x.r.Limit > 0) {
			t.Errorf("%+v: %d of %d keys, more: %t, %v", x.r, len(res.Kvs), res.Count, res.More, err)
		}
	}
	for _, r := range []scope.Range{{}, {Limit: 3, Sort: scope.ByMod, Order: scope.Descending}} { // which loads all
		if _, _, err := o.Range(t.Context(), from, end, r, true); !errors.Is(err, scope.ErrTooMuch) || !strings.Contains(err.Error(), "at most 6 MiB") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestForeignVerbsAreJudged: a verb on a key of a scope that a node does not hold is judged
// by all scopes on the way, and carried out once.
func TestForeignVerbsAreJudged(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	policy := scope.OpenPolicy(quorum.BFT)
	policy.Actions = action.Table{{Verb: "own", Class: action.Claim}, {Verb: "pay", Class: action.Write, When: "object.version < 1"}}
	c.delegateUnder(ctx, "/b/c/", "/b/c/d/", policy, 0, 1, 2, 3)
	once := o.root.filled(Once{})
	for range 2 { // the second time it is the same request
		if r, err := o.Act(ctx, doing("pay", action.Write, "/b/c/d/1", "10"), once); err != nil || r.Code == scope.Failed {
			t.Fatalf("%s %s, %v", r.Code, r.Reason, err)
		}
	}
	if v := got(t, o, "/b/c/d/1", true); v != "10" {
		t.Errorf("paid %q", v)
	}
	if r, err := o.Act(ctx, doing("pay", action.Write, "/b/c/d/1", "11"), Once{}); err != nil || r.Code != scope.Failed || !errors.Is(scope.Failure(r.Reason), scope.ErrDenied) {
		t.Errorf("what is denied: %s %s, %v", r.Code, r.Reason, err)
	}
	said, err := o.Judge(ctx, ActionQuery{Verb: "pay", Key: []byte("/b/c/d/1")}, true)
	if err != nil || len(said) != 4 || !said[3].Decides || said[3].Allowed || said[3].Rule == "" || string(said[3].Prefix) != "/b/c/d/" || Denied(said[:3]) != nil {
		t.Errorf("the verdicts: %+v, %v", said, err)
	}
}

// TestForeignReadsAreLinearizable: what a node reads in a scope that it does not hold is
// never older than what was acknowledged before it asked, while clients write to the key.
func TestForeignReadsAreLinearizable(t *testing.T) {
	testshort.Skip(t)
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var acknowledged atomic.Int64
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		for i := int64(1); ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if r, err := c.nodes[i%4].Txn(ctx, putTxn("/b/c/hot", fmt.Sprint(i)), Once{}); err != nil || r.Code != scope.Applied {
				t.Error(r, err)
				return
			}
			acknowledged.Store(i)
		}
	})
	newest := int64(0)
	for range testshort.Cases(25, 100, 100) {
		least := max(acknowledged.Load(), newest)
		if v := got(t, o, "/b/c/hot", true); v != "" {
			if _, err := fmt.Sscan(v, &newest); err != nil {
				t.Fatal(err)
			}
		}
		if newest < least {
			t.Fatalf("read %d after %d was acknowledged, or read", newest, least)
		}
	}
	close(done)
	writing.Wait()
	t.Logf("100 reads beside %d writes", acknowledged.Load())
}

// liar answers as an anchor whatever lie says.
func (a *anchorage) liar(i int, lie func(ask referral.Question, honest referral.Answer) (answer []byte, ok bool), honest *Node) {
	a.t.Helper()
	key, err := machine.HostKey(a.identity[i])
	if err != nil {
		a.t.Fatal(err)
	}
	var bootstrap []string
	for j := range 4 {
		if j != i {
			bootstrap = append(bootstrap, a.addrs[j]...)
		}
	}
	peers, err := p2p.ParsePeers(bootstrap)
	if err != nil {
		a.t.Fatal(err)
	}
	host, err := p2p.New(p2p.Config{
		Key: key, Network: a.genesis.Network(), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: peers,
		Handler: p2p.Handler{Request: func(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
			p, rest := honest.addressee(req)
			body, ok := strings.CutPrefix(string(rest), askForeign)
			var ask referral.Question
			if !ok || p == nil || canon.Decode([]byte(body), &ask) != nil {
				return nil, errors.New("no")
			}
			raw, err := p.serveForeign(ctx, machine.Peer(from.String()), ask)
			var truth referral.Answer
			if err == nil {
				err = canon.Decode(raw, &truth)
			}
			if err != nil {
				return nil, err
			}
			if raw, ok := lie(ask, truth); ok {
				return raw, nil
			}
			return nil, errors.New("no")
		}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = host.Close() })
}

// TestLiarsAreOutvoted: one of four anchors lies about all that it is asked. Nothing that
// it says is taken.
func TestLiarsAreOutvoted(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, a, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	a.running[3].halt(t)
	a.running[3] = nil

	forged := func(ask referral.Question, truth referral.Answer) []byte {
		switch ask.Kind {
		case referral.AskLook:
			return canon.Encode(referral.Looked{Succeeded: true, Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Count: 1, Kvs: []scope.KeyValue{{Key: []byte("/b/1"), Value: []byte("forged"), Version: 1}}}}}})
		case referral.AskResolve:
			return canon.Encode(referral.Resolved{Kv: scope.KeyValue{Value: []byte("forged"), Version: 1}, Claims: true})
		case referral.AskSubmit:
			b, err := scope.CheckBundle(ask.Body, scope.MostLimits(), votes.Verify)
			if err != nil {
				t.Error(err)
				return nil
			}
			return canon.Encode([]referral.Receipt{{Mutation: b.Mutations()[0].ID, Code: uint8(scope.Failed), Reason: "forged"}})
		case referral.AskReferrals: // to a scope that only this anchor governs
			var all []scope.Referral
			if err := canon.Decode(truth.Body, &all); err != nil || len(all) != 1 {
				t.Errorf("%d referrals, %v", len(all), err)
				return nil
			}
			g := &all[0].Child
			g.Policy = scope.OpenPolicy(quorum.Crash)
			for _, x := range a.genesis.Anchors {
				if x.Name == "n3" {
					g.Anchors = []scope.Anchor{x}
				}
			}
			if _, err := g.Check(); err != nil {
				t.Errorf("a forged genesis that shows itself: %v", err)
			}
			return canon.Encode(all)
		}
		return []byte("forged")
	}
	var kind atomic.Int32
	var told atomic.Int64
	lies := []struct {
		name string
		lie  func(ask referral.Question, x referral.Answer) ([]byte, bool)
	}{
		{"another content", func(ask referral.Question, x referral.Answer) ([]byte, bool) {
			x.Body = forged(ask, x)
			return canon.Encode(x), true
		}},
		{"another content, as of the far future", func(ask referral.Question, x referral.Answer) ([]byte, bool) {
			x.Body, x.Revision, x.Height = forged(ask, x), 1<<60, 1<<60
			return canon.Encode(x), true
		}},
		{"the truth as of the far future", func(_ referral.Question, x referral.Answer) ([]byte, bool) {
			x.Revision, x.Height = 1<<60, 1<<60
			return canon.Encode(x), true
		}},
		{"a later epoch", func(ask referral.Question, x referral.Answer) ([]byte, bool) {
			x.Body, x.Epoch = forged(ask, x), x.Epoch+7
			return canon.Encode(x), true
		}},
		{"an epoch of long ago", func(ask referral.Question, x referral.Answer) ([]byte, bool) {
			x.Body, x.Epoch = forged(ask, x), 0
			return canon.Encode(x), true
		}},
		{"that the keys went elsewhere", func(_ referral.Question, x referral.Answer) ([]byte, bool) {
			x.Body, x.Failure = nil, scope.FailureIn(scope.ErrElsewhere)
			return canon.Encode(x), true
		}},
		{"nothing that can be read", func(referral.Question, referral.Answer) ([]byte, bool) { return []byte("?"), true }},
		{"nothing", func(referral.Question, referral.Answer) ([]byte, bool) { return nil, false }},
	}
	a.liar(3, func(ask referral.Question, honest referral.Answer) ([]byte, bool) {
		if told.Add(1); ask.Kind == referral.AskLook && !ask.Newest && ask.At == 0 {
			t.Error("a linearizable read asks for what may be old")
		}
		return lies[kind.Load()].lie(ask, honest)
	}, c.nodes[0])

	got(t, o, "/a", true) // so that it knows of the delegation
	at, err := o.awaitDecider(ctx, o.root.Delegations()[0])
	if err != nil || at.remote == nil {
		t.Fatal(at, err)
	}
	f := at.remote
	for i := range lies {
		kind.Store(int32(i))
		before := told.Load()
		for k := 0; k < 100 && told.Load() < before+8; k++ { // the order in which anchors are asked varies
			f.mu.Lock()
			f.knows.Forget() // it is to be referred to again
			f.askFirst("n3")
			f.mu.Unlock()
			want := fmt.Sprintf("%d-%d", i, k)
			if r, err := o.Txn(ctx, putTxn("/b/1", want), Once{}); err != nil || r.Code != scope.Applied {
				t.Fatalf("%s: a write: %+v, %v", lies[i].name, r, err)
			}
			if v := got(t, o, "/b/1", true); v != want {
				t.Fatalf("%s: read %q after %q was written", lies[i].name, v, want)
			}
			if r, _, err := o.Resolve(ctx, []byte("/b/1"), 0, true); err != nil || string(r.Kv.Value) != want {
				t.Fatalf("%s: resolved to %q, %v", lies[i].name, r.Kv.Value, err)
			}
			if p, _, err := o.Prove(ctx, []byte("/b/1")); err != nil || string(p.Kv.Value) != want {
				t.Fatalf("%s: the proof shows %v, %v", lies[i].name, p, err)
			}
			if v := got(t, o, "/b/c/1", true); v != "first" {
				t.Fatalf("%s: read %q below", lies[i].name, v)
			}
		}
		if told.Load() < before+8 {
			t.Errorf("%s: the liar was asked %d times only", lies[i].name, told.Load()-before)
		}
	}
}

// TestNodesHoldWhatTheyFollow: a node has parts in the scopes that it anchors, follows, or
// that lead to those, and in no others; and when it is told to follow all, it catches up.
func TestNodesHoldWhatTheyFollow(t *testing.T) {
	t.Parallel()
	a := newFar(t, func(i int, cfg *Config) {
		if i == 3 {
			cfg.Follow = [][]byte{[]byte("/f/g/")}
		}
	})
	disk := vfs.NewMem()
	c := &cluster{t: t}
	for i := range 3 {
		a.start(i, vfs.NewMem())
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	a.start(3, disk)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for _, x := range []struct {
		prefix  string
		from    string
		anchors []int
	}{{"/a/", "", []int{0, 3}}, {"/f/", "", []int{0, 1}}, {"/f/g/", "/f/", []int{1}}, {"/f/g/h/", "/f/g/", []int{1}}, {"/z/", "", []int{0, 1, 2}}} {
		c.delegate(ctx, x.from, x.prefix, quorum.Crash, x.anchors...)
	}
	if _, err := c.nodes[0].Txn(ctx, putTxn("/z/1", "there"), Once{}); err != nil {
		t.Fatal(err)
	}
	holds := func(want ...string) {
		t.Helper()
		testwait.Until(t, fmt.Sprintf("the node holds %q", want), func() bool {
			var held []string
			for _, p := range a.running[3].Replicas() {
				held = append(held, string(p.prefix))
			}
			slices.Sort(held)
			return slices.Equal(held, want)
		})
	}
	holds("", "/a/", "/f/", "/f/g/", "/f/g/h/")
	if v := got(t, a.running[3].Node, "/z/1", true); v != "there" {
		t.Errorf("where it is not held, /z/1 is %q", v)
	}
	a.running[3].halt(t)
	a.change = func(_ int, cfg *Config) { cfg.Follow = [][]byte{} }
	a.start(3, disk)
	holds("", "/a/")
	if v := got(t, a.running[3].Node, "/f/g/h/1", true); v != "" {
		t.Errorf("/f/g/h/1 is %q", v)
	}
	a.running[3].halt(t)
	a.change = nil
	a.start(3, disk)
	holds("", "/a/", "/f/", "/f/g/", "/f/g/h/", "/z/")
	if v := got(t, a.running[3].Node, "/z/1", true); v != "there" {
		t.Errorf("where it is held now, /z/1 is %q", v)
	}
}

// BenchmarkForeignRead reads a key of a scope that the node does not hold, which is two
// scopes below the one that it holds: as one does again and again, and with the whole way.
func BenchmarkForeignRead(b *testing.B) {
	_, _, o := newRegions(b, quorum.BFT)
	for _, x := range []struct {
		name         string
		linearizable bool
		forget       bool
	}{{"linearizable", true, false}, {"linearizable, by two referrals", true, true}, {"cached", false, false}} {
		b.Run(x.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				if x.linearizable {
					time.Sleep(20 * time.Millisecond) // within what anchors do for non-members
				}
				if x.forget {
					o.remotes.mu.Lock()
					for _, f := range o.remotes.all {
						f.mu.Lock()
						f.knows.Forget()
						f.mu.Unlock()
					}
					o.remotes.mu.Unlock()
				}
				begin := time.Now()
				if v := got(b, o, "/b/c/1", x.linearizable); v != "first" {
					b.Fatal(v)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
		})
	}
}

// TestForeignScopesAreLookedAtMeanwhile: a node that is referred to scopes tells all the while which
// it knows, and with whom it connects.
func TestForeignScopesAreLookedAtMeanwhile(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	_, _, o := newRegions(t, quorum.BFT)
	done := make(chan struct{})
	var looking sync.WaitGroup
	defer func() { // before the node is closed, also if the test fails
		close(done)
		looking.Wait()
	}()
	for _, look := range []func(){func() { o.remotes.infos() }, func() { o.remotes.inUse() }, func() { o.ClosedTimestamp(t.Context()) }, func() { o.meetMembers(o.Replicas()...) }} {
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					look()
				}
			}
		})
	}
	for range 30 {
		for _, id := range o.remotes.ids() {
			f := o.foreign(id)
			f.mu.Lock()
			f.knows.Forget()
			f.mu.Unlock()
		}
		if v := got(t, o, "/b/c/1", true); v != "first" {
			t.Fatal(v)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _, err := o.Prove(ctx, []byte("/b/c/1"))
		if cancel(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // within what anchors do for non-members
	}
}

func (n *remoteScopes) ids() (all []aweigh.ScopeID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		all = append(all, f.id)
	}
	return all
}
