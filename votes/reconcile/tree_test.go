package reconcile

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
)

func id(n int) aweigh.Hash { return aweigh.Sum(binary.BigEndian.AppendUint64(nil, uint64(n))) }

// near is a name that shares the first digits with all other such names.
func near(n, digits int) aweigh.Hash {
	h, start := id(n), aweigh.Sum([]byte("near"))
	for i := range digits / 2 {
		h[i] = start[i]
	}
	return h
}

func setOf(ids ...aweigh.Hash) Set {
	var t Tree
	for _, id := range ids {
		t.Add(id)
	}
	return t.Snapshot()
}

func names(s Set) (all []aweigh.Hash) {
	s.All(aweigh.Hash{}, func(id aweigh.Hash) bool {
		all = append(all, id)
		return true
	})
	return all
}

// drawID draws names that are spread evenly, some of them alike for long.
func drawID(t *rapid.T) aweigh.Hash {
	n := rapid.IntRange(0, 400).Draw(t, "name")
	return near(n, rapid.SampledFrom([]int{0, 0, 4, 20, 60}).Draw(t, "alike"))
}

// TestTreeIsASet compares a tree with a map, and snapshots with what they were.
func TestTreeIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree Tree
		want := make(map[aweigh.Hash]bool)
		type past struct {
			set  Set
			want []aweigh.Hash
		}
		var pasts []past
		sorted := func() (all []aweigh.Hash) {
			for id := range want {
				all = append(all, id)
			}
			slices.SortFunc(all, compare)
			return all
		}
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			id := drawID(t)
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				pasts = append(pasts, past{tree.Snapshot(), sorted()})
			case 1, 2, 3:
				if tree.Remove(id) != want[id] {
					t.Fatal("remove")
				}
				delete(want, id)
			case 4: // from there on
				if len(pasts) > 0 {
					p := pasts[rapid.IntRange(0, len(pasts)-1).Draw(t, "past")]
					tree, want = p.set.Tree(), make(map[aweigh.Hash]bool)
					for _, id := range p.want {
						want[id] = true
					}
				}
			default:
				if tree.Add(id) == want[id] {
					t.Fatal("add")
				}
				want[id] = true
			}
			if tree.Len() != len(want) || tree.Has(id) != want[id] {
				t.Fatalf("%d names, want %d", tree.Len(), len(want))
			}
		}
		pasts = append(pasts, past{tree.Snapshot(), sorted()})
		for _, p := range pasts {
			if got := names(p.set); !slices.Equal(got, p.want) || p.set.Len() != len(got) {
				t.Fatalf("%d names, want %d", len(got), len(p.want))
			}
			if fresh := setOf(p.want...); fresh.Fingerprint() != p.set.Fingerprint() {
				t.Fatal("the fingerprint depends on the past")
			}
			prefix := Prefix{}
			from := drawID(t)
			for range rapid.IntRange(0, 10).Draw(t, "depth") {
				prefix = prefix.kid(digit(&from, int(prefix.n)))
			}
			in := slices.DeleteFunc(slices.Clone(p.want), func(id aweigh.Hash) bool { return !prefix.holds(&id) })
			v := p.set.at(prefix)
			if v.len() != len(in) {
				t.Fatalf("%s: %d names, want %d", prefix, v.len(), len(in))
			}
			if v.len() <= leafSize && v.hash() != setOf(in...).Fingerprint() {
				t.Fatalf("%s: the fingerprint is not that of its names", prefix)
			}
			in = slices.DeleteFunc(in, func(id aweigh.Hash) bool { return compare(id, from) < 0 })
			var got []aweigh.Hash
			v.all(prefix, from, func(id aweigh.Hash) bool { got = append(got, id); return true })
			if !slices.Equal(got, in) {
				t.Fatalf("%s from %s: %d names, want %d", prefix, from, len(got), len(in))
			}
		}
	})
}

// TestFingerprintsFollowFromTheSetAlone: whatever the order, and whatever was
// there in between; and another set has another.
func TestFingerprintsFollowFromTheSetAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, leafSize, leafSize + 1, 1000} {
		for _, alike := range []int{0, 62} {
			var ids []aweigh.Hash
			for i := range n {
				ids = append(ids, near(i, alike))
			}
			slices.SortFunc(ids, compare)
			ids = slices.Compact(ids)
			want := setOf(ids...).Fingerprint()
			for range 5 {
				var tree Tree
				for _, i := range r.Perm(len(ids)) {
					tree.Add(ids[i])
					tree.Add(id(-1 - i))
					if i%7 == 0 {
						tree.Snapshot()
					}
				}
				for _, i := range r.Perm(len(ids)) {
					tree.Remove(id(-1 - i))
				}
				if tree.Snapshot().Fingerprint() != want {
					t.Fatalf("%d names: the fingerprint depends on the past", n)
				}
				if tree.Add(id(-1)); tree.Snapshot().Fingerprint() == want {
					t.Fatalf("%d names: one more has the same fingerprint", n)
				}
			}
		}
	}
}

func TestMinusIsTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b, want []aweigh.Hash
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for _, n := range r.Perm(4000)[:rapid.SampledFrom([]int{0, 5, 100, 3000}).Draw(t, "size")] {
			id := near(n, n%2*20)
			switch n % 5 {
			case 0:
				a, want = append(a, id), append(want, id)
			case 1:
				b = append(b, id)
			default:
				a, b = append(a, id), append(b, id)
			}
		}
		var got []aweigh.Hash
		setOf(a...).Minus(setOf(b...), func(id aweigh.Hash) bool { got = append(got, id); return true })
		slices.SortFunc(want, compare)
		if !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%d names, want %d", len(got), len(want))
		}
	})
}

func TestPrefixesHaveOneForm(t *testing.T) {
	h := id(1)
	p := Prefix{}
	for n := 0; ; n++ {
		back, err := parsePrefix(p.append(nil))
		if err != nil || back != p || !p.holds(&h) || int(p.n) != n {
			t.Fatalf("%s comes back as %s: %v", p, back, err)
		}
		if n == maxDepth {
			break
		}
		kid := p.kid(digit(&h, n))
		if parent, d := kid.parent(); parent != p || d != digit(&h, n) {
			t.Fatalf("%s is below %s, digit %d", kid, parent, d)
		}
		p = kid
	}
	for _, b := range [][]byte{{}, {1}, {1, 0x11}, {2, 1, 1}, {0, 0}, {65}, append([]byte{65}, make([]byte, 33)...)} {
		if p, err := parsePrefix(b); err == nil {
			t.Errorf("%x is taken for %s", b, p)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	var t Tree
	n := 0
	for range 1_000_000 {
		t.Add(id(n))
		n++
	}
	t.Snapshot()
	b.Run("without fingerprints", func(b *testing.B) {
		for b.Loop() {
			t.Add(id(n))
			n++
		}
	})
	b.Run("with fingerprints", func(b *testing.B) {
		for b.Loop() {
			t.Add(id(n))
			t.Snapshot()
			n++
		}
	})
}
