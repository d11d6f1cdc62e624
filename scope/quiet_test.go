package scope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// quietRealm is one that split off /t/, and the scope of that. Both let it go home after a minute.
func quietRealm(t fataler, change func(*Policy)) (above, c *realm) {
	t.Helper()
	above = busyRealm(t, func(p *Policy) {
		p.Topology.Fold, p.Topology.Quiet = ConductAct, time.Minute
		if change != nil {
			change(p)
		}
	})
	res, _ := above.floodUntil("/t/", 9)
	if res == nil {
		t.Fatalf("nothing is split off: %+v", above.outlook())
	}
	return above, above.realmBelow(res.Founded[0])
}

func (r *realm) realmBelow(g Genesis) *realm {
	return &realm{world: r.child(g), keys: r.keys, names: r.names, away: r.away}
}

// grows lets the time pass until a scope is quiet by the clock, and gives the block that ends the epoch then.
func (r *realm) grows() *Result {
	r.t.Helper()
	at, err := r.state.ClockEnds()
	if err != nil || at == 0 {
		r.t.Fatalf("the clock does not end the epoch: %v", err)
	}
	r.now = max(r.now, at.Add(-time.Second))
	return r.add(r.next(nil, nil))
}

// asksAbove shows the scope above that this one is quiet.
func (r *realm) asksAbove(c *realm) Outcome {
	r.t.Helper()
	prefix := string(c.g.Prefix())
	r.now = max(r.now, c.now)
	h := r.homing(prefix)
	if h == nil {
		h = &Homing{Prefix: c.g.Prefix(), Child: c.g.Hash(), at: c.g.Hash()}
	}
	b, err := c.source().Next(h, 1<<20)
	if err != nil || b == nil {
		r.t.Fatalf("nothing to show: %v", err)
	}
	return r.brings("a", b)
}

func (r *realm) order(prefix string) *Revocation {
	r.t.Helper()
	d, _, ok, err := r.state.Delegated([]byte(prefix))
	if err != nil || !ok {
		r.t.Fatalf("%q is not delegated: %v", prefix, err)
	}
	return d.Revocation
}

// TestQuietScopesComeHome: by the clock alone, in an idle scope, and with all that they hold. The prefix can split off
// again, after a rest.
func TestQuietScopesComeHome(t *testing.T) {
	above, c := quietRealm(t, nil)
	before := c.live()
	if at, err := c.state.ClockEnds(); err != nil || at != c.g.Time.Add(time.Minute) {
		t.Fatalf("the clock ends the epoch at %d, want a minute after %d; %v", at, c.g.Time, err)
	}
	for _, early := range []time.Duration{time.Second, 59 * time.Second} {
		if due, err := c.state.Due(c.g.Time.Add(early)); due || err != nil {
			t.Fatalf("an epoch that ends after %v: %v", early, err)
		}
	}
	if h := above.homing("/t/"); h == nil || !h.Order.IsZero() {
		t.Fatalf("it comes home already, or never can: %+v", h)
	}
	if res := c.grows(); res.Next == nil || !res.Next.Quiet || !res.Terms.Quiet {
		t.Fatalf("after a minute: %+v", res.Next)
	}
	if due, err := c.state.Due(c.now.Add(time.Hour)); due || err != nil {
		t.Fatalf("it asks again: %v", err)
	}
	if out := above.asksAbove(c); out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	if above.order("/t/") != nil {
		t.Fatal("an order in the middle of an epoch")
	}
	res := above.add(above.next(nil, nil))
	order := above.order("/t/")
	if res.Next == nil || order == nil || !order.Folds() {
		t.Fatalf("no order: %+v", order)
	}
	e, _, err := above.state.Lineage().Entry(order.Entry)
	if err != nil || !strings.Contains(e.Reason, "by itself: the scope is quiet, at the start of its epoch 1") {
		t.Errorf("on record stands %s %q, %v", e.Class, e.Reason, err)
	}
	if o := above.outlook(); o.Splits != 1 || o.Moved != res.Next.Number {
		t.Errorf("%d splits, the last move before epoch %d", o.Splits, o.Moved)
	}
	c.now = max(c.now, above.now)
	c.closes(order)
	if c.epoch().Quiet {
		t.Error("the last epoch asks as well")
	}
	above.now = max(above.now, c.now).Add(time.Minute)
	above.home("/t/", c.source(), 1<<20)
	above.checkDigest()
	if after := above.live(); len(before) != 12 || len(after) != len(before)+3 {
		t.Errorf("%d keys came home, of %d", len(after)-3, len(before))
	}
	if o := above.outlook(); o.Splits != 0 {
		t.Errorf("%d splits count", o.Splits)
	}
	res, took := above.floodUntil("/t/", 9)
	if res == nil || took != 2 {
		t.Fatalf("it does not split off again, or after %d epochs", took)
	}
	if g := res.Founded[0]; g.Hash() == c.g.Hash() || string(g.Prefix()) != "/t/" {
		t.Errorf("founded %q", g.Prefix())
	}
}

