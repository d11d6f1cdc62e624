package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// busyRealm is one whose policy lets it split prefixes with two changes a second, for two epochs.
func busyRealm(t fataler, change func(*Policy)) *realm {
	return newRealm(t, func(p *Policy) {
		p.Topology = Topology{Split: ConductAct, Rate: 2, Epochs: 2, Rest: 3, Most: 2}
		if change != nil {
			change(p)
		}
	})
}

// flood fills the rest of an epoch with changes, four in a second below a path and one elsewhere, and gives the block
// that ends it.
func (r *realm) flood(path string) *Result {
	r.t.Helper()
	for range 1000 {
		if res := r.change(path, 4); res.Next != nil {
			return res
		}
	}
	r.t.Fatalf("the epoch does not end")
	return nil
}

// change makes a block with so many changes below a path, and one elsewhere, or the one that ends the epoch.
func (r *realm) change(path string, n int) *Result {
	r.t.Helper()
	all := []Mutation{r.put(fmt.Sprintf("/elsewhere/%d", r.nonce%3), "x")}
	for range n {
		all = append(all, r.put(fmt.Sprintf("%s%d", path, r.nonce%12), "x"))
	}
	return r.add(r.next(r.ballots(1), nil, r.world.sign(all...)...))
}

// floodUntil floods epochs until one ends with a scope, at most so many, and gives how many that took.
func (r *realm) floodUntil(path string, most int) (*Result, int) {
	r.t.Helper()
	for n := 1; n <= most; n++ {
		if res := r.flood(path); len(res.Founded) > 0 {
			return res, n
		}
	}
	return nil, most
}

func (r *realm) outlook() Outlook {
	r.t.Helper()
	o, err := r.state.Outlook(r.now)
	if err != nil {
		r.t.Fatalf("outlook: %v", err)
	}
	return o
}

// TestBusyPrefixesBecomeScopes: after so many epochs, with all keys, the policy in force, the anchors' trust, and a
// reason on record; and the next one only after a rest.
func TestBusyPrefixesBecomeScopes(t *testing.T) {
	r := busyRealm(t, func(p *Policy) {
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Minute, Approvers: []Approver{{Name: "x", Key: testKey(t, 77).Public(), Share: 1}}}}
	})
	r.one(r.put("/t/quiet/1", "stays"))
	r.turn()
	res, took := r.floodUntil("/t/busy/", 9)
	if res == nil || took != 2 {
		t.Fatalf("after %d epochs: %+v", took, r.outlook())
	}
	g := res.Founded[0]
	if string(g.Prefix()) != "/t/busy/" || g.Name != "" || len(g.Anchors) != 4 || g.Descent.Keys != 12 {
		t.Fatalf("founded %q %q of %d anchors, with %d keys", g.Prefix(), g.Name, len(g.Anchors), g.Descent.Keys)
	}
	want := r.epoch().Policy
	want.Topology.Split = ConductAdvise
	if g.Policy.Hash() != want.Hash() {
		t.Error("under another policy, or it splits by itself")
	}
	for i := range g.Anchors {
		if was := r.epoch().Roster.Anchors[i].Score; g.Anchors[i].Score != was {
			t.Errorf("anchor %d begins with a score of %d, and has %d", i, g.Anchors[i].Score, was)
		}
	}
	e, _, err := r.state.Lineage().Entry(g.Descent.Entry)
	if err != nil || e.Class != lineage.Delegate || !strings.Contains(e.Reason, "by itself: ") || !strings.Contains(e.Reason, "busy for 2 epochs") {
		t.Errorf("on record stands %s %q, %v", e.Class, e.Reason, err)
	}
	c := r.child(g)
	if len(c.live()) != 12 || len(r.live()) != 4 {
		t.Errorf("%d keys below, %d above", len(c.live()), len(r.live()))
	}
	fails(t, r.world, r.put("/t/busy/1", "no more"), ErrElsewhere)

	second, took := r.floodUntil("/t/next/", 9)
	if second == nil || took != 3 { // one more than it takes: the rest
		t.Fatalf("the second after %d epochs", took)
	}
	if third, _ := r.floodUntil("/t/third/", 9); third != nil {
		t.Fatalf("a third scope, of at most 2")
	}
	r.change("/t/third/", 4)
	if o := r.outlook(); o.Splits != 2 || string(o.Next) != "/t/third/" || !strings.Contains(o.Reason, "2 splits by itself") {
		t.Errorf("the outlook is %d splits, %q, %q", o.Splits, o.Next, o.Reason)
	}
}

