package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

const (
	bad  = "abCDEFGHI"  // a and b warn, and the others carry it
	back = "ABCDEFGHIJ" // all agree
)

// carried opens a motion of some author and has it carried.
func (w *assembly) carried(author byte, says string, m func() Mutation) votes.MotionID {
	w.t.Helper()
	w.author = testKey(w.t, author)
	id := w.propose(m())
	w.say(id, says)
	if got := w.fate(id); got != "carried" {
		w.t.Fatalf("a motion is %s", got)
	}
	return id
}

// writes is carried, of a motion with these operations.
func (w *assembly) writes(author byte, says string, ops ...Op) votes.MotionID {
	w.t.Helper()
	return w.carried(author, says, func() Mutation { return w.ops(ops...) })
}

// warned are the anchors with credit for a motion; "-" if no motion has reversed it, "" if none is remembered.
func (w *assembly) warned(id votes.MotionID) (names string) {
	w.t.Helper()
	all, err := w.state.Warnings()
	if err != nil {
		w.t.Fatalf("reading the warnings: %v", err)
	}
	at := slices.IndexFunc(all, func(x Warning) bool { return x.Motion == id })
	switch {
	case at < 0:
		return ""
	case all[at].Reversal == nil:
		return "-"
	}
	for _, a := range all[at].Reversal.Credited {
		names += string(rune('a' + slices.IndexFunc(w.keys, func(k votes.PrivateKey) bool { return k.Public().ID() == a })))
	}
	return names
}

// blame is that of an anchor.
func (w *assembly) blame(anchor int) trust.Score {
	w.t.Helper()
	l, err := w.state.Ledger()
	if err != nil {
		w.t.Fatalf("reading the ledger: %v", err)
	}
	s, _ := l.Standing(w.keys[anchor].Public().ID())
	return s.Blame
}

// ends ends the epoch, and returns the evidence about warnings in it.
func (w *assembly) ends() (all []trust.Change) {
	w.t.Helper()
	for before := w.state.Head().Under; w.state.Head().Under == before; {
		w.now = w.now.Add(1)
		for _, c := range w.execute(NewBlock(w.block(nil).Header, nil, Evidence{})).Trust {
			if c.Evidence.Kind == trust.Warned {
				all = append(all, c)
			}
		}
	}
	return all
}

// TestP55ReversalsCreditWarnings: the end of the epoch takes from those that had warned what the ballots against the
// motion added, once, and says why. Those that had carried it lose nothing.
func TestP55ReversalsCreditWarnings(t *testing.T) {
	w := newCouncil(t)
	w.writes(50, back, put("/secrets/a", "good"))
	first := w.writes(51, bad, put("/secrets/a", "bad"))
	if got := w.warned(first); got != "-" {
		t.Fatalf("before the reversal: %q", got)
	}
	w.ends()
	if w.blame(0) != 7812 || w.blame(1) != 7812 || w.blame(2) != 0 {
		t.Fatalf("the warnings gave blame %d, %d, and %d", w.blame(0), w.blame(1), w.blame(2))
	}
	before, err := w.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	second := w.writes(52, back, put("/secrets/a", "good"))
	if got := w.warned(first); got != "ab" {
		t.Fatalf("credited are %q", got)
	}
	changes := w.ends()
	want := fmt.Sprintf("warned: of motion %s, which motion %s reversed; blame 7812 -> 0: -7812", first.Short(), second.Short())
	if len(changes) != 2 || changes[0].Reason != want || changes[1].Reason != want {
		t.Fatalf("%v, want %q twice", changes, want)
	}
	for i := range w.keys {
		if w.blame(i) != 0 {
			t.Errorf("anchor %d has blame %d", i, w.blame(i))
		}
	}
	var evidence []trust.Evidence
	for _, c := range changes {
		evidence = append(evidence, c.Evidence)
	}
	again := before.Apply(w.g.Policy.Trust, evidence...)
	for s := range again.All() {
		if now, _ := w.state.Ledger(); true {
			if is, _ := now.Standing(s.Anchor); is.Blame != s.Blame {
				t.Errorf("replayed, the blame is %d, not %d", s.Blame, is.Blame)
			}
		}
	}
	if again := w.ends(); len(again) != 0 {
		t.Errorf("credit comes again: %v", again)
	}
}

