package trust

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAttendanceMovesScores(t *testing.T) {
	for _, c := range []struct {
		name   string
		before Score
		record Attendance
		after  Score
		reason string
	}{
		{"all of it", 500_000, Attendance{Blocks: 64, Timely: 64}, 523_438,
			"attended: 64 of 64 in time, 0 late: +31250 gain, -7812 decay, -0 absence"},
		{"most of it", 500_000, Attendance{Blocks: 64, Timely: 60, Late: 2, Led: 9}, 522_997,
			"attended: 60 of 64 in time, 2 late: +29785 gain, -7812 decay, -976 absence, +2000 led 9 of 9"},
		{"all late is half the gain", 500_000, Attendance{Blocks: 64, Late: 64}, 507_813,
			"attended: 0 of 64 in time, 64 late: +15625 gain, -7812 decay, -0 absence"},
		{"none of it", 500_000, Attendance{Blocks: 64}, 460_938,
			"attended: 0 of 64 in time, 0 late: +0 gain, -7812 decay, -31250 absence"},
		{"a quarter of an epoch", 500_000, Attendance{Blocks: 16, Timely: 16}, 505_859,
			"attended: 16 of 16 in time, 0 late: +7812 gain, -1953 decay, -0 absence"},
		{"many blocks earn no more", 500_000, Attendance{Blocks: 64_000, Timely: 64_000}, 523_438,
			"attended: 64000 of 64000 in time, 0 late: +31250 gain, -7812 decay, -0 absence"},
		{"an epoch without blocks", 500_000, Attendance{}, 500_000,
			"attended: 0 of 0 in time, 0 late: +0 gain, -0 decay, -0 absence"},
		{"views that gave nothing", 500_000, Attendance{Blocks: 64, Timely: 64, Led: 1, Nullified: 3}, 517_938,
			"attended: 64 of 64 in time, 0 late: +31250 gain, -7812 decay, -0 absence, +500 led 1 of 4, -6000 idle"},
		{"up to the top", 999_999, Attendance{Blocks: 64, Timely: 64}, 1_000_000,
			"attended: 64 of 64 in time, 0 late: +31250 gain, -15624 decay, -0 absence, up to 1000000"},
		{"absence ends at rest", 51_000, Attendance{Blocks: 64}, 50_000,
			"attended: 0 of 64 in time, 0 late: +0 gain, -796 decay, -204 absence (to rest at 50000)"},
		{"absence below rest", 20_000, Attendance{Blocks: 64}, 20_000,
			"attended: 0 of 64 in time, 0 late: +0 gain, -0 decay, -0 absence (to rest at 20000)"},
		{"leading nothing goes below rest", 50_000, Attendance{Blocks: 64, Nullified: 1}, 42_000,
			"attended: 0 of 64 in time, 0 late: +0 gain, -0 decay, -0 absence (to rest at 50000), +0 led 0 of 1, -8000 idle"},
		{"and down to 0", 3_000, Attendance{Blocks: 64, Nullified: 1}, 0,
			"attended: 0 of 64 in time, 0 late: +0 gain, -0 decay, -0 absence (to rest at 3000), +0 led 0 of 1, -8000 idle, down to 0"},
		{"more ballots than blocks", 500_000, Attendance{Blocks: 64, Timely: 60, Late: 5}, 500_000,
			"ignored: attended, but 65 ballots for 64 blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, reason := attended(DefaultParams(), Standing{Score: c.before}, c.record)
			if after.Score != c.after || after.Blame != 0 || reason != c.reason {
				t.Errorf("%+v, want %d\n%s\n%s", after, c.after, reason, c.reason)
			}
		})
	}
}

// someParams draws Params that pass Check, extremes included.
func someParams(t *rapid.T) Params {
	p := DefaultParams()
	score := func(name string) Score { return Score(rapid.Uint32Range(0, uint32(MaxScore)).Draw(t, name)) }
	count := func(name string) uint32 {
		return rapid.OneOf(rapid.Uint32Range(1, 100), rapid.Uint32Min(1)).Draw(t, name)
	}
	p.Decay, p.Absence, p.Whole = count("decay"), count("absence"), count("whole")
	p.Gain = score("gain")
	if p.Decay <= uint32(MaxScore) {
		p.Gain = max(p.Gain, (MaxScore+Score(p.Decay)-1)/Score(p.Decay)) // the least that Check takes
	}
	p.Rest, p.Lead, p.Idle = score("rest"), score("lead"), score("idle")
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

func someRecord(t *rapid.T) Attendance {
	n := rapid.OneOf(rapid.Uint32Range(0, 200), rapid.Uint32())
	r := Attendance{Blocks: n.Draw(t, "blocks"), Led: n.Draw(t, "led"), Nullified: n.Draw(t, "idle")}
	r.Timely = rapid.Uint32Range(0, r.Blocks).Draw(t, "timely")
	r.Late = rapid.Uint32Range(0, r.Blocks-r.Timely).Draw(t, "late")
	return r
}

func someScore(t *rapid.T) Score {
	return Score(rapid.Uint32Range(0, uint32(MaxScore)).Draw(t, "score"))
}

// TestAttendanceIsItsFormula compares with exact fractions: seven divisions are
// rounded down, each by less than 1.
func TestAttendanceIsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someParams(t), someRecord(t), someScore(t)
		after, reason := attend(p, s, r)
		if exact := exactAttend(p, s, r); !within(rat(uint64(after)), exact, 4) {
			t.Fatalf("%d, exactly %.3f: %s", after, float(exact), reason)
		}
	})
}