// TestSplitsTakeAReason: nothing is split that must not be, and the outlook says why.
func TestSplitsTakeAReason(t *testing.T) {
	testshort.Skip(t)
	for name, c := range map[string]struct {
		policy func(*Policy)
		before func(*realm)
		path   string
		reason string
	}{
		"off":    {policy: func(p *Policy) { p.Topology.Split = ConductOff }, path: "/a/", reason: "topology.split off"},
		"advise": {policy: func(p *Policy) { p.Topology.Split = ConductAdvise }, path: "/a/", reason: "advise alone"},
		"quiet":  {policy: func(p *Policy) { p.Topology.Rate = 6 }, path: "/a/", reason: "no prefix has 6 changes a second"},
		"epochs": {policy: func(p *Policy) { p.Topology.Epochs = 9 }, path: "/a/", reason: "busy in 9 epochs in a row"},
		"none":   {policy: func(p *Policy) { p.Topology.Most = 0 }, path: "/a/", reason: "allows no more"},
		"partition": {policy: func(p *Policy) {
			p.Partitions = []Partition{{Prefix: []byte("/"), Num: 2, Den: 5, After: time.Hour, Gather: time.Minute, Window: 100 * time.Hour}}
		}, path: "/a/", reason: `it overlaps the partition "/"`},
		"quota": {policy: func(p *Policy) {
			p.Authors = append(p.Authors, Author{Name: "eve", Who: OneKey, Key: testKey(t, 78).Public(), Prefixes: [][]byte{[]byte("/a/b/")}, Quota: Quota{Bytes: 1}})
		}, path: "/a/", reason: `the authors of "eve" have a quota`},
		"motion": {policy: func(p *Policy) {
			p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/kept/"), Num: 3, Den: 4, Window: 10 * time.Hour}}
		}, before: func(r *realm) { r.add(r.next(nil, nil, r.world.sign(r.put("/kept/1", "x"))...)) }, path: "/a/", reason: "the end of 1 open motion"},
		"no path": {path: "a", reason: "no prefix has"},
		"above a scope": {path: "/a/", before: func(r *realm) { r.delegate(r.decision("/a/deep/", quorum.Crash, "a", "b")) },
			reason: "a scope has a prefix of"},
	} {
		t.Run(name, func(t *testing.T) {
			r := busyRealm(t, c.policy)
			if c.before != nil {
				c.before(r)
			}
			if res, _ := r.floodUntil(c.path, 5); res != nil {
				t.Fatalf("founded %q", res.Founded[0].Prefix())
			}
			r.change(c.path, 4)
			if o := r.outlook(); !strings.Contains(o.Reason, c.reason) {
				t.Errorf("the outlook says %q, want %q", o.Reason, c.reason)
			}
		})
	}
}