// TestP55CreditIsWhatItCost: in an epoch with more contested motions than count, each ballot costs less, and gives no
// more credit, whether that comes with the end of the same epoch or of a later one.
func TestP55CreditIsWhatItCost(t *testing.T) {
	w := newCouncil(t, func(p *Policy) { p.EpochBlocks = 60 })
	w.skip = true
	for i := range 8 {
		w.writes(51, bad, put(fmt.Sprint("/secrets/", i), "bad"))
	}
	undo := func(i int) { w.writes(52, back, del(fmt.Sprint("/secrets/", i), "")) }
	undo(0)
	if w.ends(); w.blame(0) != 31_250-3_906 {
		t.Fatalf("eight ballots, one of them credited, give blame %d", w.blame(0))
	}
	undo(1)
	undo(2)
	if w.ends(); w.blame(0) != 31_250-3*3_906 || w.blame(1) != w.blame(0) {
		t.Errorf("two more leave %d", w.blame(0))
	}
}

// TestP55WhatReverses: a motion reverses another one if it restores all that this one had changed, and nothing less.
func TestP55WhatReverses(t *testing.T) {
	a, b, c := "/secrets/a", "/secrets/b", "/secrets/c"
	ops := func(all ...Op) []Op { return all }
	for name, x := range map[string]struct {
		first []Op
		then  [][]Op
		want  bool
	}{
		"the value before":              {ops(put(a, "2")), [][]Op{ops(put(a, "1"))}, true},
		"another value":                 {ops(put(a, "2")), [][]Op{ops(put(a, "3"))}, false},
		"a deletion of what was made":   {ops(put(c, "2")), [][]Op{ops(del(c, ""))}, true},
		"a deletion of what was there":  {ops(put(a, "2")), [][]Op{ops(del(a, ""))}, false},
		"a deleted key, made anew":      {ops(del(a, "")), [][]Op{ops(put(a, "1"))}, true},
		"a range, made anew":            {ops(del(a, "/secrets/z")), [][]Op{ops(put(a, "1"), put(b, "1"))}, true},
		"one key of two":                {ops(put(a, "2"), put(b, "2")), [][]Op{ops(put(a, "1"))}, false},
		"both, one after the other":     {ops(put(a, "2"), put(b, "2")), [][]Op{ops(put(a, "1")), ops(put(b, "1"))}, false},
		"both at once":                  {ops(put(a, "2"), put(b, "2")), [][]Op{ops(put(b, "1"), put(a, "1"))}, true},
		"more than that":                {ops(put(a, "2")), [][]Op{ops(put(a, "1"), put(b, "7"))}, true},
		"what it did change":            {ops(put(a, "1"), put(b, "2")), [][]Op{ops(put(b, "1"))}, true},
		"after another change":          {ops(put(a, "2")), [][]Op{ops(put(a, "3")), ops(put(a, "1"))}, true},
		"what was restored already":     {ops(put(a, "2")), [][]Op{ops(put(a, "1"), put(b, "3")), ops(put(a, "1"))}, true},
		"another key":                   {ops(put(a, "2")), [][]Op{ops(put(b, "1"))}, false},
		"an empty value for no key":     {ops(put(c, "2")), [][]Op{ops(put(c, ""))}, false},
		"a motion that changed nothing": {ops(put(a, "1")), [][]Op{ops(put(a, "1"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCouncil(t, func(p *Policy) { p.EpochBlocks = 100 })
			w.writes(50, back, put(a, "1"), put(b, "1"))
			id := w.writes(51, bad, x.first...)
			for _, ops := range x.then {
				w.writes(52, back, ops...)
			}
			if got := w.warned(id); (got == "ab") != x.want || got != "ab" && got != "-" && got != "" {
				t.Errorf("credited are %q", got)
			}
		})
	}
	t.Run("a rollback", func(t *testing.T) {
		w := newCouncil(t)
		w.writes(50, back, put(a, "1"))
		rev := w.state.Head().Revision
		id := w.writes(51, bad, put(a, "2"))
		w.carried(52, back, func() Mutation {
			return w.naming(Naming{Kind: Rollback, Object: w.uid(a), Key: []byte(a), From: []byte(a), Revision: rev})
		})
		if got := w.warned(id); got != "ab" {
			t.Errorf("credited are %q", got)
		}
	})
	t.Run("under an alias", func(t *testing.T) {
		w := newCouncil(t)
		w.writes(50, back, put(a, "1"))
		w.carried(50, back, func() Mutation {
			return w.naming(Naming{Kind: Bind, Key: []byte(a), To: []byte(b)})
		})
		id := w.writes(51, bad, put(a, "2"))
		w.writes(52, back, put(b, "1"))
		if got := w.warned(id); got != "ab" {
			t.Errorf("credited are %q", got)
		}
	})
}

// TestP55WhoIsCredited: without anchors that approved both motions with more than a third of the weight, another side
// has won, and no anchor has credit; nor has one that rejects the reversal too, or that asked for the motion itself.
func TestP55WhoIsCredited(t *testing.T) {
	half := func(p *Policy) { p.Approvals[0].Num, p.Approvals[0].Den = 1, 2 }
	for name, x := range map[string]struct {
		policy      func(*Policy)
		first, then string
		authors     [2]byte // 1 to 10: of an anchor
		want        string
	}{
		"all agree":                   {nil, bad, back, [2]byte{51, 52}, "ab"},
		"a warner is silent":          {nil, bad, "ACDEFGHIJ", [2]byte{51, 52}, "ab"},
		"a warner rejects everything": {nil, bad, "aBCDEFGHIJ", [2]byte{51, 52}, "b"},
		"both do":                     {nil, bad, "abCDEFGHIJ", [2]byte{51, 52}, ""},
		"a warner votes both ways":    {nil, bad, "aABCDEFGHIJ", [2]byte{51, 52}, "b"},
		"another side has won":        {half, "abcDEFGH", "ABCIJD", [2]byte{51, 52}, ""},
		"three of ten changed sides":  {half, "abcDEFGH", "ABCDEF", [2]byte{51, 52}, ""},
		"four of ten did":             {half, "abcDEFGH", "ADEFG", [2]byte{51, 52}, "abc"},
		"of one author, six of ten":   {nil, "abCDEFGHI", "ABCDEFGHJ", [2]byte{51, 51}, "ab"},
		"of one author, five of ten":  {nil, "abCDEFGHI", "ABJCDEFG", [2]byte{51, 51}, ""},
		"of an anchor that warned":    {nil, bad, back, [2]byte{51, 1}, "ab"},
		"of an anchor, against it":    {nil, bad, back, [2]byte{1, 52}, "b"},
		"once the outcome was clear":  {nil, "aCDEF/bGHI", back, [2]byte{51, 52}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*Policy)
			if x.policy != nil {
				change = append(change, x.policy)
			}
			w := newCouncil(t, append(change, func(p *Policy) { p.EpochBlocks = 100 })...)
			write := func(author byte, says, value string) votes.MotionID {
				if w.author = testKey(t, author); author <= 10 {
					w.author = w.keys[author-1]
				}
				id := w.propose(w.put("/secrets/a", value))
				for says := range strings.SplitSeq(says, "/") {
					w.say(id, says)
				}
				if got := w.fate(id); got != "carried" {
					t.Fatalf("a motion is %s", got)
				}
				return id
			}
			write(50, back, "good")
			id := write(x.authors[0], x.first, "bad")
			write(x.authors[1], x.then, "good")
			if got := w.warned(id); got != x.want {
				t.Errorf("credited are %q, want %q", got, x.want)
			}
		})
	}
}

