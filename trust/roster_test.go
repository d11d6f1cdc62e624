package trust_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

func admitted(a, sponsor aweigh.AnchorID, e aweigh.Epoch) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Admitted, Epoch: e, Height: 1, Sponsor: sponsor, Proof: aweigh.Sum([]byte("motion"))}
}

func left(a aweigh.AnchorID, e aweigh.Epoch) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Retired, Epoch: e}
}

func caught(a aweigh.AnchorID, e aweigh.Epoch) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Equivocated, Epoch: e, Proof: aweigh.Sum([]byte("proof"))}
}

func back(a aweigh.AnchorID, e aweigh.Epoch) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Readmitted, Epoch: e}
}

// took is a whole epoch, of which the anchor took the given part of 64.
func took(a aweigh.AnchorID, part uint32, e aweigh.Epoch) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Attended, Epoch: e, Record: trust.Attendance{Blocks: 64, Timely: part}}
}

func standing(t interface{ Fatalf(string, ...any) }, l trust.Ledger, a aweigh.AnchorID) trust.Standing {
	s, ok := l.Standing(a)
	if !ok {
		t.Fatalf("no standing of %s", a.Short())
	}
	return s
}

func TestComingAndGoing(t *testing.T) {
	p := trust.DefaultParams()
	start := founders(4) // at 500,000 each
	type s = trust.Standing
	for _, c := range []struct {
		name     string
		evidence []trust.Evidence
		want     s
		reason   string // of the last change
	}{
		{"a new anchor starts low, on probation", []trust.Evidence{admitted(ann, named(0), 5)},
			s{Score: 100_000, Seated: true, Since: 5, Sponsor: named(0), Weighs: 10}, "starting from 100000, weighs from epoch 10"},
		{"admission twice changes nothing", []trust.Evidence{admitted(ann, named(0), 5), admitted(ann, named(1), 6)},
			s{Score: 100_000, Seated: true, Since: 5, Sponsor: named(0), Weighs: 10}, "in the roster already"},
		{"a founder is in already", []trust.Evidence{admitted(named(0), named(1), 5)},
			s{Score: 500_000, Seated: true}, "in the roster already"},
		{"who leaves keeps standing and score", []trust.Evidence{left(named(0), 5)},
			s{Score: 500_000}, "keeps a score of 500000"},
		{"who is evicted as well", []trust.Evidence{{Anchor: named(0), Kind: trust.Evicted, Epoch: 5}},
			s{Score: 500_000}, "evicted"},
		{"nobody leaves twice", []trust.Evidence{left(named(0), 5), left(named(0), 6)},
			s{Score: 500_000}, "not in the roster"},
		{"who returns starts low again", []trust.Evidence{left(named(0), 5), admitted(named(0), named(1), 6)},
			s{Score: 100_000, Seated: true, Since: 6, Sponsor: named(1), Weighs: 11}, "returning with 500000, starting again from 100000"},
		{"and no higher than it was", []trust.Evidence{attested(named(0), 7), left(named(0), 5), admitted(named(0), named(1), 6)},
			s{Score: 7, Seated: true, Since: 6, Sponsor: named(1), Weighs: 11}, "starting again from 7"},
		{"a liar loses its seat", []trust.Evidence{caught(named(0), 5)},
			s{Barred: true, Faulty: 70}, "barred"},
		{"also after it left", []trust.Evidence{left(named(0), 5), caught(named(0), 6)},
			s{Barred: true}, "barred"},
		{"readmission begins with probation", []trust.Evidence{caught(named(0), 5), back(named(0), 8)},
			s{Score: 100_000, Seated: true, Weighs: 13, Faulty: 70}, "starting again from 100000, weighs from epoch 13"},
		{"admission readmits", []trust.Evidence{caught(named(0), 5), admitted(named(0), named(1), 8)},
			s{Score: 100_000, Seated: true, Since: 8, Sponsor: named(1), Weighs: 13, Faulty: 70}, "readmitted, starting again from 100000"},
		{"readmission makes no new sponsor", []trust.Evidence{admitted(ann, named(0), 5), caught(ann, 6), back(ann, 9)},
			s{Score: 100_000, Seated: true, Since: 5, Sponsor: named(0), Weighs: 14}, "readmitted"},
		{"the last epoch counts for one that left in it", []trust.Evidence{left(named(0), 5), took(named(0), 0, 5)},
			s{Score: 460_938, Missed: 1}, "attended: 0 of 64"},
		{"a barred one earns nothing", []trust.Evidence{caught(named(0), 5), took(named(0), 64, 5)},
			s{Barred: true, Faulty: 70}, "ignored: attended, but the anchor is barred"},
		{"a surety from outside is ignored", []trust.Evidence{{Anchor: named(0), Kind: trust.Surety, Epoch: 5}},
			s{Score: 500_000, Seated: true}, "ignored: surety"},
		{"the last of all epochs", []trust.Evidence{admitted(ann, named(0), math.MaxUint64)},
			s{Score: 100_000, Seated: true, Since: math.MaxUint64, Sponsor: named(0), Weighs: math.MaxUint64}, "admitted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, changes := start.ApplyExplained(p, c.evidence...)
			last := changes[len(changes)-1]
			c.want.Anchor = last.Evidence.Anchor
			if got := standing(t, l, c.want.Anchor); got != c.want {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
			if !strings.Contains(last.Reason, c.reason) {
				t.Errorf("%q does not say %q", last.Reason, c.reason)
			}
			if again, err := trust.DecodeLedger(l.Encode()); err != nil || again.Digest() != l.Digest() {
				t.Errorf("read back: %v", err)
			}
		})
	}
}

