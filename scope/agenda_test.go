package scope

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/votes"
)

// together has the anchors a, b and c of a realm carry decisions in one block, in order.
func (r *realm) together(all ...Decision) (motions []votes.MotionID) {
	r.t.Helper()
	for _, name := range []string{"a", "b"} {
		for i := range all {
			c, err := Sign(r.names[name], r.g.Policy.Limits, r.mutation(Govern, all[i]))
			if err != nil {
				r.t.Fatalf("%v", err)
			}
			out := r.add(r.next(nil, nil, c)).Outcomes[0]
			if out.Code != Applied {
				r.t.Fatalf("%s: %s %s", name, out.Code, out.Reason)
			}
			if name == "a" {
				motions = append(motions, out.Mutation)
			}
		}
	}
	var last []*CheckedBundle
	for i := range all {
		c, err := Sign(r.names["c"], r.g.Policy.Limits, r.mutation(Govern, all[i]))
		if err != nil {
			r.t.Fatalf("%v", err)
		}
		last = append(last, c)
	}
	r.add(r.next(nil, nil, last...))
	return motions
}

// ending is the text of a motion's ending.
func (r *realm) ending(id votes.MotionID) (string, *Ending) {
	r.t.Helper()
	_, end, err := r.state.Motion(id)
	if err != nil || end == nil {
		r.t.Fatalf("motion %s: %v, %v", id.Short(), end, err)
	}
	return end.String(), end
}

// TestDecisionsDropNoUnrelatedOne: of two decisions that exclude each other the first takes
// effect, the second is on record with the reason, and unrelated ones take effect.
func TestDecisionsDropNoUnrelatedOne(t *testing.T) {
	for name, second := range map[string]func(t *testing.T, r *realm) Decision{
		"one node": func(t *testing.T, r *realm) Decision {
			return Admission(r.g.Hash(), testKey(t, 78), "f", "peer-e", r.id("a"))
		},
		"one name": func(t *testing.T, r *realm) Decision {
			return Admission(r.g.Hash(), testKey(t, 78), "e", "peer-f", r.id("a"))
		},
		"one anchor": func(t *testing.T, r *realm) Decision {
			return Admission(r.g.Hash(), testKey(t, 77), "e", "peer-e", r.id("b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRealm(t, nil)
			admit := Admission(r.g.Hash(), testKey(t, 77), "e", "peer-e", r.id("a"))
			evict := Decision{Kind: Evict, Subject: r.id("d")}
			other := second(t, r)
			motions := r.together(admit, other, evict)
			r.keys[admit.Subject] = testKey(t, 77)
			r.turn()
			e := r.epoch()
			if _, ok := e.Roster.Seat(admit.Subject); !ok {
				t.Error("the first was not admitted")
			}
			if _, ok := e.Roster.Seat(other.Subject); ok && other.Subject != admit.Subject {
				t.Error("the second was admitted")
			}
			if _, ok := e.Roster.Seat(evict.Subject); ok {
				t.Error("the eviction vanished")
			}
			if got, end := r.ending(motions[0]); got != "carried" || end.Effective != e.Number {
				t.Errorf("the first is %s, in effect in epoch %d", got, end.Effective)
			}
			if got, end := r.ending(motions[1]); !strings.HasPrefix(got, "void: ") || !strings.Contains(got, "decided already") || end.Effective != 0 {
				t.Errorf("the second is %s", got)
			}
			if got, end := r.ending(motions[2]); got != "carried" || end.Effective != e.Number {
				t.Errorf("the eviction is %s, in effect in epoch %d", got, end.Effective)
			}
		})
	}
}

// TestIneffectiveDecisionsHaveAReason: a carried decision that conflicts with one carried
// before is void as the epoch ends, with the reason in the motion and in the lineage.
func TestIneffectiveDecisionsHaveAReason(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.Limits.Anchors = 5 })
	r.turn()
	agenda := agenda{}
	for i := range 3 {
		d := Admission(r.g.Hash(), testKey(t, byte(77+i)), fmt.Sprint("e", i), fmt.Sprint("peer-", i), r.id("a"))
		agenda = append(agenda, decided{Decision: d, Carried: r.state.Head().Height})
	}
	evict := decided{Decision: Decision{Kind: Evict, Subject: r.id("d")}, Carried: r.state.Head().Height}
	s, err := r.state.Begin()
	if err != nil {
		t.Fatal(err)
	}
	s.pending = &agenda
	agenda = append(agenda, evict)
	u, err := s.successor()
	if err != nil {
		t.Fatal(err)
	}
	if len(u.takes) != 3 || len(u.dropped) != 1 || u.takes[1].Decision.Kind != Evict || u.dropped[0].Decision.Anchor.Name != "e2" {
		t.Fatalf("%d take effect, %d do not: %+v", len(u.takes), len(u.dropped), u.dropped)
	}
	if why := u.dropped[0].why.Error(); !strings.Contains(why, "more anchors than the policy takes") {
		t.Error(why)
	}
}