// TestP55OnceForEachObject: of motions that go to and fro on one key, one reversal gives credit, until as many epochs
// are over as the policy sets.
func TestP55OnceForEachObject(t *testing.T) {
	w := newCouncil(t, func(p *Policy) { p.Trust.Reversal, p.EpochBlocks = 2, 60 })
	w.writes(50, back, put("/secrets/a", "0"), put("/secrets/b", "0"))
	credited := func() bool {
		t.Helper()
		id := w.writes(51, bad, put("/secrets/a", "1"))
		w.writes(52, back, put("/secrets/a", "0"))
		return w.warned(id) == "ab"
	}
	if !credited() {
		t.Fatal("the first reversal gives no credit")
	}
	for range 2 {
		if credited() {
			t.Fatal("another reversal of the same key gives credit again")
		}
		id := w.writes(51, bad, put("/secrets/a", "1"), put("/secrets/b", "1"))
		w.writes(52, back, put("/secrets/a", "0"), put("/secrets/b", "0"))
		if w.warned(id) == "ab" {
			t.Fatal("another key beside it gives credit")
		}
		w.ends()
	}
	w.ends()
	if !credited() {
		t.Error("after two epochs, a reversal gives no credit")
	}
}

// TestP55WithinSoManyEpochs: what is reversed later gives no credit, and is not remembered; nor is anything if the
// policy says 0.
func TestP55WithinSoManyEpochs(t *testing.T) {
	for _, x := range []struct {
		epochs uint32
		after  int
		want   string
	}{{0, 0, ""}, {1, 0, "ab"}, {1, 1, "ab"}, {1, 2, ""}, {3, 3, "ab"}, {3, 4, ""}} {
		w := newCouncil(t, func(p *Policy) { p.Trust.Reversal, p.EpochBlocks = x.epochs, 30 })
		w.writes(50, back, put("/secrets/a", "good"))
		id := w.writes(51, bad, put("/secrets/a", "bad"))
		for range x.after {
			w.ends()
		}
		w.writes(52, back, put("/secrets/a", "good"))
		if got := w.warned(id); got != x.want {
			t.Errorf("%d epochs after, of %d: credited are %q", x.after, x.epochs, got)
		}
		for range x.epochs + 1 {
			w.ends()
		}
		if all, err := w.state.Warnings(); err != nil || len(all) != 0 {
			t.Errorf("of %d epochs: %d are still remembered, %v", x.epochs, len(all), err)
		}
	}
}

