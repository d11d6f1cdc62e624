package votes

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// unsigned is a ballot for the count, which looks at no signature.
func unsigned(voter byte, c Choice) CheckedMotionBallot {
	return CheckedMotionBallot{MotionBallot{MotionVote: vote(7, c), Voter: fill(voter), Algorithm: EdDSA, Signature: []byte{voter, byte(c)}}}
}

func electorate(t interface{ Fatal(...any) }, anchors []uint64, approvers ...Approver) Electorate {
	var shares []quorum.Share
	for i, w := range anchors {
		shares = append(shares, quorum.Share{Anchor: fill(byte(i + 1)), Weight: w})
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewElectorate(w, approvers...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var most = quorum.Rule{Num: 2, Den: 3}

// electorates and rules for the exhaustive tests; voters are 1, 2, 3.
func smallWorlds(t interface{ Fatal(...any) }) (es []Electorate, rules []quorum.Rule) {
	es = []Electorate{
		electorate(t, []uint64{1, 1, 1}),
		electorate(t, []uint64{5, 2, 1}),
		electorate(t, []uint64{2, 2}, Approver{ID: fill(3), Required: true}),
		electorate(t, []uint64{2, 2}, Approver{ID: fill(3), Weight: 3}),
		electorate(t, []uint64{1, 1, 2}, Approver{ID: fill(1), Weight: 1, Required: true}),
		electorate(t, []uint64{4}, Approver{ID: fill(2), Weight: 1}, Approver{ID: fill(3), Weight: 1, Required: true}),
	}
	rules = []quorum.Rule{most, {Num: 1, Den: 2}, {Num: 1, Den: 1}, {Num: 0, Den: 1}, {Num: 1, Den: 3, MinAnchors: 2}}
	return es[:testshort.Cases(3, len(es), len(es))], rules[:testshort.Cases(2, len(rules), len(rules))]
}

// The sets of ballots of three voters, by the votes of each: none, approve,
// reject, both.
func smallSets(visit func(set []CheckedMotionBallot, says [3]int)) {
	for n := range 64 {
		says := [3]int{n & 3, n >> 2 & 3, n >> 4}
		var set []CheckedMotionBallot
		for v, s := range says {
			for _, c := range []Choice{Approve, Reject} {
				if s&int(c) != 0 {
					set = append(set, unsigned(byte(v+1), c))
				}
			}
		}
		visit(set, says)
	}
}

func permutations(set []CheckedMotionBallot, visit func([]CheckedMotionBallot)) {
	var rec func(int)
	set = slices.Clone(set)
	rec = func(k int) {
		if k == len(set) {
			visit(set)
			return
		}
		for i := k; i < len(set); i++ {
			set[k], set[i] = set[i], set[k]
			rec(k + 1)
			set[k], set[i] = set[i], set[k]
		}
	}
	rec(0)
}

// dumb is the verdict by the words of P31 and P33, in big numbers: could the
// motion be carried by these, or by these and all silent voters?
func dumb(e Electorate, rule quorum.Rule, says func(aweigh.Hash) int) Verdict {
	carried := func(silentApprove bool) bool {
		weight, anchors := new(big.Int), 0
		for _, v := range e.voters {
			if s := says(v.ID); s == int(Approve) || s == 0 && silentApprove {
				weight.Add(weight, new(big.Int).SetUint64(v.Weight))
				if v.anchor {
					anchors++
				}
			} else if v.Required {
				return false
			}
		}
		total := new(big.Int).SetUint64(e.total)
		share := new(big.Int).Mul(weight, new(big.Int).SetUint64(rule.Den))
		enough := share.Cmp(new(big.Int).Mul(total, new(big.Int).SetUint64(rule.Num))) > 0 || weight.Cmp(total) == 0
		return enough && anchors >= int(rule.MinAnchors)
	}
	switch {
	case carried(false):
		return Carried
	case !carried(true):
		return Rejected
	}
	return Open
}

// TestMotionsAreCountedInAnyOrder: every permutation of every set of ballots of
// three voters, with every ballot twice at the end, is counted alike, and by
// the words of the rules.
func TestMotionsAreCountedInAnyOrder(t *testing.T) {
	es, rules := smallWorlds(t)
	for i, e := range es {
		for _, rule := range rules {
			smallSets(func(set []CheckedMotionBallot, says [3]int) {
				want := CountMotion(e, rule, set)
				oracle := dumb(e, rule, func(id aweigh.Hash) int { return says[id[0]-1] })
				if want.Verdict != oracle {
					t.Fatalf("electorate %d, %s, said %v: %s, not %s", i, rule, says, want, oracle)
				}
				permutations(set, func(p []CheckedMotionBallot) {
					if got := CountMotion(e, rule, append(slices.Clone(p), p...)); !reflect.DeepEqual(got, want) {
						t.Fatalf("electorate %d, %s, %v: %s, in another order %s", i, rule, p, want, got)
					}
				})
			})
		}
	}
}

// TestP31HonestVotersDecideInAnyOrder: without equivocators, closing at the
// first ballot that decides gives the result of the whole set.
func TestP31HonestVotersDecideInAnyOrder(t *testing.T) {
	es, rules := smallWorlds(t)
	closed := 0
	for i, e := range es {
		for _, rule := range rules {
			smallSets(func(set []CheckedMotionBallot, says [3]int) {
				if slices.Contains(says[:], 3) {
					return
				}
				want := CountMotion(e, rule, set).Verdict
				permutations(set, func(order []CheckedMotionBallot) {
					p := newPoll(fill(7), e, rule)
					for _, b := range append(slices.Clone(order), order...) {
						p.Record(b)
					}
					if p.Verdict() != want {
						t.Fatalf("electorate %d, %s, %v: %s, the set says %s", i, rule, order, p.Verdict(), want)
					}
					if want != Open {
						closed++
					}
				})
			})
		}
	}
	if closed == 0 {
		t.Fatal("no motion was decided")
	}
}

// TestDecisionsSurviveMoreBallots: more ballots never change a rejected motion,
// and a carried one only if a voter equivocates.
func TestDecisionsSurviveMoreBallots(t *testing.T) {
	es, rules := smallWorlds(t)
	for i, e := range es {
		for _, rule := range rules {
			smallSets(func(set []CheckedMotionBallot, a [3]int) {
				before := CountMotion(e, rule, set).Verdict
				smallSets(func(more []CheckedMotionBallot, b [3]int) {
					after := CountMotion(e, rule, append(slices.Clone(set), more...)).Verdict
					newLiar := false
					for v := range a {
						newLiar = newLiar || a[v] == int(Approve) && b[v]&int(Reject) != 0
					}
					if before == Rejected && after != Rejected || before == Carried && after != Carried && !newLiar {
						t.Fatalf("electorate %d, %s: %v is %s, with %v it is %s", i, rule, a, before, b, after)
					}
				})
			})
		}
	}
}

// TestP33EquivocationLeavesBothSides: and the whole stays the measure.
func TestP33EquivocationLeavesBothSides(t *testing.T) {
	e := electorate(t, []uint64{3, 3, 3})
	set := []CheckedMotionBallot{unsigned(1, Reject), unsigned(2, Approve), unsigned(1, Approve)}
	got := CountMotion(e, most, set)
	if got.Approve != 3 || got.Reject != 0 || got.Void != 3 || got.Total != 9 || got.Verdict != Rejected || !slices.Equal(got.Missing, []aweigh.Hash{fill(3)}) {
		t.Errorf("%+v", got)
	}
	want := MotionEquivocation{unsigned(1, Approve).b, unsigned(1, Reject).b}
	if !reflect.DeepEqual(got.Equivocations, []MotionEquivocation{want}) {
		t.Errorf("the proof is %v", got.Equivocations)
	}
	p := newPoll(fill(7), e, quorum.Rule{Num: 1, Den: 2})
	var said []Recorded
	for _, b := range set {
		said = append(said, p.Record(b))
	}
	if !slices.Equal(said, []Recorded{Counted, Counted, Equivocated}) || p.Verdict() != Open || !reflect.DeepEqual(p.equivocations(), []MotionEquivocation{want}) {
		t.Errorf("%v, %s, %v", said, p.Tally(), p.equivocations())
	}
	if r := p.Record(unsigned(1, Approve)); r != Repeated {
		t.Errorf("a third ballot: %s", r)
	}
}

// TestP34LateBallotsChangeNothing: every order of what comes after the close.
func TestP34LateBallotsChangeNothing(t *testing.T) {
	e := electorate(t, []uint64{1, 1, 1})
	for _, close := range []struct {
		name string
		do   func(*Poll)
		want Verdict
	}{
		{"carried", func(p *Poll) { p.Record(unsigned(1, Approve)); p.Record(unsigned(2, Approve)) }, Carried},
		{"rejected", func(p *Poll) { p.Record(unsigned(1, Reject)); p.Record(unsigned(2, Reject)) }, Rejected},
		{"expired", func(p *Poll) { p.Record(unsigned(1, Approve)); p.Close(Expired) }, Expired},
	} {
		smallSets(func(set []CheckedMotionBallot, _ [3]int) {
			permutations(set, func(late []CheckedMotionBallot) {
				p := newPoll(fill(7), e, quorum.Rule{Num: 1, Den: 2})
				close.do(p)
				before := p.Tally()
				if before.Verdict != close.want {
					t.Fatalf("%s: %s", close.name, before)
				}
				recorded := 0
				for _, b := range late {
					switch r := p.Record(b); r {
					case Late:
						recorded++
					case Repeated:
					default:
						t.Fatalf("%s: %s after the close", close.name, r)
					}
				}
				p.Close(Expired)
				if !reflect.DeepEqual(p.Tally(), before) || p.Verdict() != close.want || len(p.lateBallots()) != recorded {
					t.Fatalf("%s, then %v: %s, it was %s", close.name, late, p.Tally(), before)
				}
			})
		})
	}
	p := newPoll(fill(7), e, quorum.Rule{Num: 1, Den: 2})
	p.Record(unsigned(1, Approve))
	p.Record(unsigned(2, Approve))
	if r := p.Record(unsigned(1, Reject)); r != Late || len(p.equivocations()) != 1 || p.Tally().Approve != 2 {
		t.Errorf("a contradiction after the close: %s, %v", r, p.equivocations())
	}
}

func TestKeysWithoutAVoteCountNothing(t *testing.T) {
	e := electorate(t, []uint64{1, 1, 1})
	p := newPoll(fill(7), e, most)
	other := unsigned(1, Approve)
	other.b.Motion = fill(8)
	if a, b := p.Record(unsigned(9, Approve)), p.Record(other); a != NoVoter || b != NoVoter || p.Tally().Approve != 0 {
		t.Errorf("%s, %s", a, b)
	}
	if got := CountMotion(e, most, []CheckedMotionBallot{unsigned(9, Reject)}); got.Reject != 0 || len(got.Missing) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestRequiredApproversMustSign(t *testing.T) {
	e := electorate(t, []uint64{1, 1, 1}, Approver{ID: fill(9), Required: true})
	all := []CheckedMotionBallot{unsigned(1, Approve), unsigned(2, Approve), unsigned(3, Approve)}
	if got := CountMotion(e, most, all); got.Verdict != Open || !slices.Equal(got.Waiting, []aweigh.Hash{fill(9)}) {
		t.Errorf("without: %+v", got)
	}
	if got := CountMotion(e, most, append(all, unsigned(9, Approve))); got.Verdict != Carried {
		t.Errorf("with: %+v", got)
	}
	if got := CountMotion(e, most, []CheckedMotionBallot{unsigned(9, Reject)}); got.Verdict != Rejected {
		t.Errorf("against: %+v", got)
	}
}

func TestElectoratesAreSound(t *testing.T) {
	w, err := quorum.NewWeights(quorum.Share{Anchor: fill(1), Weight: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		anchors   quorum.Weights
		approvers []Approver
	}{
		{"nobody", quorum.Weights{}, nil},
		{"no weight", quorum.Weights{}, []Approver{{ID: fill(2), Required: true}}},
		{"twice", w, []Approver{{ID: fill(2), Weight: 1}, {ID: fill(3), Weight: 1}, {ID: fill(2), Weight: 1}}},
		{"for nothing", w, []Approver{{ID: fill(2)}}},
		{"too heavy", w, []Approver{{ID: fill(2), Weight: quorum.MaxTotal - 2}}},
		{"heavier than all numbers", w, []Approver{{ID: fill(2), Weight: 1<<64 - 1}}},
		{"too many", w, make([]Approver, MaxApprovers+1)},
	} {
		if _, err := NewElectorate(c.anchors, c.approvers...); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	e := electorate(t, []uint64{3}, Approver{ID: fill(1), Weight: 2}, Approver{ID: fill(0), Weight: 1})
	if weight, ok := e.Of(fill(1)); weight != 5 || !ok || e.Len() != 2 || e.Total() != 6 {
		t.Errorf("an anchor that approves too: %+v", e)
	}
	if e := electorate(t, []uint64{1, 1}); e.Carriable(quorum.Rule{Num: 1, Den: 2, MinAnchors: 3}) || !e.Carriable(quorum.Rule{Num: 1, Den: 1}) {
		t.Error("what can be carried is wrong")
	}
}

// TestMotionsDoNotDependOnThePath draws large electorates and sets, splits them
// between boxes that overlap, and merges these in any order.
func TestMotionsDoNotDependOnThePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 1_000_000), 4, 40).Draw(t, "weights")
		e := electorate(t, weights, Approver{ID: fill(200), Weight: rapid.Uint64Range(0, 9).Draw(t, "approver"), Required: true})
		rule := quorum.Rule{Num: rapid.Uint64Range(0, 100).Draw(t, "num"), Den: 100, MinAnchors: uint32(rapid.IntRange(0, 5).Draw(t, "anchors"))}
		liars := rapid.Bool().Draw(t, "liars")
		var set []CheckedMotionBallot
		for _, v := range append([]byte{200, 201}, ids(len(weights))...) {
			switch n := rapid.IntRange(0, 6).Draw(t, "says"); {
			case n == 6 && liars:
				set = append(set, unsigned(v, Approve), unsigned(v, Reject))
			case n > 0:
				set = append(set, unsigned(v, Choice(1+n%2)))
			}
		}
		boxes := make([][]CheckedMotionBallot, rapid.IntRange(1, 5).Draw(t, "boxes"))
		for _, b := range set {
			for n := rapid.IntRange(1, 3).Draw(t, "copies"); n > 0; n-- {
				at := rapid.IntRange(0, len(boxes)-1).Draw(t, "box")
				c := b // a voter may sign the same thing in several ways
				c.b.Signature = append(slices.Clone(b.b.Signature), make([]byte, n-1)...)
				boxes[at] = append(boxes[at], c)
			}
		}
		want := CountMotion(e, rule, slices.Concat(boxes...))
		var merged []CheckedMotionBallot
		for _, i := range rapid.Permutation(ints(len(boxes))).Draw(t, "order") {
			merged = append(merged, rapid.Permutation(boxes[i]).Draw(t, "box order")...)
		}
		if got := CountMotion(e, rule, merged); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s, by another path %s", want, got)
		}
		if len(want.Equivocations) > 0 {
			return
		}
		p := newPoll(fill(7), e, rule)
		for _, b := range merged {
			p.Record(b)
		}
		if p.Verdict() != want.Verdict {
			t.Fatalf("%s, one by one %s", want, p.Tally())
		}
	})
}

