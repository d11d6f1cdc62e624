package trust_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// grouped are the default parameters with a group.
func grouped(g trust.Group) trust.Params {
	p := trust.DefaultParams()
	p.Group = g
	return p
}

func TestGroupFollowsLoad(t *testing.T) {
	g := trust.Group{Least: 4, Most: 9, Tolerates: 1, Load: 100, Replace: 3}
	for _, c := range []struct {
		name           string
		group          trust.Group
		mode           quorum.Mode
		before, faults int
		load           uint64
		want           int
	}{
		{"one that may lie", g, quorum.BFT, 0, 0, 0, 4},
		{"one that may fail", g, quorum.Crash, 0, 0, 0, 4},
		{"one that may fail, of few", trust.Group{Least: 1, Most: 9, Tolerates: 1}, quorum.Crash, 0, 0, 0, 3},
		{"one round of votes", g, quorum.Fast, 0, 0, 0, 4},
		{"two that may lie", trust.Group{Least: 4, Most: 9, Tolerates: 2}, quorum.BFT, 4, 0, 0, 7},
		{"one lied", g, quorum.BFT, 4, 1, 0, 7},
		{"two lied", g, quorum.BFT, 7, 2, 0, 9},
		{"load below a step", g, quorum.BFT, 4, 0, 99, 4},
		{"load of a step", g, quorum.BFT, 4, 0, 100, 5},
		{"half of it keeps what grew", g, quorum.BFT, 5, 0, 50, 5},
		{"less does not", g, quorum.BFT, 5, 0, 49, 4},
		{"half of it grows nothing", g, quorum.BFT, 4, 0, 50, 4},
		{"load without end", g, quorum.BFT, 5, 0, 1 << 63, 9},
		{"load that does not count", trust.Group{Least: 4, Most: 9, Tolerates: 1}, quorum.BFT, 5, 0, 1 << 63, 4},
		{"more than the most", g, quorum.BFT, 12, 0, 1 << 63, 9},
		{"at least the least", trust.Group{Least: 6, Most: 9, Tolerates: 1}, quorum.BFT, 4, 0, 0, 6},
	} {
		if got := c.group.Size(c.mode, c.before, c.faults, c.load, false); got != c.want {
			t.Errorf("%s: %d anchors weigh, want %d", c.name, got, c.want)
		}
	}
}

// TestShortEpochsShrinkNoGroup: an epoch that a decision ended early holds few mutations, and that says nothing.
func TestShortEpochsShrinkNoGroup(t *testing.T) {
	g := trust.Group{Least: 4, Most: 9, Tolerates: 1, Load: 100}
	if got := g.Size(quorum.BFT, 7, 0, 0, true); got != 7 {
		t.Errorf("%d anchors weigh", got)
	}
	if got := g.Size(quorum.BFT, 7, 0, 500, true); got != 9 {
		t.Errorf("%d anchors weigh after many mutations", got)
	}
}