// TestP55FewAreRemembered: the oldest that is not reversed gives way.
func TestP55FewAreRemembered(t *testing.T) {
	w := newCouncil(t, func(p *Policy) { p.EpochBlocks = 1_000 })
	w.skip = true
	var ids []votes.MotionID
	for i := range maxWarnings {
		ids = append(ids, w.writes(51, bad, put(fmt.Sprint("/secrets/", i), "1")))
	}
	w.writes(52, back, del("/secrets/0", ""))
	last := w.writes(51, bad, put("/secrets/last", "1"))
	if w.warned(ids[0]) != "ab" || w.warned(ids[1]) != "" || w.warned(ids[2]) != "-" || w.warned(last) != "-" {
		t.Errorf("%q, %q, %q, %q", w.warned(ids[0]), w.warned(ids[1]), w.warned(ids[2]), w.warned(last))
	}
	var ops []Op
	for i := range warningObjects + 1 {
		ops = append(ops, put(fmt.Sprint("/secrets/more/", i), "1"))
	}
	if id := w.writes(51, bad, ops...); w.warned(id) != "" {
		t.Error("a motion about too many keys is remembered")
	}
	w.checkDigest()
}

// TestP55PoliciesAreReversed: by another policy that has the fields as they were; the credit comes once that policy
// holds.
func TestP55PoliciesAreReversed(t *testing.T) {
	for name, x := range map[string]struct {
		change func(p *Policy) // of the policy that comes after
		want   string
	}{
		"as it was":             {func(p *Policy) { p.EpochBlocks = 40 }, "ab"},
		"with another change":   {func(p *Policy) { p.EpochBlocks, p.Limits.Anchors = 40, 77 }, "ab"},
		"with something else":   {func(p *Policy) { p.EpochBlocks = 42 }, "-"},
		"another field instead": {func(p *Policy) { p.Limits.Anchors = 77 }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCouncil(t)
			decide := func(by int, says string, change func(p *Policy)) votes.MotionID {
				t.Helper()
				e, err := w.state.Epoch()
				if err != nil {
					t.Fatal(err)
				}
				p := e.Policy
				change(&p)
				w.author = w.keys[by]
				id := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0].Mutation
				w.say(id, says)
				if got := w.fate(id); got != "carried" {
					t.Fatalf("the policy is %s", got)
				}
				return id
			}
			first := decide(2, "abDEFGHI", func(p *Policy) { p.EpochBlocks = 41 })
			w.ends()
			decide(3, "ABCEFGHIJ", x.change)
			if got := w.warned(first); got != x.want {
				t.Fatalf("credited are %q", got)
			}
			if got := w.ends(); len(got) != 0 {
				t.Fatalf("credit comes before the policy holds: %v", got)
			}
			if got := w.ends(); len(got) != len(strings.ReplaceAll(x.want, "-", "")) {
				t.Fatalf("%v", got)
			}
		})
	}
}

