package trust_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

var (
	ann = aweigh.Sum([]byte("ann"))
	bob = aweigh.Sum([]byte("bob"))
	cyd = aweigh.Sum([]byte("cyd"))
)

func founded(a aweigh.AnchorID, s trust.Score) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Founded, Score: s}
}

// named is the anchor of a number.
func named(i int) aweigh.AnchorID { return aweigh.Sum([]byte(fmt.Sprintf("anchor %d", i))) }

// founders is a ledger of n founders with half of full trust.
func founders(n int) trust.Ledger {
	var l trust.Ledger
	for i := range n {
		l = l.Apply(trust.DefaultParams(), founded(named(i), 500_000))
	}
	return l
}

func lied(a aweigh.AnchorID) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Equivocated, Epoch: 3, Height: 7, Proof: aweigh.Sum([]byte("proof"))}
}

func attested(a aweigh.AnchorID, s trust.Score) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Attested, Score: s, Height: 8}
}

func readmitted(a aweigh.AnchorID) trust.Evidence {
	return trust.Evidence{Anchor: a, Kind: trust.Readmitted, Height: 9}
}

func TestEvidenceMovesScoresAsItsKindSays(t *testing.T) {
	p := trust.DefaultParams()
	for _, c := range []struct {
		name          string
		evidence      []trust.Evidence // the last one is looked at
		before, after trust.Score
		barred        bool
		reason        string
	}{
		{"founding gives the score of the genesis", []trust.Evidence{founded(ann, 500_000)}, 0, 500_000, false, "genesis gives 500000"},
		{"founding above the top gives the top", []trust.Evidence{founded(ann, 2_000_000)}, 0, trust.MaxScore, false, "genesis gives 1000000"},
		{"founding twice changes nothing", []trust.Evidence{founded(ann, 5), founded(ann, 9)}, 5, 5, false, "ignored"},
		{"a lie costs everything", []trust.Evidence{founded(ann, 700_000), lied(ann)}, 700_000, 0, true, "two conflicting ballots"},
		{"a second lie changes nothing", []trust.Evidence{founded(ann, 7), lied(ann), lied(ann)}, 0, 0, true, "barred already"},
		{"a motion sets the score", []trust.Evidence{founded(ann, 7), attested(ann, 9)}, 7, 9, false, "sets 9"},
		{"a motion sets no more than the top", []trust.Evidence{founded(ann, 7), attested(ann, 1<<31)}, 7, trust.MaxScore, false, "sets 1000000"},
		{"a motion on the score lifts no bar", []trust.Evidence{founded(ann, 7), lied(ann), attested(ann, 9)}, 0, 0, true, "barred"},
		{"readmission starts from the initial score", []trust.Evidence{founded(ann, 700_000), lied(ann), readmitted(ann)}, 0, p.Initial, false, "starting again"},
		{"readmission of an honest anchor changes nothing", []trust.Evidence{founded(ann, 7), readmitted(ann)}, 7, 7, false, "not barred"},
		{"founding anew washes no lie away", []trust.Evidence{founded(ann, 7), lied(ann), founded(ann, 9)}, 0, 0, true, "ignored"},
		{"an unknown kind changes nothing", []trust.Evidence{founded(ann, 7), {Anchor: ann, Kind: 99}}, 7, 7, false, "not a kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, changes := trust.Ledger{}.ApplyExplained(p, c.evidence...)
			if len(changes) != len(c.evidence) {
				t.Fatalf("%d pieces of evidence, %d changes", len(c.evidence), len(changes))
			}
			got := changes[len(changes)-1]
			want := c.evidence[len(c.evidence)-1]
			if got.Before != c.before || got.After != c.after || got.Evidence != want || got.Epoch != want.Epoch {
				t.Errorf("change %+v, want %d -> %d", got, c.before, c.after)
			}
			if !strings.Contains(got.Reason, c.reason) || !strings.Contains(got.String(), got.Reason) {
				t.Errorf("%q does not say %q", got, c.reason)
			}
			if s, ok := l.Standing(ann); !ok || s.Score != c.after || s.Barred != c.barred {
				t.Errorf("standing %+v, %v", s, ok)
			}
		})
	}
}

func TestEvidenceAboutNonMembersGivesNoStanding(t *testing.T) {
	p := trust.DefaultParams()
	l, changes := trust.Ledger{}.ApplyExplained(p, lied(ann), attested(bob, 9), readmitted(cyd), founded(aweigh.AnchorID{}, 9))
	if l.Len() != 0 {
		t.Errorf("%d standings of keys that are not in the roster", l.Len())
	}
	for _, c := range changes {
		if !strings.HasPrefix(c.Reason, "ignored") {
			t.Errorf("%s", c)
		}
	}
}

