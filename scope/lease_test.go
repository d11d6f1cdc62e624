package scope

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/lineage"
)

func (w *world) grant(id, ttl int64) Mutation {
	return w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{id}, TTL: ttl})
}

func (w *world) revoke(id int64) Mutation {
	return w.mutation(Lease, LeaseRequest{Kind: LeaseRevoke, IDs: []int64{id}})
}

func (w *world) keepAlive(ids ...int64) Mutation {
	return w.mutation(Lease, LeaseRequest{Kind: LeaseKeepAlive, IDs: ids})
}

// count is how many keys there are.
func (w *world) count() int64 {
	w.t.Helper()
	r, err := w.state.Range([]byte{0}, []byte{0}, Range{CountOnly: true})
	if err != nil {
		w.t.Fatalf("range: %v", err)
	}
	return r.Count
}

// expires is when a lease ends, 0 if it is not there.
func (w *world) expires(id int64) aweigh.Instant {
	w.t.Helper()
	g, _, err := w.state.Lease(id)
	if err != nil {
		w.t.Fatalf("lease: %v", err)
	}
	return g.Expires
}

// TestLeaseEndsWithTheFirstBlockOfItsTime: after its TTL and half as much again, not a nanosecond before, all keys at
// one revision, with the reason in the lineage.
func TestLeaseEndsWithTheFirstBlockOfItsTime(t *testing.T) {
	w := newWorld(t)
	w.step(w.grant(0x1f, 10), w.ops(leased("b", "1", 0x1f), leased("a", "2", 0x1f)), w.put("c", "3"))
	end := w.now.Add(15 * time.Second)
	if w.expires(0x1f) != end || w.state.Head().LeaseDue != end {
		t.Fatalf("the lease ends at %d, looked at %d; want %d", w.expires(0x1f), w.state.Head().LeaseDue, end)
	}
	rev := w.state.Head().Revision
	w.now = end - 1 - aweigh.Instant(time.Second)
	w.step()
	if w.count() != 3 || w.state.Head().Revision != rev {
		t.Fatal("keys went before their time")
	}
	w.now = end - aweigh.Instant(time.Second)
	res := w.step(w.put("d", "4"))
	if w.count() != 2 || res.Outcomes[0].Revision != rev+2 || w.state.Head().LeaseDue != 0 || w.state.Head().Leases != 0 {
		t.Fatalf("%d keys at revision %d, head %+v", w.count(), res.Outcomes[0].Revision, w.state.Head())
	}
	events, _, err := w.state.Events(rev+1, rev+1, []byte{0}, []byte{0}, 10)
	if err != nil || len(events) != 2 || string(events[0].Kv.Key) != "a" || string(events[1].Kv.Key) != "b" || events[1].Class != lineage.Delete {
		t.Fatalf("events %+v, %v", events, err)
	}
	for i := range events {
		e, ok, err := w.state.Lineage().Entry(events[i].Kv.Entry)
		if err != nil || !ok || e.Reason != "lease 1f expired" || !e.Mutation.IsZero() || !e.Author.IsZero() {
			t.Fatalf("the lineage has %+v, %v, %v", e, ok, err)
		}
	}
}

// TestRevokedKeysNameTheirRevocation: the lineage has its author and reason.
func TestRevokedKeysNameTheirRevocation(t *testing.T) {
	w := newWorld(t)
	w.step(w.grant(1, 10), w.ops(leased("a", "1", 1)))
	out := w.one(w.revoke(1))
	v, ok, err := w.state.NewestChange([]byte("a"))
	if err != nil || !ok || v.Version != 0 || v.ModRevision != out.Revision {
		t.Fatalf("%+v, %v, %v", v, ok, err)
	}
	e, _, err := w.state.Lineage().Entry(v.Entry)
	if err != nil || e.Mutation != out.Mutation || e.Author != w.author.Public().ID() || e.Reason != "lease 1 was revoked" {
		t.Fatalf("%+v, %v", e, err)
	}
	rev := w.state.Head().Revision
	w.step(w.grant(1, 10))
	if out := w.one(w.revoke(1)); out.Revision != rev {
		t.Fatalf("to revoke a lease without keys is revision %d, after %d", out.Revision, rev)
	}
}