// TestAPolicyOfAnotherBaseIsSuperseded: of two policies that were proposed from the same
// one, the second is closed when the first takes effect, and never carried beside it.
func TestAPolicyOfAnotherBaseIsSuperseded(t *testing.T) {
	set := func(r *realm, blocks uint64) Decision {
		p := r.g.Policy
		p.EpochBlocks = blocks
		return Decision{Kind: SetPolicy, Policy: &p}
	}
	t.Run("in one block", func(t *testing.T) {
		r := newRealm(t, nil)
		motions := r.together(set(r, 7), set(r, 8))
		r.turn()
		if p := r.epoch().Policy; p.EpochBlocks != 7 {
			t.Errorf("epochs of %d blocks", p.EpochBlocks)
		}
		if got, _ := r.ending(motions[1]); !strings.HasPrefix(got, "void: ") || !strings.Contains(got, "another policy is decided already") {
			t.Errorf("the second is %s", got)
		}
	})
	t.Run("one after the other", func(t *testing.T) {
		r := newRealm(t, nil)
		out := r.approve("a", set(r, 8))
		doomed := func() string {
			t.Helper()
			mo, _, err := r.state.Motion(out.Mutation)
			if err != nil {
				t.Fatal(err)
			}
			why, err := r.state.Doomed(mo)
			if err != nil {
				t.Fatal(err)
			}
			return why
		}
		first := set(r, 7)
		for _, name := range []string{"a", "b", "c"} {
			if why := doomed(); why != "" {
				t.Errorf("before the first is carried, the second is doomed by %q", why)
			}
			r.approve(name, first)
		}
		// Until the epoch ends, the second is open still, and voters see that it is pointless.
		if p, end, err := r.state.Decision(first.ID()); err != nil || p.Carried == 0 || end != nil {
			t.Fatalf("the first: %+v, %+v, %v", p, end, err)
		}
		if _, end, err := r.state.Motion(out.Mutation); err != nil || end != nil {
			t.Errorf("before the epoch ends, the second is %v, %v", end, err)
		}
		if why := doomed(); !strings.HasPrefix(why, "another policy is decided already") {
			t.Errorf("before the epoch ends, the second is doomed by %q", why)
		}
		r.turn()
		if got, _ := r.ending(out.Mutation); !strings.HasPrefix(got, "superseded: ") {
			t.Errorf("the second is %s", got)
		}
		d := set(r, 8)
		p, end, err := r.state.Decision(d.ID())
		if err != nil || p == nil || end == nil || end.Fate != Superseded {
			t.Errorf("%+v, %+v, %v", p, end, err)
		}
		if out := r.approve("b", d); out.Code != Applied { // proposed anew, it is another motion
			t.Errorf("proposed again: %s %s", out.Code, out.Reason)
		}
		if p, end, err := r.state.Decision(d.ID()); err != nil || p == nil || end != nil || len(p.Approvals) != 1 {
			t.Errorf("proposed again: %+v, %+v, %v", p, end, err)
		}
	})
}

// TestCarriedDecisionsShowTheirSupport: a decision that waits for the next epoch has its
// approvers beside it.
func TestCarriedDecisionsShowTheirSupport(t *testing.T) {
	r := newRealm(t, nil)
	p := r.g.Policy
	p.EpochBlocks = 7
	d := Decision{Kind: SetPolicy, Policy: &p}
	for _, name := range []string{"a", "b", "c"} {
		r.approve(name, d)
	}
	open, err := r.state.Agenda()
	if err != nil || len(open) != 1 || open[0].Carried == 0 || len(open[0].Approvals) != 3 || open[0].Tally.Approve == 0 || open[0].Tally.Threshold == 0 {
		t.Errorf("%+v, %v", open, err)
	}
}
