package trust_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// full and nothing are a whole epoch with all of it, led well, and with none.
var (
	full    = trust.Attendance{Blocks: 64, Timely: 64, Led: 8}
	nothing = trust.Attendance{Blocks: 64}
)

// course is one anchor's score over the epochs, in a scope of four.
func course(p trust.Params, start trust.Score, records ...trust.Attendance) []trust.Score {
	l := founders(4).Apply(p, attested(named(0), start))
	scores := make([]trust.Score, len(records))
	for i, r := range records {
		l = l.Apply(p, trust.Evidence{Anchor: named(0), Kind: trust.Attended, Epoch: aweigh.Epoch(i), Record: r})
		s, _ := l.Standing(named(0))
		scores[i] = s.Score
	}
	return scores
}

// repeat is n records, each pattern[i] in turn.
func repeat(n int, pattern ...trust.Attendance) []trust.Attendance {
	all := make([]trust.Attendance, n)
	for i := range all {
		all[i] = pattern[i%len(pattern)]
	}
	return all
}

func mean(scores []trust.Score) uint64 {
	var sum uint64
	for _, s := range scores {
		sum += uint64(s)
	}
	return sum / uint64(len(scores))
}

func TestFullTrustTakesManyEpochs(t *testing.T) {
	p := trust.DefaultParams()
	for start, want := range map[trust.Score]int{0: 41, p.Initial: 38, 500_000: 24} {
		scores := course(p, start, repeat(100, full)...)
		took := 0
		for took < len(scores) && scores[took] < trust.MaxScore {
			took++
		}
		if took++; took != want || start <= p.Initial && took < 32 {
			t.Errorf("full trust from %d takes %d epochs, want %d", start, took, want)
		}
		for i := 1; i < len(scores); i++ {
			if scores[i] < scores[i-1] {
				t.Errorf("full participation: %d after %d", scores[i], scores[i-1])
			}
		}
	}
}

func TestLongAbsenceRestsAndRecovers(t *testing.T) {
	p := trust.DefaultParams()
	gone := course(p, trust.MaxScore, repeat(200, nothing)...)
	for i := 1; i < len(gone); i++ {
		if gone[i] > gone[i-1] || gone[i] < p.Rest {
			t.Fatalf("epoch %d of absence: %d after %d", i, gone[i], gone[i-1])
		}
	}
	if gone[0] != 921_875 || gone[len(gone)-1] != p.Rest {
		t.Errorf("absence: %d after one epoch, %d after 200", gone[0], gone[len(gone)-1])
	}
	back := course(p, p.Rest, repeat(39, full)...)
	if back[0] <= p.Rest || back[len(back)-1] != trust.MaxScore {
		t.Errorf("return: %d after one epoch, %d after %d", back[0], back[len(back)-1], len(back))
	}
}

// TestOnOffLosesGround: an anchor that is bad at times is never above one that
// never is, from any start and with any choice of times. Of two anchors that
// take part in half, the one that takes turns stands lower than the steady one.
func TestOnOffLosesGround(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		start := trust.Score(rapid.Uint32Range(0, uint32(trust.MaxScore)).Draw(t, "start"))
		at := rapid.SliceOfN(rapid.Uint32Range(0, 64), 1, 100).Draw(t, "ballots")
		records := make([]trust.Attendance, len(at))
		for i, n := range at {
			records[i] = trust.Attendance{Blocks: 64, Timely: n, Led: min(n, 8), Nullified: (64 - n) / 8}
		}
		steady, other := course(p, start, repeat(len(at), full)...), course(p, start, records...)
		for i := range at {
			if other[i] > steady[i] {
				t.Fatalf("epoch %d: %d against %d of a steady anchor", i, other[i], steady[i])
			}
		}
	})
	half := course(p, 333_333, repeat(400, trust.Attendance{Blocks: 64, Timely: 32})...)
	turns := course(p, 333_333, repeat(400, trust.Attendance{Blocks: 64, Timely: 64}, nothing)...)
	if h, n := mean(half[200:]), mean(turns[200:]); n >= h || h != 333_344 || n != 324_552 {
		t.Errorf("in turns %d, steadily half %d", n, h)
	}
}

// TestLossesAreLargerThanGains: above a third of full trust, an epoch of absence
// takes more than an epoch of everything gives.
func TestLossesAreLargerThanGains(t *testing.T) {
	p := trust.DefaultParams()
	for s := trust.Score(400_000); s <= trust.MaxScore; s += 1_000 {
		up, down := course(p, s, full)[0]-s, s-course(p, s, nothing)[0]
		if up >= down {
			t.Fatalf("at %d: %d gained, %d lost", s, up, down)
		}
	}
}