// TestQuietTakesTime: a scope that is used is not quiet, and what ends its epochs shows that.
func TestQuietTakesTime(t *testing.T) {
	_, c := quietRealm(t, func(p *Policy) { p.EpochBlocks = 5 })
	write := func(n int) (res *Result) {
		for range n {
			res = c.add(c.next(c.ballots(1), nil, c.world.sign(c.put("/t/1", "x"))...))
		}
		return res
	}
	for !warmed(c) { // more than half of what is busy
	}
	if warm := c.epoch().Time; warm.Add(time.Minute) != the(c.state.ClockEnds()) {
		t.Fatalf("an epoch that was not quiet ended at %d, and the next is to end at %d", warm, the(c.state.ClockEnds()))
	}
	write(3)
	begin := c.epoch().Time
	c.now = begin.Add(90 * time.Second) // 3 changes in 90 s
	if due, err := c.state.Due(c.now); !due || err != nil {
		t.Fatalf("it is not quiet: %v", err)
	}
	if res := c.add(c.next(nil, nil)); res.Next == nil || !res.Next.Quiet {
		t.Fatalf("it does not ask: %+v", res.Next)
	}
	for !warmed(c) {
	}
	if c.epoch().Quiet {
		t.Error("it asks still, and is used again")
	}

	// Many changes at once keep an epoch from being quiet for as long as they take at half the rate.
	before := c.epoch()
	all := make([]Mutation, 200)
	for i := range all {
		all[i] = c.put("/t/2", "x")
	}
	c.add(c.next(nil, nil, c.world.sign(all...)...))
	if at := the(c.state.ClockEnds()); at != before.Time.Add(200_500*time.Millisecond) {
		t.Errorf("200 changes: quiet from %v on, after the epoch's start", at.Sub(before.Time))
	}
}