func TestSponsorsAreWeighingMembers(t *testing.T) {
	p := trust.DefaultParams()
	start := founders(4).Apply(p, admitted(ann, named(0), 5), caught(named(1), 5), left(named(2), 5))
	for name, c := range map[string]struct {
		sponsor aweigh.AnchorID
		epoch   aweigh.Epoch
		reason  string
	}{
		"nobody":                          {aweigh.AnchorID{}, 6, "no sponsor stands surety"},
		"itself":                          {bob, 6, "its own sponsor"},
		"a key that is not in the roster": {cyd, 6, "not in the roster"},
		"a liar":                          {named(1), 6, "not in the roster"},
		"one that left":                   {named(2), 6, "not in the roster"},
		"one on probation":                {ann, 9, "on probation until epoch 10"},
		"one after probation":             {ann, 10, ""},
		"a founder":                       {named(0), 0, ""},
	} {
		l, changes := start.ApplyExplained(p, admitted(bob, c.sponsor, c.epoch))
		_, ok := l.Standing(bob)
		if ok != (c.reason == "") || !strings.Contains(changes[0].Reason, c.reason) {
			t.Errorf("%s: %v, %s", name, ok, changes[0].Reason)
		}
	}
}

func TestSponsorsStandSurety(t *testing.T) {
	p := trust.DefaultParams()
	start := founders(4).Apply(p, admitted(ann, named(0), 5))
	for name, c := range map[string]struct {
		before []trust.Evidence
		epoch  aweigh.Epoch
		after  trust.Score // of the sponsor
		called bool
	}{
		"at once":                          {nil, 5, 375_000, true},
		"in the last epoch of its word":    {nil, 69, 375_000, true},
		"one epoch later":                  {nil, 70, 500_000, false},
		"when the liar has left":           {[]trust.Evidence{left(ann, 6)}, 7, 375_000, true},
		"when the sponsor has left":        {[]trust.Evidence{left(named(0), 6)}, 7, 375_000, true},
		"when the sponsor lied itself":     {[]trust.Evidence{caught(named(0), 6)}, 7, 0, false},
		"not twice for one lie":            {[]trust.Evidence{caught(ann, 6)}, 7, 375_000, false},
		"not the sponsor of earlier times": {[]trust.Evidence{left(ann, 6), admitted(ann, named(1), 7)}, 8, 500_000, true},
	} {
		l, changes := start.Apply(p, c.before...).ApplyExplained(p, caught(ann, c.epoch), took(named(3), 64, c.epoch))
		if got := standing(t, l, named(0)).Score; got != c.after {
			t.Errorf("%s: the sponsor has %d, want %d", name, got, c.after)
		}
		if called := len(changes) == 3; called != c.called {
			t.Errorf("%s: %d changes", name, len(changes))
			continue
		}
		if c.called {
			s := changes[1]
			if s.Evidence.Kind != trust.Surety || s.After != s.Before-s.Before/4 || s.Epoch != c.epoch ||
				!strings.Contains(s.Reason, ann.Short()) || s.Evidence.Proof != changes[0].Evidence.Proof {
				t.Errorf("%s: %s", name, s)
			}
		}
	}
	// A founder has no sponsor.
	if _, changes := start.ApplyExplained(p, caught(named(1), 5)); len(changes) != 1 {
		t.Errorf("%d changes for a founder's lie", len(changes))
	}
}

