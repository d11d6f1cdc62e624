package scope

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// TestP13BlockTimeIsBounded: beyond the drift bound a block's time may exceed its parent's by the smallest step only.
func TestP13BlockTimeIsBounded(t *testing.T) {
	lim := DefaultLimits()
	const now = aweigh.Instant(1_000 * time.Hour)
	most := now.Add(lim.Drift)
	for _, c := range []struct {
		name             string
		parent, at, next aweigh.Instant
		fine             bool
	}{
		{"at the bound", now - 5, most, now, true},
		{"beyond it", now - 5, most + 1, now, false},
		{"a day beyond it", now - 5, now.Add(24 * time.Hour), now, false},
		{"after a parent at the bound", most, most + 1, most + 1, true},
		{"the next of a time that ran ahead", now.Add(23 * time.Hour), now.Add(23*time.Hour) + 1, now.Add(23*time.Hour) + 1, true},
		{"two steps of it", now.Add(23 * time.Hour), now.Add(23*time.Hour) + 2, now.Add(23*time.Hour) + 1, false},
		{"dated back, which hurts less", now.Add(-time.Hour), now.Add(-time.Hour) + 1, now, true},
	} {
		s := &State{head: Head{Time: c.parent}}
		if err := s.CheckTime(c.at, now, &lim); (err == nil) != c.fine || err != nil && !(errors.Is(err, ErrInvalid) && errors.Is(err, ErrEarly)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := s.NextTime(now); got != c.next {
			t.Errorf("%s: a leader dates it %d, not %d", c.name, got, c.next)
		}
		if err := s.CheckTime(s.NextTime(now), now, &lim); err != nil {
			t.Errorf("%s: a leader's own date is refused: %v", c.name, err)
		}
	}
}

// TestDriftIsBelowAllThatTimeEnds: no policy has a drift bound that is large beside the periods that the scope's time
// ends, whether a genesis, a decision, a child or an order of the scope above brings it.
func TestDriftIsBelowAllThatTimeEnds(t *testing.T) {
	if 2*mostDrift > MinLeaseTTL*time.Second || 2*mostDrift > leaseHalt {
		t.Errorf("a drift of %v, beside leases of %d s", mostDrift, MinLeaseTTL)
	}
	approval := func(window time.Duration) []Approval {
		return []Approval{{Matter: Changes, Prefix: []byte("/a/"), Num: 1, Den: 2, Window: window}}
	}
	for name, c := range map[string]struct { // order-free: each is checked alone
		bend func(p *Policy)
		fine bool
	}{
		"a day":                        {func(p *Policy) { p.Limits.Drift = 24 * time.Hour }, false},
		"more than a second":           {func(p *Policy) { p.Limits.Drift = time.Second + 1 }, false},
		"a second":                     {func(p *Policy) { p.Limits.Drift = time.Second }, true},
		"nothing":                      {func(p *Policy) { p.Limits.Drift = 0 }, false},
		"half of the validity":         {func(p *Policy) { p.Limits.ValidFor = time.Second }, true},
		"more than that":               {func(p *Policy) { p.Limits.ValidFor = time.Second - 1 }, false},
		"half of an epoch":             {func(p *Policy) { p.EpochTime = time.Second }, true},
		"more than half of an epoch":   {func(p *Policy) { p.EpochTime, p.Limits.Drift = time.Second, 501*time.Millisecond }, false},
		"half of a window":             {func(p *Policy) { p.Approvals = approval(time.Second) }, true},
		"more than half of a window":   {func(p *Policy) { p.Approvals, p.Limits.Drift = approval(time.Second), 501*time.Millisecond }, false},
		"a window that is long enough": {func(p *Policy) { p.Approvals, p.Limits.Drift = approval(2*time.Second), time.Second }, true},
	} {
		p := OpenPolicy(quorum.BFT)
		c.bend(&p)
		if err := p.Check(); (err == nil) != c.fine || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	notice := Bound{Notice: time.Second}
	p := OpenPolicy(quorum.BFT)
	if err := notice.admits(&p); err != nil {
		t.Errorf("half of a notice: %v", err)
	}
	if p.Limits.Drift++; !errors.Is(notice.admits(&p), ErrInvalid) {
		t.Error("more than half of a notice is admitted")
	}

	bad := OpenPolicy(quorum.BFT)
	bad.Limits.Drift = 24 * time.Hour
	g, _ := testGenesis(t, 1)
	g.Policy = bad
	if _, err := g.Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("a genesis: %v", err)
	}
	child := Child{Prefix: []byte("/a/"), Policy: bad, Anchors: g.Anchors}
	for name, d := range map[string]Decision{ // order-free: each is checked alone
		"a decision": {Kind: SetPolicy, Policy: &bad}, "a child": {Kind: Delegate, Child: &child}, "an order": {Kind: Revoke, Child: &child},
	} {
		lim := DefaultLimits()
		key := testKey(t, 7)
		m := Mutation{Scope: g.Hash(), Class: Govern, Content: canon.Encode(d), Nonce: []byte("12345678"), ValidUntil: 1}
		b, err := Sign(key, lim, m)
		if err == nil {
			_, err = CheckBundle(b.Raw(), lim, votes.Verify)
		}
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