func TestLeaseRequestsFailAsInEtcd(t *testing.T) {
	w := newWorld(t)
	w.one(w.grant(5, 10))
	for _, c := range []struct {
		m    Mutation
		want error
	}{
		{w.grant(5, 20), ErrLeaseExists},
		{w.revoke(6), ErrLeaseNotFound},
		{w.ops(leased("a", "1", 6)), ErrLeaseNotFound},
		{w.ops(leased("a", "1", -5)), ErrLeaseNotFound},
		{w.ops(Op{Kind: OpPut, Key: []byte("none"), Lease: 6, IgnoreValue: true}), ErrKeyNotFound},
	} {
		if out := w.step(c.m).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != c.want {
			t.Errorf("%s %q, want %v", out.Code, out.Reason, c.want)
		}
	}
	out := w.one(w.keepAlive(4, 5, 6))
	if len(out.TTLs) != 3 || out.TTLs[0] != 0 || out.TTLs[1] != 10 || out.TTLs[2] != 0 {
		t.Errorf("kept alive: %v", out.TTLs)
	}
	for _, ttl := range []int64{math.MinInt64, -1, 0, 1, 2} {
		if out := w.one(w.grant(100+ttl, ttl)); out.TTLs[0] != MinLeaseTTL {
			t.Errorf("a TTL of %d becomes %d", ttl, out.TTLs[0])
		}
	}
	if w.one(w.grant(7, MaxLeaseTTL)); w.expires(7) <= w.now {
		t.Error("the longest lease is over already")
	}
}

func TestLeaseRequestsAreChecked(t *testing.T) {
	many := make([]int64, MaxKeepAlives+1)
	for i := range many {
		many[i] = int64(i + 1)
	}
	for name, r := range map[string]LeaseRequest{ // order-free: each is checked alone
		"unknown":     {Kind: 4, IDs: []int64{1}},
		"none":        {IDs: []int64{1}},
		"no lease":    {Kind: LeaseGrant},
		"two grants":  {Kind: LeaseGrant, IDs: []int64{1, 2}},
		"two revoked": {Kind: LeaseRevoke, IDs: []int64{1, 2}},
		"too many":    {Kind: LeaseKeepAlive, IDs: many},
		"twice":       {Kind: LeaseKeepAlive, IDs: []int64{1, 1}},
		"disorder":    {Kind: LeaseKeepAlive, IDs: []int64{2, 1}},
		"zero":        {Kind: LeaseKeepAlive, IDs: []int64{0}},
		"TTL":         {Kind: LeaseKeepAlive, IDs: []int64{1}, TTL: 1},
		"asked":       {Kind: LeaseRevoke, IDs: []int64{1}, Asked: 1},
		"before":      {Kind: LeaseGrant, IDs: []int64{1}, Asked: -1},
		"long":        {Kind: LeaseGrant, IDs: []int64{1}, TTL: MaxLeaseTTL + 1},
	} {
		err := r.Check()
		if err == nil || errors.Is(err, ErrLeaseTTL) != (name == "long") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&LeaseRequest{Kind: LeaseKeepAlive, IDs: many[1:]}).Check(); err != nil {
		t.Error(err)
	}
	w := newWorld(t)
	late := w.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{1}, Asked: w.now.Add(time.Minute) + 1})
	if _, err := Sign(w.author, w.g.Policy.Limits, late); err == nil || !strings.Contains(err.Error(), "void") {
		t.Errorf("asked for after it is void: %v", err)
	}
}

// TestLeaseLastsFromWhenItWasAskedFor: a block with an earlier time does not
// shorten a lease, and a lease that lasts longer already keeps its end.
func TestLeaseLastsFromWhenItWasAskedFor(t *testing.T) {
	w := newWorld(t)
	asked := w.now.Add(30 * time.Second)
	r := LeaseRequest{Kind: LeaseGrant, IDs: []int64{1}, TTL: 10, Asked: asked}
	w.one(w.mutation(Lease, r)) // at one second
	if got, want := w.expires(1), asked.Add(15*time.Second); got != want {
		t.Fatalf("ends at %d, want %d", got, want)
	}
	w.one(w.keepAlive(1))
	if got, want := w.expires(1), asked.Add(15*time.Second); got != want {
		t.Fatalf("kept alive it ends at %d, want %d", got, want)
	}
	w.now = asked
	w.one(w.keepAlive(1))
	if got, want := w.expires(1), w.now.Add(15*time.Second); got != want {
		t.Fatalf("kept alive later it ends at %d, want %d", got, want)
	}
}