func TestProbationWeighsNothing(t *testing.T) {
	p := trust.DefaultParams()
	l := founders(7).Apply(p, admitted(ann, named(0), 5))
	before := quorum.Weights{}
	for e := aweigh.Epoch(6); e < 14; e++ {
		w, shares, err := l.NextExplained(p, e, before)
		if err != nil {
			t.Fatal(err)
		}
		if e < 10 && (w.Of(ann) != 0 || w.Len() != 7) || e >= 10 && (w.Of(ann) != 190 || w.Len() != 8) {
			t.Errorf("epoch %d: %d, of %d anchors", e, w.Of(ann), w.Len())
		}
		seated := slices.Collect(l.Seated())
		if len(seated) != 8 || len(shares) != 8 {
			t.Fatalf("%d in the roster, %d shares", len(seated), len(shares))
		}
		for i, s := range shares {
			if s.Anchor != seated[i].Anchor || s.Weight != w.Of(s.Anchor) || (s.Weight == 0) != strings.HasPrefix(s.Why, "on probation until epoch 10") {
				t.Errorf("epoch %d: %+v", e, s)
			}
		}
	}
}

func TestNobodyLeftIsAnError(t *testing.T) {
	p := trust.DefaultParams()
	for name, l := range map[string]trust.Ledger{
		"nobody ever":       {},
		"barred":            founders(1).Apply(p, caught(named(0), 1)),
		"left":              founders(1).Apply(p, left(named(0), 1)),
		"only on probation": founders(1).Apply(p, admitted(ann, named(0), 0), left(named(0), 1)),
	} {
		if w, err := l.Next(p, 2, quorum.Weights{}); !errors.Is(err, trust.ErrRoster) || w.Len() != 0 {
			t.Errorf("%s: %d anchors, %v", name, w.Len(), err)
		}
	}
}

// TestEqualFoundersWeighTheirScore: the caps leave equals as they are.
func TestEqualFoundersWeighTheirScore(t *testing.T) {
	p := trust.DefaultParams()
	for n := 1; n <= 128; n++ {
		w, err := founders(n).Next(p, 0, quorum.Weights{})
		if err != nil {
			t.Fatal(err)
		}
		for s := range w.All() {
			if s.Weight != 550 {
				t.Fatalf("one of %d weighs %d", n, s.Weight)
			}
		}
	}
}

// TestRemovalIsImmediate: churn slows gains and losses, but keeps no liar.
func TestRemovalIsImmediate(t *testing.T) {
	p := trust.DefaultParams()
	l := founders(13)
	before, err := l.Next(p, 0, quorum.Weights{})
	if err != nil {
		t.Fatal(err)
	}
	l = l.Apply(p, caught(named(0), 1), left(named(1), 1), trust.Evidence{Anchor: named(2), Kind: trust.Evicted, Epoch: 1},
		attested(named(3), trust.MaxScore), attested(named(4), 0))
	after, shares, err := l.NextExplained(p, 2, before)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if after.Of(named(i)) != 0 {
			t.Errorf("anchor %d weighs %d", i, after.Of(named(i)))
		}
	}
	// 450 up and 450 down are asked for, 715 is a tenth of 7,150: 357 each.
	if up, down := after.Of(named(3)), after.Of(named(4)); up != 907 || down != 193 || after.Of(named(5)) != 550 {
		t.Errorf("%d, %d and %d", up, down, after.Of(named(5)))
	}
	for _, s := range shares {
		if s.Anchor == named(3) && s.Why != "score 1000000, from 550 on the way to 1000" {
			t.Errorf("%+v", s)
		}
	}
}

// TestFirstWeightIsAtLeastOne: however little may change, an anchor past
// probation decides with the others, and no other weight moves for it.
func TestFirstWeightIsAtLeastOne(t *testing.T) {
	p := trust.DefaultParams()
	p.Probation, p.Churn = 0, trust.Ratio{Num: 1, Den: 1000}
	l := founders(10).Apply(p, attested(named(0), 0), attested(named(1), 0), attested(named(3), 0), attested(named(4), 0))
	before, _ := founders(10).Next(p, 0, quorum.Weights{})
	after, err := l.Apply(p, admitted(ann, named(2), 0)).Next(p, 1, before)
	if err != nil || after.Of(ann) != 1 || after.Of(named(0)) != 549 || after.Of(named(1)) != 549 {
		t.Errorf("a first weight of %d, and %d and %d of 550; %v", after.Of(ann), after.Of(named(0)), after.Of(named(1)), err)
	}
}