func TestGroupsThatCannotBe(t *testing.T) {
	for want, g := range map[string]trust.Group{
		"most is 0":            {Least: 4},
		"least is 0":           {Most: 4},
		"least 5 is above":     {Least: 5, Most: 4},
		"tolerates 9 is above": {Least: 4, Most: 8, Tolerates: 9},
	} {
		if err := grouped(g).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
}

// series is a scope of which one epoch follows another.
type series struct {
	t       *testing.T
	p       trust.Params
	mode    quorum.Mode
	epoch   aweigh.Epoch
	ledger  trust.Ledger
	weights quorum.Weights
	said    []trust.Change // of the last turn
}

func newSeries(t *testing.T, g trust.Group, scores ...trust.Score) *series {
	t.Helper()
	s := &series{t: t, p: grouped(g), mode: quorum.BFT}
	for i, score := range scores {
		s.ledger = s.ledger.Apply(s.p, founded(named(i), score))
	}
	s.regroup(trust.Turn{Mode: s.mode})
	return s
}

// turn ends an epoch in which some anchors signed nothing.
func (s *series) turn(load uint64, away ...int) {
	s.t.Helper()
	for i := range s.ledger.Len() {
		ev := trust.Evidence{Anchor: named(i), Kind: trust.Attended, Epoch: s.epoch, Record: trust.Attendance{Blocks: 64}}
		if !slices.Contains(away, i) {
			ev.Record.Timely = 64
		}
		s.ledger = s.ledger.Apply(s.p, ev)
	}
	s.epoch++
	s.regroup(trust.Turn{Epoch: s.epoch, Mode: s.mode, Before: s.weights, Load: load})
}

func (s *series) regroup(turn trust.Turn) {
	s.t.Helper()
	s.ledger, s.said = s.ledger.Regroup(s.p, turn)
	var err error
	if s.weights, err = s.ledger.Next(s.p, turn.Epoch, turn.Before); err != nil {
		s.t.Fatal(err)
	}
	if again, err := trust.DecodeLedger(s.ledger.Encode()); err != nil || again.Digest() != s.ledger.Digest() {
		s.t.Fatalf("read back: %v", err)
	}
}

// weigh checks which anchors do.
func (s *series) weigh(want ...int) {
	s.t.Helper()
	var got []int
	for i := range s.ledger.Len() {
		if s.weights.Of(named(i)) > 0 {
			got = append(got, i)
		}
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("epoch %d: %v weigh, want %v; %v", s.epoch, got, want, s.said)
	}
}

func TestStandbysReplaceTheAbsent(t *testing.T) {
	s := newSeries(t, trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}, 500_000, 500_001, 500_002, 500_003, 400_000, 300_000)
	s.weigh(0, 1, 2, 3)
	s.turn(0, 2)
	s.weigh(0, 1, 2, 3)
	s.turn(0, 2)
	s.weigh(0, 1, 3, 4) // the best of those on standby
	if len(s.said) != 2 || !strings.Contains(fmt.Sprint(s.said), "absent for 2 epochs") {
		t.Errorf("%v", s.said)
	}
	s.turn(0, 2, 3) // another one is absent, for the first time
	s.turn(0, 2, 3)
	s.weigh(0, 1, 4, 5)
	s.turn(0, 2, 3, 4) // no anchor that is there is left over
	s.turn(0, 2, 3, 4)
	s.weigh(0, 1, 4, 5)
	s.turn(0) // the absent come back, and are on standby
	s.weigh(0, 1, 4, 5)
	s.turn(0, 4)
	s.turn(0, 4)
	if s.weights.Of(named(4)) > 0 || s.weights.Len() != 4 {
		t.Errorf("%v weigh", s.weights)
	}
}

func TestOneAtATimeGoesOnStandby(t *testing.T) {
	s := newSeries(t, trust.Group{}, 500_000, 500_000, 500_000, 500_000, 500_000, 500_001, 500_002)
	s.weigh(0, 1, 2, 3, 4, 5, 6)
	s.p.Group = trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 1}
	for _, left := range []int{6, 5, 4, 4} {
		if s.turn(0); s.weights.Len() != left {
			t.Fatalf("epoch %d: %d weigh, want %d", s.epoch, s.weights.Len(), left)
		}
	}
	if s.weights.Of(named(5)) == 0 || s.weights.Of(named(6)) == 0 {
		t.Errorf("the best are on standby: %v", s.said)
	}
	s.p.Group = trust.Group{}
	s.turn(0)
	s.weigh(0, 1, 2, 3, 4, 5, 6)

	gone := newSeries(t, trust.Group{Least: 4, Most: 5, Tolerates: 1, Replace: 1}, 500_000, 500_000, 500_000, 500_000, 500_000, 500_000)
	of := slices.Collect(gone.weights.All())
	gone.ledger = gone.ledger.Apply(gone.p, left(of[0].Anchor, 0))
	var away int
	for i := range 6 {
		if named(i) == of[1].Anchor {
			away = i
		}
	}
	if gone.turn(0, away); gone.weights.Of(named(away)) == 0 {
		t.Errorf("two left in one epoch: %v", gone.said)
	}
	if gone.turn(0, away); gone.weights.Of(named(away)) != 0 {
		t.Errorf("an absent anchor weighs with no other left: %v", gone.said)
	}
}

