package votes

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// blank is a store without content.
type blank struct{}

func (blank) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (blank) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

// disk is what survives a crash.
func disk(ops ...kv.Op) *kv.Overlay {
	d := kv.NewOverlay(blank{})
	d.Apply(ops...)
	return d
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func open(t fataler, k PrivateKey, r kv.Reader) *Guard {
	t.Helper()
	g, err := OpenGuard(k, home, r)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return g
}

func signs(t fataler, g *Guard, d *kv.Overlay, s quorum.Subject) Ballot {
	t.Helper()
	b, ops, err := g.Sign(s)
	if err != nil {
		t.Fatalf("sign %v: %v", s, err)
	}
	d.Apply(ops...)
	return b
}

func TestGuardSignsOnceAndRepeatsItself(t *testing.T) {
	w := newWorld(t, Ed25519, 1)
	d := disk()
	g := open(t, w.keys[0], d)
	first := signs(t, g, d, notarizeA)
	if _, err := w.Check(first); err != nil {
		t.Fatal(err)
	}
	for range 2 { // in this life and in the next
		b, ops, err := g.Sign(notarizeA)
		if err != nil || len(ops) > 0 || !bytes.Equal(b.Encode(), first.Encode()) {
			t.Errorf("the same subject again: %v, %d writes, %v", b, len(ops), err)
		}
		g = open(t, w.keys[0], d)
	}
}

func TestGuardNeverContradictsItself(t *testing.T) {
	finalizeB := finalizeA
	finalizeB.Block = fill(0xbb)
	later := notarizeB
	later.View++
	for name, c := range map[string]struct {
		before, then quorum.Subject
		want         error
	}{
		"two notarize":             {notarizeA, notarizeB, ErrConflict},
		"two finalize":             {finalizeA, finalizeB, ErrConflict},
		"finalize after nullify":   {nullify7, finalizeA, ErrConflict},
		"nullify after finalize":   {finalizeA, nullify7, ErrConflict},
		"nullify after notarize":   {notarizeA, nullify7, nil},
		"notarize after nullify":   {nullify7, notarizeA, nil},
		"finalize of another":      {notarizeA, finalizeB, nil},
		"another block, next view": {notarizeA, later, nil},
		"nonsense":                 {notarizeA, quorum.Subject{Kind: 9, View: 7, Block: fill(1)}, ErrMalformed},
	} {
		k := keyOf(t, Ed25519, 1)
		d := disk()
		g := open(t, k, d)
		signs(t, g, d, c.before)
		for _, g := range []*Guard{g, open(t, k, d)} {
			b, ops, err := g.Sign(c.then)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", name, err, c.want)
			}
			if err != nil && (b.Signature != nil || ops != nil) {
				t.Errorf("%s: refused and signed all the same", name)
			}
		}
	}
}

func TestRecordIsInOrderAndPruned(t *testing.T) {
	k := keyOf(t, Ed25519, 1)
	d := disk()
	g := open(t, k, d)
	want := []quorum.Subject{
		{Kind: quorum.Notarize, View: 2, Block: fill(1)}, {Kind: quorum.Nullify, View: 2},
		{Kind: quorum.Notarize, View: 3, Block: fill(2)}, {Kind: quorum.Finalize, View: 300, Block: fill(3)},
	}
	for _, i := range []int{3, 1, 2, 0} {
		signs(t, g, d, want[i])
	}
	check := func(want []quorum.Subject) {
		t.Helper()
		for _, g := range []*Guard{g, open(t, k, d)} {
			var got []quorum.Subject
			for _, v := range g.Record() {
				got = append(got, v.Subject)
			}
			if !slices.Equal(got, want) {
				t.Errorf("record %v, want %v", got, want)
			}
		}
	}
	check(want)
	ops := g.Prune(3)
	torn := disk(d.Ops()...)
	torn.Apply(ops[0]) // the floor comes first, so that a torn prune has taken place
	if n := len(open(t, k, torn).Record()); n != 2 {
		t.Errorf("%d votes on record after half a prune, want 2", n)
	}
	d.Apply(ops...)
	check(want[2:])
	if ops := g.Prune(2); ops != nil {
		t.Errorf("the floor fell: %v", ops)
	}
	if _, _, err := open(t, k, d).Sign(quorum.Subject{Kind: quorum.Nullify, View: 2}); !errors.Is(err, ErrTooOld) {
		t.Errorf("below the floor: %v", err)
	}
	d.Apply(g.Prune(1000)...)
	check(nil)
	var left int
	if err := d.Scan(nil, nil, false, func(_, _ []byte) bool { left++; return true }); err != nil || left != 1 {
		t.Errorf("%d keys left, want the floor alone (%v)", left, err)
	}
}