// TestLeasesOutliveAHalt: where no block came for long although a lease was over,
// every lease lasts for its whole TTL from then on, once; where blocks came, or
// nothing was over, none does.
func TestLeasesOutliveAHalt(t *testing.T) {
	w := newWorld(t)
	w.step(w.grant(1, 10), w.grant(2, 20), w.grant(3, 100))
	begin := w.now
	w.now = begin.Add(20 * time.Second)
	w.step() // 6 s late for the first
	back := w.now
	if w.state.Head().Resumed != back {
		t.Fatalf("resumed at %d, want %d", w.state.Head().Resumed, back)
	}
	for id, ttl := range map[int64]int64{1: 10, 2: 20, 3: 100} { // order-free: each is checked alone
		lasts := time.Duration(ttl) * time.Second
		if got, want := w.expires(id), max(begin.Add(lasts+lasts/2), back.Add(lasts)); got != want {
			t.Errorf("lease %d ends at %d, want %d", id, got, want)
		}
	}
	for w.now < back.Add(10*time.Second) {
		w.step()
	}
	if w.expires(1) != 0 || w.state.Head().Resumed != back {
		t.Error("the first lease lasts twice")
	}
	w.now = back.Add(20*time.Second) + aweigh.Instant(leaseHalt-time.Second)
	w.step() // as late as a block may be
	if w.expires(2) != 0 || w.state.Head().Resumed != back {
		t.Error("the second lease outlived a block that was in time")
	}
	w.one(w.grant(4, 1000))
	w.now = w.now.Add(140 * time.Second) // no block for long
	w.step()
	if w.state.Head().Resumed == back || w.expires(3) == 0 {
		t.Error("the third lease ended with the first block after a halt")
	}
}

// TestAnIdleScopeDidNotHalt: a long time without a block is not a halt while no
// lease was over.
func TestAnIdleScopeDidNotHalt(t *testing.T) {
	w := newWorld(t)
	w.one(w.grant(1, 3600))
	w.now = w.now.Add(90 * time.Minute)
	w.step()
	if w.expires(1) != 0 || w.state.Head().Resumed != 0 {
		t.Errorf("lease ends at %d, resumed at %d", w.expires(1), w.state.Head().Resumed)
	}
}

// TestExpiryIsBoundedInABlock: a block ends no more leases, and no more keys, than
// it may; the rest follows with the next ones, and each key goes once.
func TestExpiryIsBoundedInABlock(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t)
	w.skip = true
	var muts []Mutation
	for id := range int64(expireLeases + 10) {
		muts = append(muts, w.grant(id+1, 10), w.ops(leased(fmt.Sprint(id), "v", id+1)))
	}
	w.step(muts...)
	rev := w.state.Head().Revision
	w.now = w.now.Add(15 * time.Second)
	for _, left := range []int64{10, 0, 0} {
		w.step()
		if h := w.state.Head(); w.count() != left || h.Leases != left || h.Revision != rev+expireLeases+10-left || (h.LeaseDue != 0) != (left > 0) {
			t.Fatalf("%d keys are left, want %d; head %+v", w.count(), left, h)
		}
	}
	w.checkDigest()

	ops := make([]Op, 100)
	muts = []Mutation{w.grant(1, 10), w.grant(2, 10)}
	for n := range 2 * expireKeys * 6 / 10 / len(ops) {
		for i := range ops {
			ops[i] = leased(fmt.Sprint(n, "/", i), "v", int64(n%2)+1)
		}
		muts = append(muts, w.ops(ops...))
	}
	w.step(muts...)
	w.now = w.now.Add(15 * time.Second)
	for _, left := range []int64{expireKeys * 6 / 10, 0} {
		if w.step(); w.count() != left {
			t.Fatalf("%d keys are left, want %d", w.count(), left)
		}
	}
	w.checkDigest()
}