func the[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestWhatStays: a scope does not ask, or is not taken back, where that would undo what people arranged.
func TestWhatStays(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*Policy)
		below  func(above, c *realm) // before it is quiet
		asks   bool
		above  func(above, c *realm) // once it asks
		reason string
		taken  bool // the step is, and no order follows
	}{
		"as it should": {asks: true},
		"below it says what it would do": {below: func(_, c *realm) {
			c.decides(c.policy(func(p *Policy) { p.Topology.Fold = ConductAdvise }))
		}},
		"a motion is open below": {policy: func(p *Policy) {
			p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/t/kept/"), Num: 3, Den: 4, Window: 10 * time.Hour}}
		}, below: func(_, c *realm) { c.add(c.next(nil, nil, c.world.sign(c.put("/t/kept/1", "x"))...)) }},
		"it has delegated": {below: func(above, c *realm) { c.delegate(above.decision("/t/b/", quorum.BFT, "a", "b", "c", "d")) }},
		"above it says what it would do": {asks: true, above: func(r, _ *realm) {
			r.decides(r.policy(func(p *Policy) { p.Topology.Fold = ConductAdvise }))
		}, reason: "topology.fold advise"},
		"another policy below": {asks: true, below: func(_, c *realm) {
			c.decides(c.policy(func(p *Policy) { p.EpochBlocks++ }))
		}, reason: "another than that of the scope above", taken: true},
		"another anchor below": {asks: true, above: func(r, _ *realm) { r.decides(Decision{Kind: Evict, Subject: r.names["d"].Public().ID()}) },
			reason: "d is no anchor of the scope above", taken: true},
		"an anchor was evicted below": {asks: true, below: func(_, c *realm) { c.decides(Decision{Kind: Evict, Subject: c.names["d"].Public().ID()}) },
			reason: "d is an anchor of the scope above alone", taken: true},
		"ordered to others": {asks: true, above: func(r, c *realm) {
			d := r.decision("/t/", quorum.BFT, "a", "b", "c", "d")
			d.Kind, d.Child.Policy = Revoke, c.epoch().Policy
			r.delegate(d)
		}, reason: "no such scope was ordered to come home"},
	} {
		t.Run(name, func(t *testing.T) {
			above, below := quietRealm(t, c.policy)
			if c.below != nil {
				c.below(above, below)
				below.now = below.now.Add(time.Hour)
				for due := true; due && !below.epoch().Quiet; { // what was decided takes effect
					below.add(below.next(nil, nil))
					due = the(below.state.Due(below.now))
				}
			} else {
				below.grows()
			}
			if below.epoch().Quiet != c.asks {
				t.Fatalf("it asks: %t", below.epoch().Quiet)
			}
			if !c.asks {
				return
			}
			if c.above != nil {
				above.now = max(above.now, below.now)
				c.above(above, below)
			}
			d, _, _, err := above.state.Delegated([]byte("/t/"))
			if err != nil {
				t.Fatal(err)
			}
			if foreseen := above.epoch().TakesBack(&d, below.epoch()); (foreseen != nil) != (c.reason != "") {
				t.Errorf("a node expects %v", foreseen)
			}
			out := above.asksAbove(below)
			if (out.Code == Applied) != (c.reason == "" || c.taken) || !c.taken && !strings.Contains(out.Reason, c.reason) {
				t.Fatalf("%s %s", out.Code, out.Reason)
			}
			above.turn()
			if order := above.order("/t/"); (order != nil && order.Folds()) != (c.reason == "") {
				t.Errorf("the order is %+v", order)
			}
		})
	}
}