// TestEvidenceHasItsName: a hash for each, whatever the field in which it differs.
func TestEvidenceHasItsName(t *testing.T) {
	e := trust.Evidence{Anchor: ann, Kind: trust.Attended}
	names := map[aweigh.Hash]bool{e.Hash(): true}
	for _, change := range []func(*trust.Evidence){
		func(e *trust.Evidence) { e.Anchor = bob },
		func(e *trust.Evidence) { e.Kind = trust.Admitted },
		func(e *trust.Evidence) { e.Score = 1 },
		func(e *trust.Evidence) { e.Epoch = 1 },
		func(e *trust.Evidence) { e.Height = 1 },
		func(e *trust.Evidence) { e.Proof = bob },
		func(e *trust.Evidence) { e.Record.Late = 1 },
		func(e *trust.Evidence) { e.Record.Silent = 1 },
		func(e *trust.Evidence) { e.Sponsor = bob },
	} {
		other := e
		change(&other)
		if h := other.Hash(); names[h] || h != other.Hash() {
			t.Errorf("%+v has the hash of another", other)
		} else {
			names[h] = true
		}
	}
}

func TestWeightLiesBetweenFloorAndCeiling(t *testing.T) {
	p := trust.DefaultParams()
	for score, want := range map[trust.Score]uint64{0: 100, 1: 100, 500_000: 550, 999_999: 999, trust.MaxScore: 1000} {
		if got := p.Weight(score); got != want {
			t.Errorf("score %d weighs %d, want %d", score, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p.Floor = rapid.Uint64Range(1, quorum.MaxTotal).Draw(t, "floor")
		p.Ceiling = rapid.Uint64Range(p.Floor, quorum.MaxTotal).Draw(t, "ceiling")
		s := trust.Score(rapid.Uint32Range(0, uint32(trust.MaxScore)).Draw(t, "score"))
		exact := new(big.Int).Mul(new(big.Int).SetUint64(p.Ceiling-p.Floor), big.NewInt(int64(s)))
		exact.Div(exact, big.NewInt(int64(trust.MaxScore)))
		if want := p.Floor + exact.Uint64(); p.Weight(s) != want {
			t.Fatalf("weight %d, exactly %d", p.Weight(s), want)
		}
	})
}

func TestBarredAnchorsWeighNothing(t *testing.T) {
	p := trust.DefaultParams()
	l := trust.Ledger{}.Apply(p, founded(ann, 0), founded(bob, 0), lied(bob))
	w, err := l.Next(p, 0, quorum.Weights{})
	if err != nil || w.Of(ann) != p.Floor || w.Of(bob) != 0 || w.Len() != 1 {
		t.Errorf("ann %d, bob %d, %d anchors, %v", w.Of(ann), w.Of(bob), w.Len(), err)
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	good := trust.DefaultParams()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	r := func(num, den uint32) trust.Ratio { return trust.Ratio{Num: num, Den: den} }
	for _, c := range []struct {
		says  string
		spoil func(*trust.Params)
	}{
		{"floor is 0", func(p *trust.Params) { p.Floor = 0 }},
		{"ceiling 99 is below floor 100", func(p *trust.Params) { p.Ceiling = p.Floor - 1 }},
		{"ceiling 4294967296 is above", func(p *trust.Params) { p.Ceiling = quorum.MaxTotal + 1 }},
		{"initial 1000001 is above", func(p *trust.Params) { p.Initial = trust.MaxScore + 1 }},
		{"gain 1000001 is above", func(p *trust.Params) { p.Gain = trust.MaxScore + 1 }},
		{"rest 1000001 is above", func(p *trust.Params) { p.Rest = trust.MaxScore + 1 }},
		{"lead 1000001 is above", func(p *trust.Params) { p.Lead = trust.MaxScore + 1 }},
		{"idle 1000001 is above", func(p *trust.Params) { p.Idle = trust.MaxScore + 1 }},
		{"decay is 0", func(p *trust.Params) { p.Decay = 0 }},
		{"decay 1/31 takes up to 32259 of a full score, more than gain 31250", func(p *trust.Params) { p.Decay = 31 }},
		{"absence is 0", func(p *trust.Params) { p.Absence = 0 }},
		{"whole is 0", func(p *trust.Params) { p.Whole = 0 }},
		{"surety is 0", func(p *trust.Params) { p.Surety = 0 }},
		{"share 1/3 is not below 1/3; one anchor alone could stop", func(p *trust.Params) { p.Share = r(1, 3) }},
		{"share 0/5", func(p *trust.Params) { p.Share = r(0, 5) }},
		{"share 1/0", func(p *trust.Params) { p.Share = r(1, 0) }},
		{"share 1/1001 has a denominator above 1000", func(p *trust.Params) { p.Share = r(1, 1001) }},
		{"sponsored 0/0", func(p *trust.Params) { p.Sponsored = r(0, 0) }},
		{"sponsored 334/1000 is not below 1/3", func(p *trust.Params) { p.Sponsored = r(334, 1000) }},
		{"churn 0/10", func(p *trust.Params) { p.Churn = r(0, 10) }},
		{"churn 11/10 is not above 0 and at most 1", func(p *trust.Params) { p.Churn = r(11, 10) }},
	} {
		p := good
		c.spoil(&p)
		if err := p.Check(); !errors.Is(err, trust.ErrParams) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
		if _, err := founders(1).Next(p, 0, quorum.Weights{}); !errors.Is(err, trust.ErrParams) {
			t.Errorf("weights by bad parameters: %v", err)
		}
	}
	for name, widen := range map[string]func(*trust.Params){
		"a share of its own":      func(p *trust.Params) { p.Share = r(333, 1000) },
		"no bound on changes":     func(p *trust.Params) { p.Churn = r(1, 1) },
		"no probation":            func(p *trust.Params) { p.Probation, p.SuretyEpochs = 0, 0 },
		"one head, one vote":      func(p *trust.Params) { p.Floor, p.Ceiling = 1, 1 },
		"scores that stand still": func(p *trust.Params) { p.Gain, p.Decay = 0, 1<<32-1 },
	} {
		p := good
		widen(&p)
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w, err := founders(9).Next(p, 0, quorum.Weights{}); err != nil || w.Len() != 9 {
			t.Errorf("%s: %d anchors, %v", name, w.Len(), err)
		}
	}
}

func TestShareGoesBySize(t *testing.T) {
	p, own := trust.DefaultParams(), trust.DefaultParams()
	own.Share = trust.Ratio{Num: 1, Den: 10}
	for n, want := range map[int][2]string{
		1: {"1/1", "1/1"}, 3: {"1/3", "1/3"}, 4: {"3/10", "1/4"}, 6: {"3/10", "1/6"}, 7: {"1/5", "1/7"},
		9: {"1/5", "1/9"}, 10: {"1/5", "1/10"}, 128: {"1/5", "1/10"},
	} {
		if got := [2]string{p.ShareOf(n).String(), own.ShareOf(n).String()}; got != want {
			t.Errorf("%d anchors: %v, want %v", n, got, want)
		}
	}
}

func TestSumsAreBounded(t *testing.T) {
	good := trust.DefaultParams()
	huge := good
	huge.Floor, huge.Ceiling = quorum.MaxTotal, quorum.MaxTotal
	if _, err := (trust.Ledger{}).Apply(huge, founded(ann, 1), founded(bob, 1)).Next(huge, 0, quorum.Weights{}); !errors.Is(err, quorum.ErrWeights) {
		t.Errorf("a sum that is too large: %v", err)
	}
}

// anEvidence draws evidence of any kind about a few anchors.
func anEvidence(t *rapid.T) trust.Evidence {
	return trust.Evidence{
		Anchor: rapid.SampledFrom([]aweigh.AnchorID{ann, bob, cyd, aweigh.Sum([]byte("dee"))}).Draw(t, "anchor"),
		Kind:   trust.EvidenceKind(rapid.Uint8Range(0, 10).Draw(t, "kind")),
		Score:  trust.Score(rapid.Uint32Range(0, 1_200_000).Draw(t, "score")),
		Epoch:  aweigh.Epoch(rapid.Uint64Range(0, 9).Draw(t, "epoch")),
		Height: aweigh.Height(rapid.Uint64Range(0, 99).Draw(t, "height")),
		Record: trust.Attendance{
			Blocks: rapid.Uint32Range(0, 100).Draw(t, "blocks"), Timely: rapid.Uint32Range(0, 60).Draw(t, "timely"),
			Late: rapid.Uint32Range(0, 20).Draw(t, "late"), Led: rapid.Uint32Range(0, 9).Draw(t, "led"), Nullified: rapid.Uint32Range(0, 9).Draw(t, "idle"),
		},
		Sponsor: rapid.SampledFrom([]aweigh.AnchorID{ann, bob, cyd, {}}).Draw(t, "sponsor"),
	}
}

// TestReplayGivesTheSameLedger applies a history at once, in pieces cut
// anywhere, and through the encoding: always the same scores and weights.
func TestReplayGivesTheSameLedger(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(rapid.Custom(anEvidence), 0, 30).Draw(t, "history")
		cut := rapid.IntRange(0, len(history)).Draw(t, "cut")
		whole, changes := trust.Ledger{}.ApplyExplained(p, history...)
		half := trust.Ledger{}.Apply(p, history[:cut]...)
		before := half.Digest()
		again, err := trust.DecodeLedger(half.Encode())
		if err != nil {
			t.Fatal(err)
		}
		again = again.Apply(p, history[cut:]...)
		if again.Digest() != whole.Digest() || !bytes.Equal(again.Encode(), whole.Encode()) {
			t.Fatal("the replayed ledger differs")
		}
		if half.Apply(p, history[cut:]...).Digest() != whole.Digest() {
			t.Fatal("the ledger grown in two steps differs")
		}
		if half.Digest() != before {
			t.Fatal("applying evidence changed the ledger it started from")
		}
		w, err := whole.Next(p, 9, quorum.Weights{})
		w2, err2 := again.Next(p, 9, quorum.Weights{})
		if (err != nil && !errors.Is(err, trust.ErrRoster)) || (err == nil) != (err2 == nil) || w.Hash() != w2.Hash() {
			t.Fatalf("weights differ: %v, %v", err, err2)
		}
		// The changes alone give the scores as well.
		scores := make(map[aweigh.AnchorID]trust.Score)
		for _, c := range changes {
			if scores[c.Evidence.Anchor] != c.Before {
				t.Fatalf("%s, but the score was %d", c, scores[c.Evidence.Anchor])
			}
			scores[c.Evidence.Anchor] = c.After
		}
		for s := range whole.All() {
			if s.Score != scores[s.Anchor] || s.Score > trust.MaxScore {
				t.Fatalf("standing %+v, by its changes %d", s, scores[s.Anchor])
			}
		}
	})
}