// TestLeavingAndReturningGainsNothing: at any time, with any conduct before and
// after, an anchor that left and came back has no higher score than if it had
// stayed and taken part, and weighs nothing meanwhile.
func TestLeavingAndReturningGainsNothing(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		score := trust.Score(rapid.Uint32Range(0, uint32(trust.MaxScore)).Draw(t, "score"))
		stays := founders(8).Apply(p, attested(named(0), score))
		leaves := stays
		at := rapid.IntRange(0, 20).Draw(t, "leaves")
		returns := at + rapid.IntRange(0, 5).Draw(t, "away")
		for e := range 40 {
			r := took(named(0), rapid.Uint32Range(0, 64).Draw(t, "ballots"), aweigh.Epoch(e))
			if e == at {
				leaves = leaves.Apply(p, left(named(0), aweigh.Epoch(e)))
			}
			if e <= at || e > returns {
				stays, leaves = stays.Apply(p, r), leaves.Apply(p, r)
			} else {
				stays = stays.Apply(p, took(named(0), 64, aweigh.Epoch(e)))
			}
			if e == returns {
				leaves = leaves.Apply(p, admitted(named(0), named(1), aweigh.Epoch(e)))
			}
			a, b := standing(t, leaves, named(0)), standing(t, stays, named(0))
			if a.Score > b.Score {
				t.Fatalf("epoch %d: %d, and %d had it stayed", e, a.Score, b.Score)
			}
			w, err := leaves.Next(p, aweigh.Epoch(e)+1, quorum.Weights{})
			if err != nil {
				t.Fatal(err)
			}
			if weighs := w.Of(named(0)) > 0; weighs != (e < at || e >= returns+int(p.Probation)) {
				t.Fatalf("epoch %d, left in %d, returned in %d: weighs %d", e+1, at, returns, w.Of(named(0)))
			}
		}
	})
}

// TestSecondIdentity: an anchor that brings in another one of its own has no
// more weight in it for the probation, and no more than its own share and that
// of a sponsor ever after, whatever it does and however many they are; its score
// gains nothing by it, and a lie of any costs it as its sponsor.
func TestSecondIdentity(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(7, 20).Draw(t, "founders")
		more := rapid.IntRange(1, 8).Draw(t, "identities")
		alone := founders(n)
		split := alone
		for i := range more {
			split = split.Apply(p, admitted(named(100+i), named(0), 0))
		}
		before, _ := alone.Next(p, 0, quorum.Weights{})
		weights := before
		for e := aweigh.Epoch(0); e < 60; e++ {
			for i := range n {
				part := uint32(64)
				if i > 0 {
					part = rapid.Uint32Range(0, 64).Draw(t, "ballots")
				}
				alone = alone.Apply(p, took(named(i), part, e))
				split = split.Apply(p, took(named(i), part, e))
			}
			for i := range more {
				split = split.Apply(p, took(named(100+i), 64, e))
			}
			if a, b := standing(t, alone, named(0)), standing(t, split, named(0)); a != b {
				t.Fatalf("%+v alone, %+v as a sponsor", a, b)
			}
			next, err := split.Next(p, e+1, weights)
			single, err2 := alone.Next(p, e+1, before)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			own := next.Of(named(0))
			for i := range more {
				own += next.Of(named(100 + i))
			}
			if e+1 <= aweigh.Epoch(p.Probation) && next.Hash() != single.Hash() {
				t.Fatalf("epoch %d: probation changes the weights", e+1)
			}
			if 20*own > 9*next.Total() || 5*next.Of(named(0)) > next.Total() {
				t.Fatalf("epoch %d: %d of %d in %d hands of one", e+1, own, next.Total(), more+1)
			}
			weights, before = next, single
		}
		if _, changes := split.ApplyExplained(p, caught(named(100), 60)); len(changes) != 2 || changes[1].After != changes[1].Before-changes[1].Before/4 {
			t.Fatalf("a lie of the second identity: %v", changes)
		}
	})
}

// TestWhitewashingIsBounded: a new name starts where the policy sets it, weighs
// nothing for the probation, and is never ahead of the old one by more than what
// Initial is above the old score, and one millionth.
func TestWhitewashingIsBounded(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		old := trust.Score(rapid.Uint32Range(0, uint32(trust.MaxScore)).Draw(t, "old"))
		l := founders(8).Apply(p, attested(named(0), old), admitted(ann, named(1), 0))
		for e := aweigh.Epoch(1); e < 50; e++ {
			part := rapid.Uint32Range(0, 64).Draw(t, "ballots")
			l = l.Apply(p, took(named(0), part, e), took(ann, part, e))
			a, b := standing(t, l, named(0)).Score, standing(t, l, ann).Score
			// Two losses round down, so the greater of two scores can fall by one more than the other.
			if ahead := max(p.Initial, old) - old; b > a+ahead+1 {
				t.Fatalf("epoch %d: %d under the new name, %d under the old", e, b, a)
			}
		}
	})
}

// TestBlameStays: neither leaving and returning nor a readmission takes blame away, and
// a bar leaves it as it is.
func TestBlameStays(t *testing.T) {
	p := trust.DefaultParams()
	erred := trust.Evidence{Anchor: named(0), Kind: trust.Attended, Record: trust.Attendance{Against: 4}}
	for name, events := range map[string][]trust.Evidence{
		"returns":         {left(named(0), 1), admitted(named(0), named(1), 2)},
		"is readmitted":   {caught(named(0), 1), back(named(0), 2)},
		"is admitted":     {caught(named(0), 1), admitted(named(0), named(1), 2)},
		"is attested":     {attested(named(0), 1_000)},
		"attends, silent": {took(named(0), 64, 1)},
	} {
		l := founders(4).Apply(p, erred)
		before := standing(t, l, named(0)).Blame
		if l = l.Apply(p, events...); before != trust.MaxScore/trust.Score(p.Against) || standing(t, l, named(0)).Blame != before || !standing(t, l, named(0)).Seated {
			t.Errorf("an anchor that %s: %+v", name, standing(t, l, named(0)))
		}
	}
}
