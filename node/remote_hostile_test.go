package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestHostileQuestionsAreRefused: what no honest node asks is refused, within what the
// peer may make an anchor do.
func TestHostileQuestionsAreRefused(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	c, _, _ := newRegions(t, quorum.BFT)
	p, err := c.nodes[0].In("/b/")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	big := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 8 {
		if _, err := c.nodes[0].Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: fmt.Append(nil, "/b/big/", i), Value: big}}}, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	all := func(n int, r *scope.Range) (ops []scope.Op) {
		for range n {
			ops = append(ops, scope.Op{Kind: scope.OpRange, Key: []byte("/b/big/"), End: []byte("/b/big0"), Range: r})
		}
		return ops
	}
	look := func(t scope.Txn) referral.Question {
		return referral.Question{Kind: referral.AskLook, Body: canon.Encode(t)}
	}
	for name, ask := range map[string]referral.Question{
		"nothing":                     {},
		"no kind that there is":       {Kind: 99},
		"no content":                  {Kind: referral.AskLook},
		"a transaction of none":       look(scope.Txn{Success: []scope.Op{{Kind: scope.OpTxn}}}),
		"a transaction within":        look(scope.Txn{Failure: []scope.Op{{Kind: scope.OpTxn, Txn: &scope.Txn{Success: putTxn("/b/1", "x").Success}}}}),
		"a write":                     look(putTxn("/b/1", "x")),
		"no key":                      look(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange}}}),
		"keys of the parent":          look(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/a")}}}),
		"keys beyond":                 look(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/b/"), End: []byte{0}}}}),
		"many operations":             look(scope.Txn{Success: all(129, nil)}),
		"more than fits":              look(scope.Txn{Success: all(1, nil)}),
		"more than fits, bounded":     look(scope.Txn{Success: all(1, &scope.Range{MinMod: 1, Limit: 1})}),
		"more than fits, in compares": look(scope.Txn{Compare: []scope.Compare{{Target: scope.OnValue, Relation: scope.Greater, Key: []byte("/b/big/"), End: []byte("/b/big0")}}}),
		"one key again and again":     look(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/b/big/1")}, {Kind: scope.OpRange, Key: []byte("/b/big/1")}, {Kind: scope.OpRange, Key: []byte("/b/big/1")}, {Kind: scope.OpRange, Key: []byte("/b/big/1")}, {Kind: scope.OpRange, Key: []byte("/b/big/1")}, {Kind: scope.OpRange, Key: []byte("/b/big/1")}}}),
		"a name of the parent":        {Kind: referral.AskResolve, Body: canon.Encode(referral.Name{Key: []byte("/a")})},
		"a history without end":       {Kind: referral.AskHistory, Body: canon.Encode(foreignHistory{Key: []byte("/b/1"), Limit: math.MaxInt64})},
		"a revision of the future":    {Kind: referral.AskLook, At: 1 << 62, Body: canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/b/1")}}})},
		"no mutation":                 {Kind: referral.AskOutcome, Body: []byte("?")},
		"a bundle that is none":       {Kind: referral.AskSubmit, Body: []byte("?")},
		"a verb that is none":         {Kind: referral.AskJudge, Body: canon.Encode(foreignQuery{Verb: "\x00", Key: []byte("/b/1")})},
		"a long question":             {Kind: referral.AskProve, Body: make([]byte, foreignQuestion+1)},
	} {
		raw, err := p.serveForeign(ctx, "stranger", ask)
		var a referral.Answer
		if err == nil {
			err = canon.Decode(raw, &a)
		}
		if err == nil && a.Failure == "" {
			t.Errorf("%s is answered with %d bytes", name, len(a.Body))
		}
		for errors.Is(err, machine.ErrBusy) {
			time.Sleep(time.Second) // what a non-member may ask for comes with time
			_, err = p.serveForeign(ctx, "stranger", ask)
		}
	}
}

// FuzzForeign: no question makes an anchor fail.
func FuzzForeign(f *testing.F) {
	c := startCluster(f, 1, quorum.Crash)
	ctx := context.Background()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/a", "1"), Once{}); err != nil {
		f.Fatal(err)
	}
	for kind := range uint8(10) {
		f.Add(kind, int64(0), []byte("/a"))
		f.Add(kind, int64(1), canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpTxn}}}))
		f.Add(kind, int64(-1), canon.Encode(scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/"), End: []byte{0}}}}))
		f.Add(kind, int64(2), canon.Encode(referral.Name{Key: []byte("/a"), Version: 1}))
	}
	f.Fuzz(func(t *testing.T, kind uint8, at int64, body []byte) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		p := c.nodes[0].root
		q, err := readInquiry(&referral.Question{Kind: kind, At: at, Body: body})
		if err == nil {
			err = p.refusesInquiry(p.of.Peer(), &q)
		}
		if err == nil {
			err = p.answerForeign(ctx, p.of.Peer(), &q, new(referral.Answer))
		}
		if err == nil && kind == 0 {
			t.Error("no question is answered")
		}
	})
}