func TestEpochsAndScopesHaveRecordsOfTheirOwn(t *testing.T) {
	k := keyOf(t, Ed25519, 1)
	d := disk()
	signs(t, open(t, k, d), d, notarizeA)
	for _, change := range []func(*Domain){func(d *Domain) { d.Epoch++ }, func(d *Domain) { d.Epoch-- }, func(d *Domain) { d.Scope = fill(3) }} {
		other := home
		change(&other)
		g, err := OpenGuard(k, other, d)
		if err != nil {
			t.Fatal(err)
		}
		signs(t, g, d, notarizeB)
	}
	if n := len(open(t, k, d).Record()); n != 1 {
		t.Errorf("%d votes on record, want 1", n)
	}
}

func TestLostStateSilencesForTheEpoch(t *testing.T) {
	w := newWorld(t, Ed25519, 2)
	k := w.keys[0]
	d := disk()
	g := open(t, k, d)
	signs(t, g, d, notarizeA)
	backup := disk(d.Ops()...)
	later := signs(t, g, d, quorum.Subject{Kind: quorum.Finalize, View: 9, Block: fill(9)})
	checked := func(b Ballot) Checked {
		c, err := w.Check(b)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	g = open(t, k, backup)
	for name, b := range map[string]Ballot{"of its record": g.record[0], "of another anchor": w.ballot(1, notarizeB)} {
		if ops, lost := g.Witness(checked(b)); lost || len(ops) > 0 || g.Lost() {
			t.Errorf("a ballot %s shows no loss", name)
		}
	}
	ops, lost := g.Witness(checked(later))
	if !lost || len(ops) == 0 {
		t.Fatal("a ballot that the record does not know went unnoticed")
	}
	if again, lost := g.Witness(checked(later)); !lost || len(again) > 0 {
		t.Errorf("a loss known already: %v, %d writes", lost, len(again))
	}
	backup.Apply(ops...)
	for _, g := range []*Guard{g, open(t, k, backup)} {
		for _, s := range []quorum.Subject{later.Subject, notarizeA, {Kind: quorum.Nullify, View: 50}} {
			if _, _, err := g.Sign(s); !errors.Is(err, ErrLostState) || !g.Lost() {
				t.Errorf("%v: %v", s, err)
			}
		}
	}
	next := home
	next.Epoch++
	if g, err := OpenGuard(k, next, backup); err != nil || g.Lost() {
		t.Errorf("the loss outlasts its epoch (%v)", err)
	}
}

func TestPrunedBallotsAreNotTakenForLost(t *testing.T) {
	w := newWorld(t, Ed25519, 1)
	d := disk()
	g := open(t, w.keys[0], d)
	old := signs(t, g, d, notarizeA)
	d.Apply(g.Prune(8)...)
	c, err := w.Check(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, lost := g.Witness(c); lost {
		t.Error("a pruned ballot was taken for a lost one")
	}
}

func TestUnusableRecordsAreRefused(t *testing.T) {
	k, other := keyOf(t, Ed25519, 1), keyOf(t, Ed25519, 2)
	key := recordKey(home, 7, byte(quorum.Notarize))
	roster := home
	roster.Roster = fill(9)
	good := ballotOf(k, home, notarizeA).Encode()
	for name, op := range map[string]kv.Op{
		"garbage":          kv.Set(key, []byte("x")),
		"empty":            kv.Set(key, nil),
		"another key":      kv.Set(key, ballotOf(other, home, notarizeA).Encode()),
		"another roster":   kv.Set(key, ballotOf(k, roster, notarizeA).Encode()),
		"another place":    kv.Set(recordKey(home, 8, byte(quorum.Notarize)), good),
		"another kind":     kv.Set(recordKey(home, 7, byte(quorum.Nullify)), good),
		"a longer place":   kv.Set(append(slices.Clone(key), 0), good),
		"a short floor":    kv.Set(recordKey(home, 0, markFloor), []byte{1}),
		"an unknown mark":  kv.Set(recordKey(home, 0, 7), encodeView(1)),
		"a shorter place":  kv.Set(key[:len(key)-1], good),
		"view 0's ballots": kv.Set(recordKey(home, 0, 2), good),
	} {
		if _, err := OpenGuard(k, home, disk(op)); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenGuard(k, home, failing{}); !errors.Is(err, errDisk) {
		t.Errorf("a failing disk: %v", err)
	}
}

var errDisk = errors.New("disk on fire")

type failing struct{ blank }

func (failing) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return errDisk }

// contradict restates P7 without the code under test.
func contradict(a, b quorum.Subject) bool {
	if a.View != b.View {
		return false
	}
	switch a.Kind {
	case quorum.Nullify:
		return b.Kind == quorum.Finalize
	case quorum.Finalize:
		return b.Kind == quorum.Nullify || b.Kind == quorum.Finalize && a.Block != b.Block
	}
	return a.Kind == b.Kind && a.Block != b.Block
}

// A node gets requests to sign at random, and crashes at random: writes reach
// the disk in order, any suffix of them is lost, and a ballot leaves only
// behind its own. Of the ballots that left, no two contradict each other, and
// none is ever unknown to a later life.
func TestNoCrashMakesAGuardContradictItself(t *testing.T) {
	w := newWorld(t, Ed25519, 1)
	rapid.Check(t, func(t *rapid.T) {
		durable := disk()
		g := open(t, w.keys[0], durable)
		type step struct {
			op      *kv.Op
			departs *Ballot
		}
		var queue []step
		var left []Ballot
		flush := func(n int) {
			for _, s := range queue[:n] {
				if s.op != nil {
					durable.Apply(*s.op)
				} else {
					left = append(left, *s.departs)
				}
			}
			queue = queue[n:]
		}
		write := func(ops []kv.Op) {
			for i := range ops {
				queue = append(queue, step{op: &ops[i]})
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"sign": func(t *rapid.T) {
				s := quorum.Subject{
					Kind: quorum.Kind(rapid.IntRange(1, 3).Draw(t, "kind")),
					View: aweigh.View(rapid.IntRange(1, 5).Draw(t, "view")),
				}
				if s.Kind != quorum.Nullify {
					s.Block = fill(byte(rapid.IntRange(1, 2).Draw(t, "block")))
				}
				b, ops, err := g.Sign(s)
				if err != nil {
					if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrTooOld) {
						t.Fatalf("%v: %v", s, err)
					}
					return
				}
				write(ops)
				queue = append(queue, step{departs: &b})
			},
			"prune": func(t *rapid.T) { write(g.Prune(aweigh.View(rapid.IntRange(1, 4).Draw(t, "below")))) },
			"flush": func(t *rapid.T) { flush(rapid.IntRange(0, len(queue)).Draw(t, "n")) },
			"crash": func(t *rapid.T) {
				flush(rapid.IntRange(0, len(queue)).Draw(t, "n"))
				queue = nil
				g = open(t, w.keys[0], durable)
			},
			"": func(t *rapid.T) {
				for i, a := range left {
					for _, b := range left[:i] {
						if contradict(a.Subject, b.Subject) {
							t.Fatalf("%v and %v both left", b.Subject, a.Subject)
						}
					}
					c, err := w.Check(a)
					if err != nil {
						t.Fatalf("%v left, but: %v", a.Subject, err)
					}
					if _, lost := g.Witness(c); lost {
						t.Fatalf("%v left, and a later life does not know it", a.Subject)
					}
				}
			},
		})
	})
}