// TestP55DismissedDecisionsReverseNothing: a policy that could not take effect is neither remembered nor a reversal.
func TestP55DismissedDecisionsReverseNothing(t *testing.T) {
	w := newCouncil(t)
	w.writes(50, back, put("/secrets/a", "good"))
	first := w.writes(51, bad, put("/secrets/a", "bad"))
	second := w.writes(52, back, put("/secrets/a", "good"))
	w.now = w.now.Add(1)
	s, err := w.state.Begin()
	if err != nil {
		t.Fatal(err)
	}
	x := newExecution(s, w.block(nil))
	x.begin(&CheckedMutation{})
	if err := x.unwarn(second); err != nil {
		t.Fatal(err)
	}
	if all, err := x.warnings(); err != nil || len(all) != 1 || all[0].Motion != first || all[0].Reversal != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := x.unwarn(first); err != nil {
		t.Fatal(err)
	}
	if all, err := x.warnings(); err != nil || len(all) != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
}

// TestP55SnapshotsCarryWarnings: a node that takes a snapshot remembers the same motions, and a bent record is refused.
func TestP55SnapshotsCarryWarnings(t *testing.T) {
	w := newCouncil(t)
	w.writes(51, bad, put("/secrets/a", "bad"))
	w.now = w.now.Add(1)
	b := w.block(nil)
	w.execute(b)
	w.now = w.now.Add(1)
	good := w.take(b.Header, 1<<20)
	into, err := good.restore()
	if err != nil {
		t.Fatal(err)
	}
	prefix := w.state.space.at(atWarning)
	if a, b := kept(w.r, prefix), kept(into, prefix); !slices.Equal(a, b) || len(a) == 0 {
		t.Fatalf("%q, %q", a, b)
	}
	for i, r := range good.records {
		if r.Key[0] == atWarning {
			records := slices.Clone(good.records)
			records[i].Value = slices.Clone(r.Value)
			records[i].Value[len(r.Value)/2] ^= 1
			if _, err := (taken{h: good.h, child: good.child, records: records}).restore(); !errors.Is(err, ErrInvalid) {
				t.Errorf("a bent record: %v", err)
			}
		}
	}
}