// TestFirstQuestionsFindTheScope: whatever a node that knows of no scope is asked first, it
// finds the scope that decides, and not what a scope above has kept of the key.
func TestFirstQuestionsFindTheScope(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	for name, ask := range map[string]func(ctx context.Context, o *Node) (string, error){
		"resolve": func(ctx context.Context, o *Node) (string, error) {
			r, _, err := o.Resolve(ctx, []byte("/b/c/1"), 0, true)
			return string(r.Kv.Value), err
		},
		"prove": func(ctx context.Context, o *Node) (string, error) {
			p, _, err := o.Prove(ctx, []byte("/b/c/1"))
			if err != nil {
				return "", err
			}
			return string(p.Kv.Value), nil
		},
		"history": func(ctx context.Context, o *Node) (string, error) {
			l, _, err := o.Lineage(ctx, []byte("/b/c/1"), 10)
			return fmt.Sprint(len(l.Entries)), err
		},
		"look": func(ctx context.Context, o *Node) (string, error) {
			l, err := o.Look(ctx, &scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte("/b/c/1")}}}, true)
			if err != nil || len(l.Responses[0].Range.Kvs) != 1 {
				return "", err
			}
			return string(l.Responses[0].Range.Kvs[0].Value), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, o := newRegions(t, quorum.BFT)
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			defer cancel()
			if r, err := c.nodes[0].Txn(ctx, putTxn("/b/c/1", "second"), Once{}); err != nil || r.Code != scope.Applied {
				t.Fatal(r, err)
			}
			want := "second"
			if name == "history" {
				want = "2" // what was taken over, and the write
			}
			if got, err := ask(ctx, o); err != nil || got != want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestForeignReadsNameTheirRevision: what was read as of the revision that an answer names
// is what it says, while clients write.
func TestForeignReadsNameTheirRevision(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var writing sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if _, err := c.nodes[w].Txn(ctx, putTxn(fmt.Sprint("/b/hot/", w), fmt.Sprint(i)), Once{}); err != nil {
					return
				}
				time.Sleep(2 * time.Millisecond) // else a slow machine's reads would find more versions than they may look at
			}
		})
	}
	key, end := []byte("/b/hot/"), []byte("/b/hot0")
	last := int64(0)
	for range testshort.Cases(20, 60, 60) {
		res, head, err := o.Range(ctx, key, end, scope.Range{}, true)
		if err != nil {
			t.Fatal(err)
		}
		if head.Revision < last {
			t.Fatalf("revision %d after %d", head.Revision, last)
		}
		last = head.Revision
		again, _, err := c.nodes[0].Range(ctx, key, end, scope.Range{Revision: head.Revision}, true)
		if err != nil {
			t.Fatal(err)
		}
		// What was read may be later than that, but nothing up to there is missing.
		for _, was := range again.Kvs {
			for _, kv := range res.Kvs {
				if string(kv.Key) == string(was.Key) && kv.ModRevision < was.ModRevision {
					t.Fatalf("%s as of %d, where revision %d is named", kv.Key, kv.ModRevision, head.Revision)
				}
			}
		}
		if len(res.Kvs) < len(again.Kvs) {
			t.Fatalf("%d keys, and %d as of the revision that is named", len(res.Kvs), len(again.Kvs))
		}
		if res, _, err := o.Range(ctx, key, end, scope.Range{Revision: head.Revision}, true); err != nil || len(res.Kvs) != len(again.Kvs) {
			t.Fatalf("as of the revision that was named: %d keys, %v", len(res.Kvs), err)
		}
	}
	close(done)
	writing.Wait()
}