// TestLeasesAreBounded: in their number, their keys and the bytes of those.
func TestLeasesAreBounded(t *testing.T) {
	testshort.Skip(t)
	w := newWorld(t)
	w.skip = true
	fails := func(m Mutation, want error) {
		t.Helper()
		if out := w.step(m).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != want {
			t.Fatalf("%s %q, want %v", out.Code, out.Reason, want)
		}
	}
	w.one(w.grant(1, 1e9))
	const large = 1 << 20
	for i := range maxLeaseBytes/large - 1 {
		w.one(w.ops(leased(fmt.Sprint(i), strings.Repeat("x", large), 1)))
	}
	fails(w.ops(leased("large", strings.Repeat("x", large), 1)), ErrLeaseFull)
	w.one(w.ops(leased("0", strings.Repeat("y", large+large/2), 1))) // half a MiB more
	fails(w.ops(leased("large", strings.Repeat("x", large/2), 1)), ErrLeaseFull)
	w.one(w.ops(leased("0", "small", 1)))
	w.one(w.ops(leased("large", strings.Repeat("x", large), 1)))
	w.one(w.revoke(1))

	w.one(w.grant(2, 1e9))
	ops := make([]Op, 100)
	for n := range maxLeaseKeys / len(ops) {
		for i := range ops {
			ops[i] = leased(fmt.Sprintf("%d/%d", n, i), "v", 2)
		}
		w.one(w.ops(ops...))
	}
	fails(w.ops(leased("more", "", 2)), ErrLeaseFull)
	w.one(w.ops(leased("1/1", "longer than before", 2))) // attached already
	w.one(w.ops(put("1/1", "no more")))
	w.one(w.ops(leased("more", "", 2)))
	fails(w.ops(leased("x", "", 2), leased("y", "", 2)), ErrLeaseFull)
	w.checkDigest()

	w.state.head.Leases = maxLeases // as if
	if out := w.step(w.grant(3, 10)).Outcomes[0]; Failure(out.Reason) != ErrManyLeases {
		t.Fatalf("one lease more: %q", out.Reason)
	}
}

// TestRollbacksStayWithinTheLease: what an older version put back would add to a
// lease is counted as a put's.
func TestRollbacksStayWithinTheLease(t *testing.T) {
	w := newWorld(t)
	w.skip = true
	const large = 1 << 20
	w.one(w.grant(1, 1e9))
	w.one(w.ops(leased("a", strings.Repeat("x", large), 1)))
	u, rev := w.uid("a"), w.state.Head().Revision
	w.one(w.ops(leased("a", "small", 1)))
	for i := range maxLeaseBytes/large - 2 {
		w.one(w.ops(leased(fmt.Sprint(i), strings.Repeat("x", large), 1)))
	}
	w.one(w.ops(leased("rest", strings.Repeat("x", large), 1)))
	back := func() Mutation {
		return w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("a"), From: []byte("a"), Revision: rev})
	}
	if out := w.step(back()).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != ErrLeaseFull {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	w.one(w.ops(put("rest", "")))
	w.one(back())
	w.checkDigest()
}

// TestLeaseLastsSaysHowLong: a lease lasts for its TTL from any instant in the first half of that; a client can count
// on its TTL until then, and on what is left afterwards. An odd TTL is rounded up, and the longest does not overflow.
func TestLeaseLastsSaysHowLong(t *testing.T) {
	w := newWorld(t)
	for id, ttl := range []int64{1, 2, 7, 10, MaxLeaseTTL} {
		id := int64(id + 1)
		w.one(w.grant(id, ttl))
		g, _, err := w.state.Lease(id)
		if err != nil {
			t.Fatal(err)
		}
		ttl := max(ttl, MinLeaseTTL)
		half := w.now.Add(time.Duration((ttl+1)/2) * time.Second)
		if !g.Lasts(w.now) || !g.Lasts(half) || ttl < MaxLeaseTTL && g.Lasts(half+1) {
			t.Errorf("a lease of %d s from %d on ends at %d, and lasts from %d on: %v, a nanosecond later %v",
				ttl, w.now, g.Expires, half, g.Lasts(half), g.Lasts(half+1))
		}
		if got := g.Left(half); got != time.Duration(ttl)*time.Second {
			t.Errorf("%v of a lease of %d s are left", got, ttl)
		}
		if ttl < MaxLeaseTTL && (g.Left(g.Expires-1) != 1 || g.Left(g.Expires) != 0 || g.Left(g.Expires+1) != 0) {
			t.Errorf("%v, %v and %v are left at its end", g.Left(g.Expires-1), g.Left(g.Expires), g.Left(g.Expires+1))
		}
	}
}
