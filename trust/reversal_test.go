package trust

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
)

func someone(i int) aweigh.AnchorID { return aweigh.Sum([]byte("someone"), []byte{byte(i)}) }

// someReversed draws motions of which some of a few anchors had warned.
func someReversed(t *rapid.T, p Params) (all []Reversed) {
	for i := range rapid.IntRange(0, 9).Draw(t, "reversed") {
		r := Reversed{Motion: someone(100 + i), By: someone(200 + i)}
		for a := range 3 {
			if rapid.Bool().Draw(t, "warned") {
				r.Warned = append(r.Warned, Warner{Anchor: someone(a), Cost: p.Cost(rapid.Uint64Range(0, 12).Draw(t, "motions"))})
			}
		}
		all = append(all, r)
	}
	return all
}

// someLedger is one of three founders with some score and blame.
func someLedger(t *rapid.T, p Params) (l Ledger) {
	for i := range 3 {
		l = l.Apply(p, Evidence{Anchor: someone(i), Kind: Founded, Score: someScore(t)})
	}
	for i := range l.standings {
		l.standings[i].Blame = someScore(t)
	}
	return l
}

// TestReversalsWeighLessThanAttendance: by ballots with outcomes and by warnings that proved right, an anchor gains
// less weight in an epoch than by its ballots on blocks, and never more than its score gives. No score moves.
func TestReversalsWeighLessThanAttendance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		if rapid.Bool().Draw(t, "other parameters") {
			p = someJudgement(t)
		}
		l := someLedger(t, p)
		var evidence []Evidence
		for s := range l.All() {
			evidence = append(evidence, Evidence{Anchor: s.Anchor, Kind: Attended, Record: Attendance{With: rapid.Uint32Range(0, 9).Draw(t, "with")}})
		}
		after := l.Apply(p, append(evidence, p.Credits(someReversed(t, p), 1, 1)...)...)
		for s := range l.All() {
			now, _ := after.Standing(s.Anchor)
			most := MaxScore/Score(p.With) + MaxScore/Score(p.Against)
			if now.Score != s.Score || now.Blame > s.Blame || s.Blame-now.Blame > most {
				t.Fatalf("%+v after %+v, where blame falls by %d at most", now, s, most)
			}
			if p.claim(now) > p.Weight(now.Score) {
				t.Fatalf("%+v claims more than its score gives", now)
			}
			attended := p.Weight(MaxScore) - p.Weight(MaxScore-p.Gain)
			if gained := p.claim(now) - p.claim(s); p == DefaultParams() && 5*gained > attended {
				t.Fatalf("%d gained by votes; an epoch of attendance gives %d", gained, attended)
			}
		}
	})
}

// TestWarningsCostNothingInTheEnd: credit gives back at least what the ballots against the motions added, however many
// others there were in the epoch; to an anchor without blame nothing.
func TestWarningsCostNothingInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, blame := someJudgement(t), someScore(t)
		n, others := rapid.Uint32Range(0, 20).Draw(t, "warnings"), rapid.Uint32Range(0, 20).Draw(t, "others")
		ballots := Attendance{Against: n, With: others}
		s := Standing{Anchor: someone(0)}
		s.Blame, _ = p.judgement(blame, &ballots)
		w := []Warner{{Anchor: someone(0), Cost: p.Cost(uint64(n) + uint64(others))}}
		for _, ev := range p.Credits(slices.Repeat([]Reversed{{Warned: w}}, int(n)), 1, 1) {
			s, _ = credited(s, ev)
		}
		if rest := Score(n); s.Blame > blame+rest { // each division rounds down
			t.Fatalf("%d warnings lead from %d to %d", n, blame, s.Blame)
		}
	})
	p := DefaultParams()
	s := Standing{}
	s.Blame, _ = p.judgement(0, &Attendance{Against: 1})
	if s.Blame != 7812 || p.Cost(1) != 7812 || p.Cost(8) != 3906 {
		t.Errorf("one error gives %d", s.Blame)
	}
	s, why := credited(s, Evidence{Proof: aweigh.Hash{1}, By: aweigh.Hash{2}, Score: 7812})
	if want := "warned: of motion 01000000, which motion 02000000 reversed; blame 7812 -> 0: -7812"; s.Blame != 0 || why != want {
		t.Errorf("%d: %s", s.Blame, why)
	}
	if s, _ = credited(Standing{Score: 7}, Evidence{Score: 7812}); s != (Standing{Score: 7}) {
		t.Errorf("an anchor without blame has gained: %+v", s)
	}
}

// TestCreditIsBoundedByTheEpoch: the reversals of an epoch take no more blame from an anchor than an epoch of errors
// adds.
func TestCreditIsBoundedByTheEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		p.Judged = rapid.Uint32Range(1, 5).Draw(t, "judged")
		all := someReversed(t, p)
		warned, given := make(map[aweigh.AnchorID]Score), make(map[aweigh.AnchorID]Score)
		for _, r := range all {
			for _, w := range r.Warned {
				warned[w.Anchor] += w.Cost
			}
		}
		for _, ev := range p.Credits(all, 3, 9) {
			if given[ev.Anchor] += ev.Score; ev.Kind != Warned || ev.Epoch != 3 || ev.Height != 9 || ev.Proof.IsZero() || ev.By.IsZero() {
				t.Fatalf("%+v", ev)
			}
		}
		for a, sum := range warned {
			if most := MaxScore / Score(p.Against); given[a] > most || sum <= most && given[a] != sum {
				t.Fatalf("%d of %d is given, and %d is the most", given[a], sum, most)
			}
		}
	})
}

// TestReversalsReplay: the changes are enough to replay the ledger, however the evidence is parted.
func TestReversalsReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultParams()
		l := someLedger(t, p)
		evidence := p.Credits(someReversed(t, p), 1, 1)
		once, changes := l.ApplyExplained(p, evidence...)
		parted := l
		for _, c := range changes {
			parted = parted.Apply(p, c.Evidence)
		}
		if once.Digest() != parted.Digest() || len(changes) != len(evidence) {
			t.Fatalf("replayed one by one, the ledger differs")
		}
	})
}

func TestWarningsThatGiveNoCredit(t *testing.T) {
	p := DefaultParams()
	l := Ledger{}.Apply(p, Evidence{Anchor: someone(0), Kind: Founded, Score: 500_000})
	ev := Evidence{Anchor: someone(0), Kind: Warned, Proof: someone(1), By: someone(2)}
	barred := l.Apply(p, Evidence{Anchor: someone(0), Kind: Equivocated})
	for name, x := range map[string]struct {
		l    Ledger
		ev   Evidence
		want string
	}{
		"barred":  {barred, ev, "the anchor is barred"},
		"unknown": {Ledger{}, ev, "the anchor has no standing in this scope"},
	} {
		after, changes := x.l.ApplyExplained(p, x.ev)
		if want := fmt.Sprintf("ignored: warned, but %s", x.want); after.Digest() != x.l.Digest() || changes[0].Reason != want {
			t.Errorf("%s: %s", name, changes[0].Reason)
		}
	}
	p.Reversal = MaxReversal + 1
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "reversal") {
		t.Errorf("reversals after %d epochs: %v", p.Reversal, err)
	}
	for _, n := range []uint32{0, MaxReversal} {
		if p.Reversal = n; p.Check() != nil {
			t.Errorf("reversals after %d epochs are refused", n)
		}
	}
}