// TestLiarsMoveNoClocks: a liar that says the truth as of another moment, or claims an epoch
// that it does not prove, neither moves what an answer is as of nor holds it up.
func TestLiarsMoveNoClocks(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	c, a, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	got(t, o, "/a", true)
	at, err := o.awaitDecider(ctx, o.root.Delegations()[0])
	if err != nil || at.remote == nil {
		t.Fatal(at, err)
	}
	f := at.remote
	a.running[3].halt(t)
	a.running[3] = nil
	lie := func(_ referral.Question, x referral.Answer) ([]byte, bool) { return canon.Encode(x), true }
	var mu sync.Mutex
	a.liar(3, func(ask referral.Question, x referral.Answer) ([]byte, bool) {
		mu.Lock()
		defer mu.Unlock()
		return lie(ask, x)
	}, c.nodes[0])
	for name, next := range map[string]func(referral.Question, referral.Answer) ([]byte, bool){
		"the truth, as of before all time": func(_ referral.Question, x referral.Answer) ([]byte, bool) {
			x.Revision, x.Height, x.Time = -1, 0, math.MaxInt64
			return canon.Encode(x), true
		},
		"an epoch that it does not prove": func(_ referral.Question, x referral.Answer) ([]byte, bool) {
			x.Epoch++
			return canon.Encode(x), true
		},
	} {
		mu.Lock()
		lie = next
		mu.Unlock()
		quickest := time.Hour // the liar would delay all of them
		for k := range 5 {
			f.mu.Lock()
			f.askFirst("n3")
			f.mu.Unlock()
			r, err := o.Txn(ctx, putTxn("/b/1", fmt.Sprint(name, k)), Once{})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			res, head, err := o.Range(ctx, []byte("/b/1"), nil, scope.Range{}, true)
			if err != nil || string(res.Kvs[0].Value) != fmt.Sprint(name, k) {
				t.Fatalf("%s: %v, %v", name, res, err)
			}
			if head.Revision < r.Revision || head.Height == 0 || head.Time > aweigh.InstantOf(time.Now().Add(time.Second)) {
				t.Errorf("%s: read as of revision %d, block %d, %v after a write at %d", name, head.Revision, head.Height, head.Time.Time(), r.Revision)
			}
			quickest = min(quickest, time.Since(begin))
		}
		if quickest > 4*referral.HedgeAfter {
			t.Errorf("%s: the quickest answer took %v", name, quickest)
		}
	}
}