var terms = regexp.MustCompile(`([+-])(\d+) (gain|decay|absence|led|idle)`)

// TestReasonCanBeRedone adds up what a reason says.
func TestReasonCanBeRedone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someParams(t), someRecord(t), someScore(t)
		after, reason := attend(p, s, r)
		sum := int64(s)
		for _, m := range terms.FindAllStringSubmatch(reason, -1) {
			n, err := strconv.ParseInt(m[1]+m[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if strings.HasSuffix(reason, ", down to 0") && sum < 0 {
			sum = 0
		}
		if strings.HasSuffix(reason, ", up to 1000000") && sum > int64(MaxScore) {
			sum = int64(MaxScore)
		}
		if sum != int64(after) {
			t.Fatalf("%d -> %d, but the reason makes it %d: %s", s, after, sum, reason)
		}
	})
}

// TestTakingPartInEverythingNeverCosts: for every policy and length of the
// epoch, an anchor that misses nothing and leads well ends no lower.
func TestTakingPartInEverythingNeverCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r, s := someParams(t), someRecord(t), someScore(t)
		r.Timely, r.Late, r.Nullified = r.Blocks, 0, 0
		if after, reason := attend(p, s, r); after < s {
			t.Fatalf("%d -> %d: %s", s, after, reason)
		}
	})
}

// TestMoreIsNeverWorse: a ballot more, or in time instead of late, or a view
// more that became final, never costs; nor does a higher score before.
func TestMoreIsNeverWorse(t *testing.T) {
	p := DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		r, s := someRecord(t), someScore(t)
		was, _ := attend(p, s, r)
		better := r
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			if r.Timely+r.Late < r.Blocks {
				better.Late++
			}
		case 1:
			if r.Late > 0 {
				better.Late--
				better.Timely++
			}
		case 2:
			if r.Nullified > 0 {
				better.Nullified--
				better.Led = min(better.Led, 1<<31) + 1
				r.Led = better.Led - 1
				was, _ = attend(p, s, r)
			}
		case 3:
			if r.Nullified > 0 {
				better.Nullified--
			}
		case 4:
			s = min(s+Score(rapid.Uint32Range(0, 1_000).Draw(t, "more")), MaxScore)
		}
		if now, reason := attend(p, s, better); now+2 < was { // two roundings may differ
			t.Fatalf("%+v gives %d, and %+v %d: %s", r, was, better, now, reason)
		}
	})
}

// TestShortEpochsEarnNoMore cuts a whole epoch into short ones. An anchor that takes
// part in everything earns no more by it. One that does not is forgiven no more than
// the compound of its losses, 1/2 of their square: 0.31 % of the score at the worst.
func TestShortEpochsEarnNoMore(t *testing.T) {
	p := DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		s := someScore(t)
		whole := Attendance{Blocks: 64, Timely: 64, Led: 16}
		once, _ := attend(p, s, whole)
		full, part, faulty := s, s, whole
		faulty.Timely, faulty.Led = 0, 0
		for left := uint32(64); left > 0; {
			n := rapid.Uint32Range(1, left).Draw(t, "blocks")
			left -= n
			full, _ = attend(p, full, Attendance{Blocks: n, Timely: n, Led: 1})
			missed := rapid.Uint32Range(0, n).Draw(t, "missed")
			part, _ = attend(p, part, Attendance{Blocks: n, Timely: n - missed})
			faulty.Timely += n - missed
		}
		if full > once {
			t.Fatalf("%d -> %d in one epoch, and %d in many", s, once, full)
		}
		whole = faulty
		once, _ = attend(p, s, whole)
		if most := uint64(once) + uint64(max(s, once))*31/10_000 + 200; uint64(part) > most {
			t.Fatalf("%d -> %d in one epoch, and %d in many", s, once, part)
		}
	})
}