// TestOrderOfFoundersDoesNotMatter shuffles the genesis.
func TestOrderOfFoundersDoesNotMatter(t *testing.T) {
	p := trust.DefaultParams()
	rapid.Check(t, func(t *rapid.T) {
		genesis := []trust.Evidence{founded(ann, 1), founded(bob, 500_000), founded(cyd, 500_000), founded(named(4), 400_000)}
		want := trust.Ledger{}.Apply(p, genesis...)
		got := trust.Ledger{}.Apply(p, rapid.Permutation(genesis).Draw(t, "order")...)
		if got.Digest() != want.Digest() {
			t.Fatal("digests differ")
		}
		if w, _ := got.Next(p, 0, quorum.Weights{}); w.Of(bob) != w.Of(cyd) || w.Of(ann) >= w.Of(bob) {
			t.Fatal("equal scores must weigh the same, and lower ones less")
		}
		if !slices.IsSortedFunc(slices.Collect(got.All()), func(a, b trust.Standing) int {
			return bytes.Compare(a.Anchor[:], b.Anchor[:])
		}) {
			t.Fatal("standings are not in order")
		}
	})
}

func TestOnlyLedgersDecode(t *testing.T) {
	type s = trust.Standing
	lo, hi := ann, bob
	if bytes.Compare(lo[:], hi[:]) > 0 {
		lo, hi = hi, lo
	}
	for name, bad := range map[string][]s{
		"out of order": {{Anchor: hi}, {Anchor: lo}},
		"twice":        {{Anchor: lo}, {Anchor: lo}},
		"no anchor":    {{}},
		"too high":     {{Anchor: lo, Score: trust.MaxScore + 1}},
		"barred":       {{Anchor: lo, Score: 1, Barred: true}},
	} {
		if _, err := trust.DecodeLedger(canon.Encode(bad)); !errors.Is(err, trust.ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range [][]byte{nil, {0xa0}, {0x80, 0x80}, {0xf6}} {
		if _, err := trust.DecodeLedger(bad); !errors.Is(err, trust.ErrLedger) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func FuzzDecodeLedger(f *testing.F) {
	p := trust.DefaultParams()
	f.Add(trust.Ledger{}.Encode())
	f.Add(trust.Ledger{}.Apply(p, founded(ann, 5), founded(bob, 6), lied(bob)).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := trust.DecodeLedger(data)
		if err != nil {
			if !errors.Is(err, trust.ErrLedger) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(l.Encode(), data) {
			t.Fatal("two encodings of one ledger")
		}
		if w, err := l.Next(p, 0, quorum.Weights{}); err != nil && !errors.Is(err, trust.ErrRoster) && l.Len() < 1<<20 || w.Len() > l.Len() {
			t.Fatal(err)
		}
	})
}