func ids(n int) (all []byte) {
	for i := range n {
		all = append(all, byte(i+1))
	}
	return all
}

func ints(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestMotionFaultsAreProven(t *testing.T) {
	k, other := keyOf(t, Ed25519, 1), keyOf(t, MLDSA65, 2)
	yes, no := motionBallot(t, k, vote(7, Approve), "surely"), motionBallot(t, k, vote(7, Reject), "never")
	for _, pair := range [][2]MotionBallot{{yes, no}, {no, yes}} {
		e, err := NewMotionEquivocation(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeMotionEquivocation(e.Encode())
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Fatalf("%v comes back as %v: %v", e, back, err)
		}
		if err := back.Check(home.Network, home.Scope, votersOf(k), nil); err != nil {
			t.Fatal(err)
		}
		if err := back.Check(home.Network, fill(9), votersOf(k), nil); !errors.Is(err, ErrOtherScope) {
			t.Errorf("in another scope: %v", err)
		}
		back.Reject.Signature = yes.Signature
		if err := back.Check(home.Network, home.Scope, votersOf(k), nil); !errors.Is(err, ErrForged) {
			t.Errorf("forged: %v", err)
		}
	}
	for name, b := range map[string]MotionBallot{
		"the same choice": yes, "another motion": motionBallot(t, k, vote(8, Reject), ""), "another voter": motionBallot(t, other, vote(7, Reject), ""),
	} {
		if _, err := NewMotionEquivocation(yes, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeMotionEquivocation(f *testing.F) {
	k := keyOf(f, Ed25519, 1)
	e, err := NewMotionEquivocation(motionBallot(f, k, vote(7, Approve), ""), motionBallot(f, k, vote(7, Reject), ""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(e.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeMotionEquivocation(data)
		if err == nil && string(e.Encode()) != string(data) {
			t.Fatalf("%x is another encoding of %x", data, e.Encode())
		}
	})
}

func ExampleCountMotion() {
	// Four anchors of weight 1 and a required approver, a security officer.
	w, _ := quorum.Equal(fill(1), fill(2), fill(3), fill(4))
	e, _ := NewElectorate(w, Approver{ID: fill(5), Required: true})
	set := []CheckedMotionBallot{unsigned(1, Approve), unsigned(2, Approve), unsigned(3, Approve), unsigned(4, Reject)}
	fmt.Println(CountMotion(e, most, set))
	fmt.Println(CountMotion(e, most, append(set, unsigned(5, Approve))))
	// Output:
	// open: 3 approve, 1 reject of 4, 3 needed, 1 missing
	// carried: 3 approve, 1 reject of 4, 3 needed, 0 missing
}