// TestPlacesDoNotChangeHands: with trust that hardly differs, as it always does, places stay as they are; with more
// than 9/8 of it a place is taken.
func TestPlacesDoNotChangeHands(t *testing.T) {
	s := newSeries(t, trust.Group{Least: 4, Most: 4, Tolerates: 1}, 500_000, 500_000, 500_000, 500_000, 500_000)
	out := slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return s.weights.Of(named(i)) == 0 })
	set := func(score trust.Score) {
		s.ledger = s.ledger.Apply(s.p, attested(named(out), score))
		s.epoch++
		s.regroup(trust.Turn{Epoch: s.epoch, Mode: s.mode, Before: s.weights})
	}
	if set(562_500); len(s.said) != 0 {
		t.Errorf("9/8 of the trust: %v", s.said)
	}
	if set(562_501); len(s.said) != 2 || s.weights.Of(named(out)) == 0 {
		t.Errorf("more than 9/8 of the trust: %v", s.said)
	}
}

func TestNewAnchorsWaitForAPlace(t *testing.T) {
	s := newSeries(t, trust.Group{Least: 4, Most: 5, Tolerates: 1, Replace: 2}, 500_000, 500_000, 500_000, 500_000)
	s.ledger = s.ledger.Apply(s.p, admitted(ann, named(0), s.epoch))
	for range 8 {
		s.turn(0)
		if st := standing(t, s.ledger, ann); !st.Standby || s.weights.Of(ann) > 0 {
			t.Fatalf("epoch %d: %+v weighs %d", s.epoch, st, s.weights.Of(ann))
		}
	}
	s.ledger = s.ledger.Apply(s.p, caught(named(1), s.epoch)) // one liar: a place is free, and the group is to bear two
	s.turn(0)
	if s.weights.Of(ann) == 0 {
		t.Errorf("no place was free: %v", s.said)
	}
}

// TestNoDeadAnchorIsCalled: a group that grows, by a lie or by load, takes no anchor that is absent; it would count in
// every threshold. One that weighs goes as soon as the group needs no more than those that are there.
func TestNoDeadAnchorIsCalled(t *testing.T) {
	dead := []int{4, 5, 6}
	for _, lie := range []bool{true, false} {
		s := newSeries(t, trust.Group{Least: 4, Most: 7, Tolerates: 1, Load: 10, Replace: 2}, 900_000, 900_000, 900_000, 900_000, 800_000, 800_000, 800_000)
		s.turn(0, dead...)
		s.turn(0, dead...)
		if lie {
			s.ledger = s.ledger.Apply(s.p, caught(named(0), s.epoch))
		}
		for range 3 {
			s.turn(1000, dead...)
			for _, i := range dead {
				if s.weights.Of(named(i)) > 0 {
					t.Fatalf("dead anchor %d weighs: %v", i, s.said)
				}
			}
		}
	}
	s := newSeries(t, trust.Group{Least: 4, Most: 7, Tolerates: 2, Replace: 2}, 500_000, 500_000, 500_000, 500_000, 500_000, 500_000, 500_000)
	s.weigh(0, 1, 2, 3, 4, 5, 6)
	s.turn(0, 3)
	s.turn(0, 3)
	s.weigh(0, 1, 2, 4, 5, 6) // though there are seven places
}

// TestSponsorsGetTheirPart: the anchors that one sponsor brought in take no more places than their part, while there
// are others.
func TestSponsorsGetTheirPart(t *testing.T) {
	s := newSeries(t, trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}, 500_000, 500_000, 500_000, 500_000, 500_000, 500_000)
	for i := range 3 {
		s.ledger = s.ledger.Apply(s.p, admitted(named(6+i), named(0), 0), attested(named(6+i), trust.MaxScore))
	}
	for range 12 {
		s.turn(0)
		n := 0
		for i := range 3 {
			if s.weights.Of(named(6+i)) > 0 {
				n++
			}
		}
		if n > 1 {
			t.Fatalf("epoch %d: %d anchors of one sponsor weigh, of %d", s.epoch, n, s.weights.Len())
		}
	}
	if s.weights.Of(named(6))+s.weights.Of(named(7))+s.weights.Of(named(8)) == 0 {
		t.Error("none of them weighs, with twice the trust of others")
	}
	s.turn(0, 1, 2, 3, 4, 5)
	s.turn(0, 1, 2, 3, 4, 5)
	s.turn(0, 1, 2, 3, 4, 5)
	s.turn(0, 1, 2, 3, 4, 5)
	if s.weights.Of(named(6))*s.weights.Of(named(7))*s.weights.Of(named(8)) == 0 {
		t.Errorf("there are no others, and they do not take the places: %v", s.said)
	}
}