// TestOneMoveAtATime: no scope is ordered to come home in an epoch whose end has something else to do.
func TestOneMoveAtATime(t *testing.T) {
	above, c := quietRealm(t, nil)
	c.grows()
	above.now = max(above.now, c.now)
	d := above.decision("/w/", quorum.Crash, "a", "b")
	above.approve("a", d)
	above.approve("b", d)
	approval, err := Sign(above.names["c"], above.g.Policy.Limits, above.mutation(Govern, d))
	if err != nil {
		t.Fatal(err)
	}
	h := above.homing("/t/")
	b, err := c.source().Next(h, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	step, err := SignReserving(0, above.names["a"], above.g.Policy.Limits, above.mutation(Bring, b))
	if err != nil {
		t.Fatal(err)
	}
	res := above.add(above.next(nil, nil, approval, step))
	if out := res.Outcomes; len(out) != 2 || out[0].Code != Applied || !strings.Contains(out[1].Reason, "a decision waits") {
		t.Fatalf("%+v", out)
	}
	above.add(above.next(nil, nil))
	if out := above.asksAbove(c); out.Code != Applied {
		t.Errorf("afterwards: %s %s", out.Code, out.Reason)
	}
}

// TestPeopleTakeBackThemselves: what a decision founded stays until a decision ends it, however quiet it is.
func TestPeopleTakeBackThemselves(t *testing.T) {
	above := busyRealm(t, func(p *Policy) {
		p.Topology.Fold, p.Topology.Quiet, p.Children.Notice = ConductAct, time.Minute, time.Second
	})
	d := above.decision("/p/", quorum.BFT, "a", "b", "c", "d")
	d.Child.Policy = above.epoch().Policy
	c := above.realmBelow(above.delegate(d).Founded[0])
	c.grows()
	if !c.epoch().Quiet {
		t.Fatal("it does not ask")
	}
	if out := above.asksAbove(c); out.Code != Failed || !strings.Contains(out.Reason, "a decision founded it") {
		t.Errorf("%s %s", out.Code, out.Reason)
	}
	if above.homing("/p/") != nil {
		t.Error("nodes try to bring it home")
	}
}

// TestTooMuchStays: a scope that holds more than can go home does not ask, and does not end epochs for that. It asks as
// an epoch ends otherwise, once it holds less.
func TestTooMuchStays(t *testing.T) {
	for name, c := range map[string]struct{ fill, empty func(*realm) }{
		"too many keys": {func(c *realm) {
			bounds := *c.state.bounds
			bounds.HandKeys = 3
			c.state.bounds = &bounds
		}, func(c *realm) {
			bounds := *c.state.bounds
			bounds.HandKeys = 100
			c.state.bounds = &bounds
		}},
		"a value that no mutation above can bring": {func(c *realm) { c.one(c.put("/t/1", strings.Repeat("v", 70_000))) },
			func(c *realm) { c.one(c.put("/t/1", "v")) }},
	} {
		t.Run(name, func(t *testing.T) {
			_, r := quietRealm(t, func(p *Policy) { p.Limits.ValueBytes, p.Limits.MutationBytes, p.EpochTime = 78_000, 80_000, 0 })
			c.fill(r)
			if res := r.grows(); res.Next == nil || res.Next.Quiet {
				t.Fatalf("it asks: %+v", res.Next)
			}
			if at := the(r.state.ClockEnds()); at != 0 {
				t.Errorf("the clock ends another epoch after %v", at.Sub(r.now))
			}
			c.empty(r)
			r.now = r.now.Add(time.Hour)
			if res := r.turn(); !res.Next.Quiet {
				t.Error("it does not ask")
			}
		})
	}
}

// TestLargeValuesComeHome: what load alone sends home can be brought within the limits of both policies, value by
// value.
func TestLargeValuesComeHome(t *testing.T) {
	above, c := quietRealm(t, nil)
	lim := &c.epoch().Policy.Limits
	c.one(c.put("/t/1", strings.Repeat("v", 500_000)))
	c.one(c.put("/t/2", strings.Repeat("w", lim.ValueBytes)))
	c.grows()
	above.asksAbove(c)
	above.add(above.next(nil, nil))
	c.now = max(c.now, above.now)
	c.closes(above.order("/t/"))
	above.now = max(above.now, c.now).Add(time.Minute)
	above.home("/t/", c.source(), lim.BringBytes())
	if v := above.live()["/t/2"]; len(v.Value) != lim.ValueBytes {
		t.Errorf("a value came home with %d bytes", len(v.Value))
	}
}

// TestQuietIsMeasuredFirst: a policy that lets scopes go home does not send a busy one at once, of which nothing was
// measured.
func TestQuietIsMeasuredFirst(t *testing.T) {
	_, c := quietRealm(t, nil)
	c.decides(c.policy(func(p *Policy) { p.Topology.Fold = ConductOff }))
	c.now = c.now.Add(time.Hour)
	c.decides(c.policy(func(p *Policy) { p.Topology.Fold = ConductAct }))
	if at := the(c.state.ClockEnds()); at != c.epoch().Time.Add(time.Minute) {
		t.Errorf("it is quiet %v after it began to measure", at.Sub(c.epoch().Time))
	}
	topology := &Topology{Rate: 1, Quiet: time.Minute}
	for _, changes := range []uint64{1 << 30, 1 << 33, 1 << 63} {
		if at := topology.quietFrom(&heat{Changes: changes}, c.epoch(), c.g.Time); at < c.epoch().Time.Add(20*365*24*time.Hour) {
			t.Errorf("quiet %v after %d changes", at.Sub(c.epoch().Time), changes)
		}
	}
}

// TestOtherDecisionsComeFirst: an order that a scope would give by itself is dropped where a decision takes effect with
// it, which came later in the same block. The scope below can ask again.
func TestOtherDecisionsComeFirst(t *testing.T) {
	above, c := quietRealm(t, nil)
	c.grows()
	above.now = max(above.now, c.now)
	d := above.policy(func(p *Policy) { p.EpochBlocks++ })
	above.approve("a", d)
	above.approve("b", d)
	approval, err := Sign(above.names["c"], above.g.Policy.Limits, above.mutation(Govern, d))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.source().Next(above.homing("/t/"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	step, err := SignReserving(0, above.names["a"], above.g.Policy.Limits, above.mutation(Bring, b))
	if err != nil {
		t.Fatal(err)
	}
	if out := above.add(above.next(nil, nil, step, approval)).Outcomes; len(out) != 2 || out[0].Code != Applied || out[1].Code != Applied {
		t.Fatalf("%+v", out)
	}
	above.turn()
	if order := above.order("/t/"); order != nil {
		t.Fatalf("it is ordered home under another policy: %+v", order)
	}
	above.decides(above.policy(func(p *Policy) { p.EpochBlocks-- }))
	if out := above.asksAbove(c); out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	above.turn()
	if above.order("/t/") == nil {
		t.Error("it cannot ask again")
	}
}

// TestMovesDoNotFight: however the load moves, a path is split off and comes home once in its quiet time and its busy
// epochs at most, and no two moves of the scope begin with one epoch.
func TestMovesDoNotFight(t *testing.T) {
	for seed := range testshort.Cases[uint64](1, 4, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			above, c := quietRealm(t, func(p *Policy) { p.Topology.Most = 1 })
			moved := map[aweigh.Epoch]bool{}
			for range 4 {
				for i := range 2 + seed { // it is used again before it would be quiet
					c.now = c.now.Add(time.Duration(25+2*i) * time.Second)
					for c.add(c.next(nil, nil)).Next != nil {
					}
					for !warmed(c) {
					}
				}
				if c.epoch().Quiet {
					t.Fatal("it asks, and was never quiet for a minute")
				}
				c.grows()
				above.asksAbove(c)
				res := above.add(above.next(nil, nil))
				note := func(e *Epoch) {
					if moved[e.Number] {
						t.Errorf("two moves begin with epoch %d", e.Number)
					}
					moved[e.Number] = true
				}
				note(res.Next)
				order := above.order("/t/")
				c.now = max(c.now, above.now)
				c.closes(order)
				above.now = max(above.now, c.now).Add(time.Minute)
				above.home("/t/", c.source(), 1<<20)
				begin := above.epoch().Number
				split, _ := above.floodUntil("/t/", 9)
				if split == nil || above.epoch().Number-begin < 2 {
					t.Fatalf("split off again after %d epochs", above.epoch().Number-begin)
				}
				note(split.Next)
				c = above.realmBelow(split.Founded[0])
			}
		})
	}
}

// warmed makes a block with a few changes, and reports whether it ended an epoch.
func warmed(c *realm) bool {
	all := make([]Mutation, 6)
	for i := range all {
		all[i] = c.put(fmt.Sprintf("/t/%d", i), "x")
	}
	return c.add(c.next(c.ballots(1), nil, c.world.sign(all...)...)).Next != nil
}

// decides lets three anchors carry a decision, which takes effect.
func (r *realm) decides(d Decision) {
	r.t.Helper()
	for _, a := range []string{"a", "b", "c"} {
		if out := r.approve(a, d); out.Code != Applied {
			r.t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	for r.add(r.next(nil, nil)).Next == nil {
	}
}

// policy is the decision on the one in force with changes.
func (r *realm) policy(change func(*Policy)) Decision {
	p := r.epoch().Policy
	change(&p)
	return Decision{Kind: SetPolicy, Policy: &p}
}