// TestPartedNamesStopASplit: an object lives in one scope. What fails is on record, and is tried again only after a
// rest.
func TestPartedNamesStopASplit(t *testing.T) {
	r := busyRealm(t, nil)
	r.one(r.put("/a/1", "one"))
	r.one(r.naming(Naming{Kind: Bind, Key: []byte("/a/1"), To: []byte("/b/one")}))
	r.turn()
	entries := r.state.Head().LineageSize
	if res, _ := r.floodUntil("/a/", 8); res != nil {
		t.Fatalf("founded %q", res.Founded[0].Prefix())
	}
	failed := 0
	for at := entries; at < r.state.Head().LineageSize; at++ {
		if e, _, err := r.state.Lineage().Entry(at); err != nil {
			t.Fatal(err)
		} else if e.Class == lineage.Failed && strings.Contains(e.Reason, "name one object") {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d attempts on record", failed)
	}
	r.change("/a/", 4)
	if o := r.outlook(); !strings.Contains(o.Reason, "its split failed at the start of epoch") || !strings.Contains(o.Reason, "name one object") {
		t.Errorf("the outlook says %q", o.Reason)
	}
	if res, _ := r.floodUntil("/good/", 9); res == nil || string(res.Founded[0].Prefix()) != "/good/" {
		t.Error("no other path is split off")
	}
	if r.state.Head().Delegated != 1 || r.outlook().Splits != 1 {
		t.Error("it counts as a split")
	}
}

// TestPeopleDecideFirst: where people give a prefix to a scope, the scope splits nothing by itself in that epoch.
func TestPeopleDecideFirst(t *testing.T) {
	r := busyRealm(t, func(p *Policy) { p.EpochBlocks = 8 })
	r.flood("/a/")
	for _, a := range r.g.Anchors[:3] {
		r.change("/a/", 40)
		if out := r.approve(a.Name, r.decision("/b/", quorum.Crash, "a", "b")); out.Code != Applied {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	res := r.turn()
	if len(res.Founded) != 1 || string(res.Founded[0].Prefix()) != "/b/" {
		t.Fatalf("founded %d scopes", len(res.Founded))
	}
}

// TestHeatGoesAlong: a node that starts from its store or from a snapshot splits as the others do.
func TestHeatGoesAlong(t *testing.T) {
	r := busyRealm(t, nil)
	r.flood("/a/")
	for range 5 {
		r.change("/a/", 1)
		r.change("/b/", 2)
	}
	r.now++
	b := r.block(r.world.sign(r.put("/a/3", "z")))
	r.execute(b)
	r.now++
	into, err := r.take(b.Header, 1<<20).restore()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(into, r.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.state.Outlook(r.now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Outlook(r.now); err != nil || fmt.Sprint(got) != fmt.Sprint(want) || got.Changes < 10 || len(got.Hot) == 0 {
		t.Errorf("from a snapshot %+v, %v, want %+v", got, err, want)
	}
}

// TestTopologiesAreChecked: values out of range make no policy.
func TestTopologiesAreChecked(t *testing.T) {
	for what, bend := range map[string]func(*Topology){
		"split":     func(t *Topology) { t.Split = ConductAct + 1 },
		"no rate":   func(t *Topology) { t.Rate = 0 },
		"rate":      func(t *Topology) { t.Rate = MaxSplitRate + 1 },
		"no epochs": func(t *Topology) { t.Epochs = 0 },
		"no rest":   func(t *Topology) { t.Rest = 0 },
	} {
		p := DefaultPolicy(quorum.BFT)
		bend(&p.Topology)
		if err := p.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSplitsKeepTheBalance: a genesis names no sponsors. Where the anchors that one anchor brought in would weigh more
// in the new scope than the policy permits, people must decide.
func TestSplitsKeepTheBalance(t *testing.T) {
	for name, c := range map[string]struct {
		others int // anchors that one brought in
		splits bool
	}{
		"one of five":    {1, true},
		"four of eight":  {4, false},
		"five of nine":   {5, false},
		"none of others": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := busyRealm(t, func(p *Policy) { p.Topology.Split = ConductAdvise })
			e := *r.epoch()
			l, err := r.state.Ledger()
			if err != nil {
				t.Fatal(err)
			}
			child := e.splitChild([]byte("/a/"), &l)
			if len(child.Anchors) != 4 {
				t.Fatalf("%d anchors", len(child.Anchors))
			}
			p := e.Policy.Trust
			for i := range c.others {
				a := Anchor{Name: fmt.Sprint("other", i), Key: testKey(t, byte(100+i)).Public(), Score: 500_000}
				l, _ = l.ApplyExplained(p, trust.Evidence{Kind: trust.Admitted, Anchor: a.Key.ID(), Sponsor: e.Roster.Anchors[0].Key.ID(), Epoch: 0, Height: 1, Proof: aweigh.Hash{1}})
				child.Anchors = append(child.Anchors, a)
			}
			slices.SortFunc(child.Anchors, compareIDs)
			if err := child.keepsBalance(&e, &l); (err == nil) != c.splits || err != nil && !strings.Contains(err.Error(), "brought in would weigh") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestColdKeysEvictNoStreak: keys that come first in each epoch fill all counters, and a path that was busy before is
// still known to have been.
func TestColdKeysEvictNoStreak(t *testing.T) {
	r := busyRealm(t, nil)
	r.turn()
	for n := range 4 {
		var cold []Mutation
		for i := range 2 * heatCounters {
			cold = append(cold, r.put(fmt.Sprintf("cold%d-%d", n, i), "x"))
		}
		r.add(r.next(r.ballots(1), nil, r.world.sign(cold...)...))
		if res := r.flood("/a/"); len(res.Founded) > 0 {
			return
		}
	}
	t.Errorf("nothing was split: %+v", r.outlook())
}

// TestLiarsFoundNoScopes: anchors that were proven to lie are in no scope that a split founds, and too few found none,
// nor where the weights stay as they were.
func TestLiarsFoundNoScopes(t *testing.T) {
	r := busyRealm(t, func(p *Policy) { p.Topology.Split = ConductAdvise })
	e := *r.epoch()
	honest, err := r.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	l, _ := honest.ApplyExplained(e.Policy.Trust, trust.Evidence{Kind: trust.Equivocated, Anchor: e.Roster.Anchors[1].Key.ID(), Epoch: 0, Height: 1, Proof: aweigh.Hash{1}})
	c := e.splitChild([]byte("/a/"), &l)
	if len(c.Anchors) != 3 {
		t.Errorf("%d anchors, the liar among them", len(c.Anchors))
	}
	if err := c.keepsBalance(&e, &l); err == nil || !strings.Contains(err.Error(), "none could fail") {
		t.Errorf("three found a scope: %v", err)
	}
	c.Anchors = c.Anchors[:1]
	if err := c.keepsBalance(&e, &l); err == nil || !strings.Contains(err.Error(), "none could fail") {
		t.Errorf("one founds a scope: %v", err)
	}
	all := e.splitChild([]byte("/a/"), &honest)
	if err := all.keepsBalance(&e, &l); err == nil || !strings.Contains(err.Error(), "was proven to lie") {
		t.Errorf("a scope is founded while a liar weighs something: %v", err)
	}
	if err := all.keepsBalance(&e, &honest); err != nil {
		t.Errorf("four honest ones found none: %v", err)
	}
}
