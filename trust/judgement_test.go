package trust

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// someJudgement draws parameters of judgement that pass Check, extremes included.
func someJudgement(t *rapid.T) Params {
	p := DefaultParams()
	count := func(least uint32, name string) uint32 {
		return rapid.OneOf(rapid.Uint32Range(least, max(least, 100)), rapid.Uint32Min(least)).Draw(t, name)
	}
	p.Blame, p.Against, p.Judged = count(16, "blame"), count(1, "against"), count(1, "judged")
	p.With, p.Silent = count(p.Against, "with"), count(p.Against, "silent")
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

func someOpinions(t *rapid.T) Attendance {
	n := rapid.OneOf(rapid.Uint32Range(0, 9), rapid.Uint32())
	return Attendance{With: n.Draw(t, "with"), Against: n.Draw(t, "against"), Silent: n.Draw(t, "silent")}
}

// exactJudgement is what judgement approaches, without any rounding.
func exactJudgement(p Params, before Score, r Attendance) *big.Rat {
	motions := uint64(r.With) + uint64(r.Against) + uint64(r.Silent)
	span := max(motions, uint64(p.Judged))
	part := func(n, of uint32) *big.Rat { return mul(quo(rat(uint64(n)), rat(span)), big.NewRat(1, int64(of))) }
	b := rat(uint64(before))
	after := add(b, mul(sub(rat(uint64(MaxScore)), b), part(r.Against, p.Against)))
	if half := sub(rat(uint64(MaxScore)/2), b); half.Sign() > 0 {
		after = add(after, mul(half, part(r.Silent, p.Silent)))
	}
	return sub(after, mul(b, part(r.With, p.With)))
}

// TestJudgementIsItsFormula compares with exact fractions: three terms are rounded
// down, each by less than 1.
func TestJudgementIsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someJudgement(t), someOpinions(t), someScore(t)
		after, reason := p.judgement(s, &r)
		if exact := exactJudgement(p, s, r); !within(rat(uint64(after)), exact, 2) || after > MaxScore {
			t.Fatalf("%d, exactly %.3f:%s", after, float(exact), reason)
		}
	})
}

var blamed = regexp.MustCompile(`; blame (\d+) -> (\d+): -(\d+) with \d+ of \d+ outcomes, \+(\d+) against \d+(?:, \+(\d+) silent on \d+)?$`)

// TestJudgementCanBeRedone adds up what a reason says.
func TestJudgementCanBeRedone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someJudgement(t), someOpinions(t), someScore(t)
		after, reason := p.judgement(s, &r)
		if r.Empty() {
			if after != s || reason != "" {
				t.Fatalf("%d -> %d without a motion: %q", s, after, reason)
			}
			return
		}
		m := blamed.FindStringSubmatch(reason)
		if m == nil {
			t.Fatalf("%q", reason)
		}
		n := make([]int, len(m))
		for i := range m {
			n[i], _ = strconv.Atoi(m[i])
		}
		if n[1] != int(s) || n[2] != int(after) || n[1]-n[3]+n[4]+n[5] != n[2] {
			t.Fatalf("%d -> %d, but the reason is %q", s, after, reason)
		}
	})
}

// TestJudgementWeighsLessThanAttendance: whatever the ballots, they leave scores as
// they are, and take no more than 1/16 of a claim, which they never raise above what
// the score gives.
func TestJudgementWeighsLessThanAttendance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := someJudgement(t), someRecord(t)
		o := someOpinions(t)
		without, _ := attended(p, Standing{Score: someScore(t)}, r)
		r.With, r.Against, r.Silent = o.With, o.Against, o.Silent
		s := Standing{Score: without.Score, Blame: someScore(t)}
		for range 3 {
			was := s.Score
			alone, _ := attended(p, Standing{Score: was}, Attendance{Blocks: r.Blocks, Timely: r.Timely, Late: r.Late, Led: r.Led, Nullified: r.Nullified})
			if s, _ = attended(p, s, r); s.Score != alone.Score {
				t.Fatalf("score %d, and %d without ballots", s.Score, alone.Score)
			}
			if c, most := p.claim(s), p.Weight(s.Score); c > most || 16*(most-c) > most || c == 0 {
				t.Fatalf("%d of %d claimed with blame %d", c, most, s.Blame)
			}
		}
	})
}