// TestSafetyCapsGoBeforeSmoothness: three equals become four, and then five lose
// one. At once no anchor may hold more than the cap of the new size, whatever
// the bound on churn; but the change goes no farther than that.
func TestSafetyCapsGoBeforeSmoothness(t *testing.T) {
	p := trust.DefaultParams()
	p.Probation = 0
	l := founders(3)
	three, _ := l.Next(p, 0, quorum.Weights{})
	l = l.Apply(p, admitted(ann, named(0), 0), attested(ann, trust.MaxScore))
	four, err := l.Next(p, 1, three)
	if err != nil {
		t.Fatal(err)
	}
	var changed uint64
	for s := range four.All() {
		if 10*s.Weight > 3*four.Total() {
			t.Errorf("%d of %d is above 3/10", s.Weight, four.Total())
		}
		changed += max(s.Weight, three.Of(s.Anchor)) - min(s.Weight, three.Of(s.Anchor))
	}
	// The new one needs a ninth of the weight of the three, 184, which is more
	// than a tenth of it, 165.
	if changed <= three.Total()/10 || four.Of(ann) < 183 || four.Of(ann) > 190 || changed > 200 {
		t.Errorf("changes of %d, the new one weighs %d", changed, four.Of(ann))
	}
	two, err := l.Apply(p, caught(named(0), 1), caught(named(1), 1)).Next(p, 2, four)
	if err != nil || two.Of(ann) != two.Of(named(2)) || two.Len() != 2 {
		t.Errorf("two weigh %d and %d, %v", two.Of(ann), two.Of(named(2)), err)
	}
}

// TestSharesSayWhy looks at the words for each rule that can stand between a
// score and a weight.
func TestSharesSayWhy(t *testing.T) {
	p := trust.DefaultParams()
	bring := func(founding, more int) trust.Ledger {
		l := founders(founding)
		for i := range more {
			l = l.Apply(p, admitted(named(100+i), named(0), 0), attested(named(100+i), 500_000))
		}
		return l
	}
	for _, c := range []struct {
		ledger trust.Ledger
		anchor aweigh.AnchorID
		why    string
	}{
		{bring(4, 0), named(0), "score 500000"},
		{bring(4, 0).Apply(p, attested(ann, 0), attested(named(1), trust.MaxScore)), named(1), "score 1000000, no anchor holds more than 3/10"},
		{bring(3, 0).Apply(p, attested(named(1), 0)), named(0), "score 500000, 3 anchors weigh the same"},
		{bring(8, 8), named(101), "score 500000, one sponsor's anchors hold no more than 1/4"},
		{bring(1, 10), named(101), "score 500000, one sponsor's anchors hold 850/1000, for want of others"},
		{bring(8, 8).Apply(p, attested(named(101), trust.MaxScore)), named(0), "score 500000"},
	} {
		_, shares, err := c.ledger.NextExplained(p, 9, quorum.Weights{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(shares, func(s trust.Share) bool { return s.Anchor == c.anchor })
		if at < 0 || shares[at].Why != c.why {
			t.Errorf("%+v, want %q", shares[at], c.why)
		}
	}
}

func TestFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 9), 0, 8).Draw(t, "weights")
		need := rapid.Uint64Range(0, 80).Draw(t, "need")
		shares := make([]quorum.Share, len(weights))
		for i, n := range weights {
			shares[i] = quorum.Share{Anchor: named(i), Weight: n}
		}
		w, err := quorum.NewWeights(shares...)
		if err != nil {
			t.Fatal(err)
		}
		want := len(weights) + 1
		for set := range 1 << len(weights) { // every subset
			var sum uint64
			n := 0
			for i := range weights {
				if set>>i&1 == 1 {
					sum += weights[i]
					n++
				}
			}
			if sum >= need {
				want = min(want, n)
			}
		}
		if got := trust.Fewest(w, need); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestLedgersThatNothingLeadsTo(t *testing.T) {
	type s = trust.Standing
	lo, hi := ann, bob
	if bytes.Compare(lo[:], hi[:]) > 0 {
		lo, hi = hi, lo
	}
	good := []s{{Anchor: lo, Seated: true}, {Anchor: hi, Sponsor: lo, Since: 3, Weighs: 8}}
	if _, err := trust.DecodeLedger(canon.Encode(good)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]s{
		"barred with a seat":                          {Anchor: hi, Barred: true, Seated: true},
		"admitted by nobody":                          {Anchor: hi, Since: 3, Weighs: 8},
		"admitted by itself":                          {Anchor: hi, Sponsor: hi, Since: 3, Weighs: 8},
		"admitted by a key that is not in the roster": {Anchor: hi, Sponsor: cyd, Since: 3, Weighs: 8},
		"weighs at its admission":                     {Anchor: hi, Sponsor: lo, Since: 3, Weighs: 3},
		"weighs before it":                            {Anchor: hi, Sponsor: lo, Since: 3, Weighs: 0},
	} {
		if _, err := trust.DecodeLedger(canon.Encode([]s{good[0], bad})); !errors.Is(err, trust.ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