// TestFaultsEnd: a lie of an anchor that weighed lets the group grow for as long as a sponsor answers for another; one
// of an anchor on standby does not.
func TestFaultsEnd(t *testing.T) {
	s := newSeries(t, trust.Group{Least: 4, Most: 7, Tolerates: 1}, 500_000, 500_000, 500_000, 500_000, 400_000, 400_000, 400_000, 400_000)
	s.ledger = s.ledger.Apply(s.p, caught(named(7), s.epoch))
	if n := s.ledger.Faults(1); n != 0 {
		t.Errorf("a lie on standby counts as %d", n)
	}
	s.ledger = s.ledger.Apply(s.p, caught(named(0), s.epoch))
	for e, want := range map[aweigh.Epoch]int{1: 1, 64: 1, 65: 0} {
		if n := s.ledger.Faults(e); n != want {
			t.Errorf("epoch %d: %d faults, want %d", e, n, want)
		}
	}
}

// TestGroupsAreBounded: whatever happens, no anchor weighs that must not, there are as many as there should be and can
// be, no more than one goes on standby, and no absent one is called.
func TestGroupsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := trust.Group{
			Least: uint32(rapid.IntRange(1, 6).Draw(t, "least")), Tolerates: uint32(rapid.IntRange(0, 1).Draw(t, "tolerates")),
			Load: uint64(rapid.IntRange(0, 3).Draw(t, "load")), Replace: uint32(rapid.IntRange(0, 2).Draw(t, "replace")),
		}
		g.Most = g.Least + uint32(rapid.IntRange(0, 4).Draw(t, "more"))
		p := grouped(g)
		n := rapid.IntRange(1, 12).Draw(t, "anchors")
		var l trust.Ledger
		for i := range n {
			l = l.Apply(p, founded(named(i), trust.Score(rapid.IntRange(0, 9).Draw(t, "score"))*100_000))
		}
		var before quorum.Weights
		for e := range aweigh.Epoch(rapid.IntRange(1, 12).Draw(t, "epochs")) {
			seats := 0
			for i := range n {
				st, _ := l.Standing(named(i))
				record := trust.Attendance{Blocks: 64}
				if rapid.Bool().Draw(t, "there") {
					record.Timely = 64
				}
				l = l.Apply(p, trust.Evidence{Anchor: named(i), Kind: trust.Attended, Record: record})
				if st.Seated && rapid.IntRange(0, 20).Draw(t, "leaves") == 0 {
					l = l.Apply(p, left(named(i), e))
				} else if st.Seated {
					seats++
				}
			}
			if seats == 0 {
				return
			}
			load := uint64(rapid.IntRange(0, 20).Draw(t, "mutations"))
			short := rapid.Bool().Draw(t, "short")
			was, had, there := l, 0, 0
			l, _ = l.Regroup(p, trust.Turn{Epoch: e, Mode: quorum.BFT, Before: before, Load: load, Short: short})
			w, err := l.Next(p, e, before)
			if err != nil {
				t.Fatal(err)
			}
			rests, calls := 0, 0
			for s := range was.Seated() {
				absent := g.Replace > 0 && s.Missed >= g.Replace
				if !absent {
					there++
				}
				switch weighed, weighs := before.Of(s.Anchor) > 0, w.Of(s.Anchor) > 0; {
				case weighed:
					had++
					if !weighs {
						rests++
					}
				case weighs:
					calls++
					if absent && before.Len() > 0 && w.Len() > 1 {
						t.Fatalf("an absent anchor is called: %+v", s)
					}
				}
			}
			left := before.Len() - had
			size := min(g.Size(quorum.BFT, had, 0, load, short), max(there, int(g.Least)), seats)
			switch {
			case rests > 1, rests > 0 && left > 0:
				t.Fatalf("%d anchors went on standby, with %d of %d left", rests, left, before.Len())
			case before.Len() > 0 && calls > max(1, left):
				t.Fatalf("%d anchors were called, and %d left", calls, left)
			case w.Len() > max(size, had), w.Len() < min(size, had-rests+1, there):
				t.Fatalf("%d anchors weigh, want %d, of %d that did and %d that are there", w.Len(), size, had, there)
			}
			for s := range l.All() {
				if (w.Of(s.Anchor) > 0) != (s.Seated && !s.Standby) {
					t.Fatalf("%+v weighs %d", s, w.Of(s.Anchor))
				}
			}
			before = w
		}
	})
}