// TestJudgementIsFair: what is better never costs more, an error costs at least what a
// hit gives back to an anchor with little blame, many motions move no more than few, and
// an anchor without blame gains nothing by any ballot.
func TestJudgementIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someJudgement(t), someOpinions(t), someScore(t)
		judge := func(s Score, r Attendance) Score { after, _ := p.judgement(s, &r); return after }
		after := judge(s, r)
		if r.Against > 0 {
			better := r
			better.Against, better.With = r.Against-1, min(r.With, 1<<31)+1
			r.With = better.With - 1
			if judge(s, better) > judge(s, r)+3 {
				t.Fatalf("%+v costs %d, %+v %d", r, judge(s, r), better, judge(s, better))
			}
		}
		if lower := s - min(s, 1_000); judge(lower, r) > judge(s, r)+3 {
			t.Fatalf("from %d to %d, and from %d to %d", lower, judge(lower, r), s, judge(s, r))
		}
		if got := judge(0, Attendance{With: r.With}); got != 0 {
			t.Fatalf("agreement alone gives blame %d", got)
		}
		if most := uint64(MaxScore) / uint64(p.Against); uint64(max(after, s)-min(after, s)) > most {
			t.Fatalf("%d -> %d, by more than %d in one epoch", s, after, most)
		}
		if s <= MaxScore/2 {
			hit := judge(s, Attendance{With: 1})
			if miss := judge(s, Attendance{Against: 1}); miss+1 < s || uint64(miss-s)+1 < uint64(s-hit) {
				t.Fatalf("from %d a hit leads to %d, an error to %d", s, hit, miss)
			}
		}
	})
}

// TestSplitGainsNothing: two identities of one owner that vote both ways, so that one
// of them is always with the outcome, claim no more together than two that say
// nothing, and end no better than by guessing.
func TestSplitGainsNothing(t *testing.T) {
	p := DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		a, b := Standing{Score: MaxScore}, Standing{Score: MaxScore}
		idle := p.claim(a) + p.claim(b)
		for range 200 {
			motions := rapid.Uint32Range(0, 8).Draw(t, "motions")
			hits := rapid.Uint32Range(0, motions).Draw(t, "hits")
			a.Blame, _ = p.judgement(a.Blame, &Attendance{With: hits, Against: motions - hits})
			b.Blame, _ = p.judgement(b.Blame, &Attendance{With: motions - hits, Against: hits})
			if p.claim(a)+p.claim(b) > idle {
				t.Fatalf("%+v and %+v claim more than %d", a, b, idle)
			}
		}
	})
	var pair [2]Score
	for e := range 4_000 {
		for i := range pair {
			pair[i], _ = p.judgement(pair[i], &Attendance{With: uint32((e + i) % 2 * 4), Against: uint32((e + i + 1) % 2 * 4)})
		}
	}
	if mean := (pair[0] + pair[1]) / 2; mean < MaxScore*13/20 {
		t.Errorf("a split identity ends with a blame of %d; guessing ends at two thirds", mean)
	}
}

func TestContestedHasWeightOnBothSides(t *testing.T) {
	p := DefaultParams()
	for _, c := range []struct {
		with, against, total uint64
		want                 bool
	}{
		{70, 0, 100, false},  // unanimous
		{70, 9, 100, false},  // hardly any against
		{70, 10, 100, true},  //
		{34, 33, 100, true},  //
		{34, 34, 100, false}, // rejected by a third, and as many approve
		{34, 60, 100, false}, //
		{33, 20, 100, false}, // rejected by less than a third
		{33, 20, 99, false},  // or by a third
		{33, 20, 98, true},   //
		{0, 0, 0, false},
	} {
		if got := p.Contested(c.with, c.against, c.total); got != c.want {
			t.Errorf("%d with and %d against, of %d: %v", c.with, c.against, c.total, got)
		}
	}
}

func TestNothingCountsOnceTheOutcomeIsClear(t *testing.T) {
	cast := func(height uint64, with bool) Cast { return Cast{Height: height, Weight: 10, With: with} }
	for name, c := range map[string]struct {
		needed uint64
		casts  []Cast
		want   []bool
	}{
		"none":                     {70, nil, []bool{}},
		"all in one block":         {30, []Cast{cast(1, true), cast(1, true), cast(1, true), cast(1, false)}, []bool{true, true, true, true}},
		"half is clear":            {40, []Cast{cast(1, true), cast(2, true), cast(3, true), cast(3, false)}, []bool{true, true, false, false}},
		"half of an odd number":    {41, []Cast{cast(1, true), cast(2, true), cast(3, true), cast(4, true)}, []bool{true, true, true, false}},
		"the other side is no way": {40, []Cast{cast(1, false), cast(2, false), cast(3, false), cast(4, true)}, []bool{true, true, true, true}},
	} {
		if got := Counted(c.needed, c.casts); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParametersOfJudgementAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"blame of 15":              func(p *Params) { p.Blame = 15 },
		"no with":                  func(p *Params) { p.With = 0 },
		"no against":               func(p *Params) { p.Against = 0 },
		"no silent":                func(p *Params) { p.Silent = 0 },
		"no judged":                func(p *Params) { p.Judged = 0 },
		"errors cheaper than hits": func(p *Params) { p.Against = p.With + 1 },
		"and than silence":         func(p *Params) { p.Silent = p.Against - 1 },
		"no contest":               func(p *Params) { p.Contest = Ratio{} },
		"contest above half":       func(p *Params) { p.Contest = Ratio{Num: 51, Den: 100} },
		"answer above the window":  func(p *Params) { p.Answer = Ratio{Num: 2, Den: 1} },
	} {
		p := DefaultParams()
		if change(&p); p.Check() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
