package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// grouped is a realm of some founders of which four weigh.
func grouped(t *testing.T, founders int, change func(*Policy)) (r *realm, weigh, rest []string) {
	t.Helper()
	g, keys := testGenesis(t, founders)
	g.Policy.EpochBlocks = 20
	g.Policy.Trust.Group = trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}
	if change != nil {
		change(&g.Policy)
	}
	r = realmOf(t, g, keys)
	for _, a := range g.Anchors {
		if r.epoch().Roster.Weights.Of(a.Key.ID()) > 0 {
			weigh = append(weigh, a.Name)
		} else {
			rest = append(rest, a.Name)
		}
	}
	if len(weigh) != 4 {
		t.Fatalf("%v weigh", weigh)
	}
	return r, weigh, rest
}

func TestGroupsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Policy){
		"it takes 4":         func(p *Policy) { p.Trust.Group.Least, p.Trust.Group.Most = 3, 3 },
		"of which the rules": func(p *Policy) { p.Rules.Finalize.MinAnchors = 5 },
		"asks for 6": func(p *Policy) {
			p.Approvals = []Approval{{Matter: Policies, Num: 2, Den: 3, Anchors: 6, Window: time.Hour}}
		},
		"no anchor is absent":    func(p *Policy) { p.EpochBlocks = 7 },
		"limits.anchors is 1024": func(p *Policy) { p.Trust.Group.Most, p.Limits.Anchors = 1<<32-1, 1024 },
	} {
		p := DefaultPolicy(quorum.BFT)
		p.Trust.Group = trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&p); p.Check() == nil || !strings.Contains(p.Check().Error(), want) {
			t.Errorf("%v, want %q", p.Check(), want)
		}
	}
	p := DefaultPolicy(quorum.Crash)
	p.Trust.Group = trust.Group{Least: 2, Most: 3}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestMembersOfAGroupMayGo: rules that ask for as many anchors as the group has keep no anchor from leaving, where one
// on standby takes the place.
func TestMembersOfAGroupMayGo(t *testing.T) {
	heads := func(p *Policy) { p.Rules.Finalize.MinAnchors = 4 }
	r, weigh, rest := grouped(t, 6, heads)
	if out := r.approve(weigh[1], Decision{Kind: Retire, Subject: r.id(weigh[1])}); out.Code != Applied {
		t.Fatalf("%d: %s", out.Code, out.Reason)
	}
	r.turn()
	w := r.epoch().Roster.Weights
	if w.Len() != 4 || w.Of(r.id(weigh[1])) > 0 || w.Of(r.id(rest[0]))+w.Of(r.id(rest[1])) == 0 {
		t.Errorf("%v weigh", w)
	}
	r, weigh, _ = grouped(t, 4, heads)
	if out := r.approve(weigh[1], Decision{Kind: Retire, Subject: r.id(weigh[1])}); out.Code != Failed {
		t.Errorf("an anchor left without one on standby: %d: %s", out.Code, out.Reason)
	}
}

// TestForecastsShowTheWholeGroup: a policy that lets fewer anchors weigh comes to that step by step. What would follow
// is shown as it is in the end, so that no bound is passed by steps.
func TestForecastsShowTheWholeGroup(t *testing.T) {
	g, keys := testGenesis(t, 7)
	g.Policy.EpochBlocks = 20
	r := realmOf(t, g, keys)
	p := r.epoch().Policy
	p.Trust.Group = trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}
	roster, _, err := r.state.ForecastUnder(p)
	if err != nil || roster.Weights.Len() != 4 {
		t.Errorf("%d would weigh, %v", roster.Weights.Len(), err)
	}
	d := Decision{Kind: SetPolicy, Policy: &p}
	for i := range 5 {
		r.approve(g.Anchors[i].Name, d)
	}
	for range 4 {
		r.turn()
	}
	if w := r.epoch().Roster.Weights; w.Len() != 4 {
		t.Errorf("%d weigh in the end", w.Len())
	}
}

// TestBoundsHoldForTheWholeGroup (P62): a bound on how few anchors could break the scope refuses a group with which
// they could, though it comes to that only some epochs later.
func TestBoundsHoldForTheWholeGroup(t *testing.T) {
	w := newAssembly(t, 7, func(p *Policy) {
		p.Authors = []Author{{Name: "anchors", Who: Anchors}}
		p.Approvals = []Approval{{Matter: Policies, Num: 2, Den: 3, Window: time.Hour, Bounds: []ImpactBound{{Of: FewestToBreak, Limit: 3}}}}
	})
	w.author = w.keys[0]
	for least, refused := range map[uint32]bool{4: true, 7: false} {
		p := w.g.Policy
		p.Trust.Group = trust.Group{Least: least, Most: 7, Tolerates: 1, Replace: 2}
		out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
		if refused != (out.Code == Failed && strings.Contains(out.Reason, "2 anchors to break the scope")) {
			t.Errorf("at least %d: %s: %s", least, out.Code, out.Reason)
		}
	}
}