// TestForeignWritesAreDoneOnce: a write that was done in a scope that the node does not hold
// is not done again in the one that its key went to, though it is asked for again.
func TestForeignWritesAreDoneOnce(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	c, _, o := newRegions(t, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	once := o.root.filled(Once{})
	if r, err := o.Txn(ctx, putTxn("/b/x/1", "mine"), once); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	if r, err := c.nodes[0].Txn(ctx, putTxn("/b/x/1", "another's, later"), Once{}); err != nil || r.Code != scope.Applied {
		t.Fatal(r, err)
	}
	c.delegate(ctx, "/b/", "/b/x/", quorum.BFT, 0, 1, 2, 3)
	if v := got(t, o, "/b/x/1", true); v != "another's, later" {
		t.Fatalf("/b/x/1 is %q", v)
	}
	if r, err := o.Txn(ctx, putTxn("/b/x/1", "mine"), once); err != nil || r.Code != scope.Duplicate {
		t.Errorf("asked for again: %+v, %v", r, err)
	}
	if v := got(t, c.nodes[0], "/b/x/1", true); v != "another's, later" {
		t.Errorf("/b/x/1 is %q in the end", v)
	}
}

// TestAnchorsHoldTheWayToTheirSeats: an anchor holds its scope, and those above, whatever it
// follows.
func TestAnchorsHoldTheWayToTheirSeats(t *testing.T) {
	a := newFar(t, nil)
	disk := vfs.NewMem()
	c := &cluster{t: t}
	for i := range 3 {
		a.start(i, vfs.NewMem())
		c.nodes = append(c.nodes, a.running[i].Node)
	}
	a.start(3, disk)
	c.nodes = append(c.nodes, a.running[3].Node)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/f/", quorum.Crash, 0, 1)
	c.delegate(ctx, "/f/", "/f/g/", quorum.Crash, 3)
	a.running[3].halt(t)
	a.change = func(_ int, cfg *Config) { cfg.Follow = [][]byte{} }
	a.start(3, disk)
	if r, err := a.running[3].Txn(ctx, putTxn("/f/g/1", "there"), Once{}); err != nil || r.Code != scope.Applied {
		t.Error(r, err)
	}
	if _, err := a.running[3].In("/f/"); err != nil {
		t.Error(err)
	}
}

// TestHostileScopesAnswerWhatWasAsked: though all who answer for a scope lie, what they say is about the keys that were
// asked for, and ends.
func TestHostileScopesAnswerWhatWasAsked(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	kv := func(keys ...string) (all []scope.KeyValue) {
		for _, k := range keys {
			all = append(all, scope.KeyValue{Key: []byte(k), Version: 1})
		}
		return all
	}
	all := scope.Range{}
	for what, x := range map[string]struct {
		asked scope.Range
		said  referral.Looked
		well  bool
	}{
		"some":                 {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1", "/b/2"), Count: 2}}}}, true},
		"none":                 {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange}}}, true},
		"a count":              {scope.Range{CountOnly: true}, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Count: 9}}}}, true},
		"as many as asked for": {scope.Range{Limit: 1}, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1"), Count: 2, More: true}}}}, true},
		"no response":          {all, referral.Looked{}, false},
		"two responses":        {all, referral.Looked{Responses: make([]scope.Response, 2)}, false},
		"another kind":         {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpPut}}}, false},
		"keys elsewhere":       {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/c"), Count: 1}}}}, false},
		"disorder":             {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/2", "/b/1"), Count: 2}}}}, false},
		"a key twice":          {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1", "/b/1"), Count: 2}}}}, false},
		"too many":             {scope.Range{Limit: 1}, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1", "/b/2"), Count: 2}}}}, false},
		"more after none":      {scope.Range{Limit: 1}, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{More: true}}}}, false},
		"more after all":       {all, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1"), Count: 1, More: true}}}}, false},
		"keys for a count":     {scope.Range{CountOnly: true}, referral.Looked{Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: kv("/b/1"), Count: 1}}}}, false},
	} {
		op := scope.Op{Kind: scope.OpRange, Key: []byte("/b/"), End: []byte("/b0"), Range: &x.asked}
		x.said.Succeeded = true
		if err := x.said.Wrong(&scope.Txn{Success: []scope.Op{op}}); (err == nil) != x.well {
			t.Errorf("%s: %v", what, err)
		}
	}
	if (&referral.Looked{}).Wrong(&scope.Txn{}) == nil {
		t.Error("a transaction without compares failed them")
	}

	c, a, o := newRegions(t, quorum.Crash)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	if _, err := o.Latest(ctx, []byte("/"), []byte("0"), true); err != nil { // by referrals that it did not know
		t.Fatal(err)
	}
	a.running[3].halt(t)
	a.running[3] = nil
	a.liar(3, func(_ referral.Question, x referral.Answer) ([]byte, bool) {
		x.Body = canon.Encode(referral.Looked{Succeeded: true, Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{More: true}}}})
		return canon.Encode(x), true
	}, c.nodes[0])
	var f *remoteScope
	for _, id := range o.remotes.ids() {
		if x := o.foreign(id); string(x.genesis.Prefix()) == "/b/c/" {
			f = x
		}
	}
	for refused := false; !refused; { // until the liar is who answers
		f.mu.Lock()
		f.askFirst("n3")
		f.knows.Forget()
		f.mu.Unlock()
		p, err := o.Page(ctx, []byte("/b/c/"), []byte("/b/c0"), scope.Range{Limit: 10}, 1<<20, false)
		if refused = errors.Is(err, machine.ErrFrame); !refused && (err != nil || p.More) {
			t.Fatalf("%d keys, more %v, %v", len(p.Kvs), p.More, err)
		}
	}
}

// askFirst makes an anchor the one that is asked first. f.mu is held.
func (f *remoteScope) askFirst(name string) {
	for _, x := range f.knows.Epoch().Roster.Anchors {
		took := time.Second
		if x.Name == name {
			took = time.Millisecond
		}
		f.knows.Expect(x.Key.ID(), took)
	}
}
