package keytree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
)

// keys are of few bytes, so that they begin like others, and often are others.
func keys() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0x7f, 0x80, 0xff}), 0, 4).Draw(t, "key")
	})
}

// list is the model of a tree: digests by key.
type list map[string]aweigh.Hash

func (l list) sorted() []string {
	var keys []string
	for k := range l {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// root is that of the definition, by the keys alone and without a tree.
func (l list) root(keys []string) aweigh.Hash {
	switch len(keys) {
	case 0:
		return aweigh.Hash{}
	case 1:
		d := l[keys[0]]
		return sha256.Sum256(append(append([]byte{0, 0}, d[:]...), keys[0]...))
	}
	bits := make([]string, len(keys))
	for i, k := range keys {
		bits[i] = written(k)
	}
	for b := uint32(0); ; b++ {
		i := slices.IndexFunc(bits, func(k string) bool { return k[b] == '1' })
		if i <= 0 {
			continue
		}
		left, right := l.root(keys[:i]), l.root(keys[i:])
		sum := append(binary.BigEndian.AppendUint32([]byte{1}, b), left[:]...)
		return sha256.Sum256(append(sum, right[:]...))
	}
}

// written is a key's bits as text, in the words of the package comment.
func written(key string) string {
	var s strings.Builder
	for _, c := range []byte(key) {
		fmt.Fprintf(&s, "1%08b", c)
	}
	return s.String() + "0"
}

// drawChanges draws changes, and makes them in a model.
func drawChanges(t *rapid.T, model list) (changes []Change) {
	for range rapid.IntRange(0, 12).Draw(t, "changes") {
		c := Change{Leaf: Leaf{Key: keys().Draw(t, "key")}, Gone: rapid.IntRange(0, 2).Draw(t, "gone") == 0}
		if c.Gone {
			delete(model, string(c.Key))
		} else {
			c.Digest = aweigh.Sum([]byte{rapid.Byte().Draw(t, "digest")})
			model[string(c.Key)] = c.Digest
		}
		changes = append(changes, c)
	}
	return changes
}

// build draws a tree that many changes made, and its model.
func build(t *rapid.T) (Tree, list) {
	tree, model := Tree{}, list{}
	for range rapid.IntRange(0, 6).Draw(t, "blocks") {
		tree = tree.With(drawChanges(t, model))
	}
	return tree, model
}

// check compares a tree with its model, by its root, its size, and what its nodes say.
func (l list) check(t rapid.TB, tree Tree) {
	sorted := l.sorted()
	want := l.root(sorted)
	if tree.Root() != want || tree.Len() != len(sorted) {
		t.Fatalf("%d keys with root %s, and by the definition %d with %s", tree.Len(), tree.Root(), len(sorted), want)
	}
	p, err := tree.Prove(nil, nil, len(sorted))
	if err != nil {
		t.Fatal(err)
	}
	if root, err := p.Root(); err != nil || root != want || len(p.Leaves) != len(sorted) {
		t.Fatalf("the nodes have %d keys with root %s, and by the definition %d with %s: %v", len(p.Leaves), root, len(sorted), want, err)
	}
}

func TestTreeIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, model := build(t)
		model.check(t, tree)
	})
}

// TestTreesStayAsTheyAre makes trees from any of those made before, and looks at them in any order.
func TestTreesStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trees, models := []Tree{{}}, []list{{}}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			from := rapid.IntRange(0, len(trees)-1).Draw(t, "from")
			model := maps.Clone(models[from])
			trees = append(trees, trees[from].With(drawChanges(t, model)))
			models = append(models, model)
			look := rapid.IntRange(0, len(trees)-1).Draw(t, "look")
			models[look].check(t, trees[look])
		}
		for i := range trees {
			models[i].check(t, trees[i])
		}
	})
}

// TestTreesAreSharedSafely has readers of many versions beside a writer; the race detector looks on.
func TestTreesAreSharedSafely(t *testing.T) {
	tree, model := Tree{}, list{}
	var readers sync.WaitGroup
	for i := range 40 {
		k := key(i % 9)
		c := Change{Leaf: Leaf{Key: k, Digest: aweigh.Sum(fmt.Append(nil, i))}, Gone: i%7 == 6}
		if tree = tree.With([]Change{c}); c.Gone {
			delete(model, string(k))
		} else {
			model[string(k)] = c.Digest
		}
		seen, want := tree, maps.Clone(model)
		readers.Go(func() {
			for range 5 {
				want.check(t, seen)
			}
		})
	}
	readers.Wait()
}

// TestDeepTreesCostTheirNodes changes all keys of a tree that is as deep as it has keys, many times together: the work
// is that of the nodes, not of each key's way.
func TestDeepTreesCostTheirNodes(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, 1000)
	var changes []Change
	for i := range len(long) {
		for j := range 8 {
			k := bytes.Clone(long[:i+1])
			k[i] ^= 1 << j
			changes = append(changes, Change{Leaf: Leaf{Key: k, Digest: aweigh.Sum(k)}})
		}
	}
	begin := time.Now()
	tree := Tree{}.With(slices.Clone(changes))
	for i := range changes {
		changes[i].Digest = aweigh.Sum(changes[i].Digest[:])
	}
	updated := tree.With(slices.Clone(changes))
	for i := range changes {
		changes[i].Gone = i%2 == 0
	}
	half := updated.With(slices.Clone(changes))
	if took := time.Since(begin); took > 2*time.Second { // 80 ms alone; by each key's way 6 s
		t.Errorf("%d keys took %v", len(changes), took)
	}
	if half.Len() != len(changes)/2 || updated.Len() != len(changes) {
		t.Errorf("%d and %d keys", half.Len(), updated.Len())
	}
}

// TestKeysThatAreGoneFreeTheirPlaces deletes nearly all of many keys.
func TestKeysThatAreGoneFreeTheirPlaces(t *testing.T) {
	const n = 2 * slack
	full, some := Tree{}, list{}
	var puts, dels []Change
	for i := range n {
		c := Change{Leaf: Leaf{Key: key(i), Digest: aweigh.Sum(key(i))}}
		puts = append(puts, c)
		if i%1000 == 0 {
			some[string(c.Key)] = c.Digest
		} else {
			c.Gone = true
			dels = append(dels, c)
		}
	}
	full = full.With(puts)
	root := full.Root()
	few := full.With(dels)
	if got := len(few.at.nodes.leaves); got > len(some)+1 {
		t.Errorf("%d places for %d keys", got, len(some))
	}
	some.check(t, few)
	if again := few.With(puts); again.Root() != root || full.Len() != n {
		t.Errorf("%d keys, and root %s instead of %s", full.Len(), again.Root(), root)
	}
	if p, err := full.Prove(nil, nil, n); err != nil || len(p.Leaves) != n {
		t.Errorf("the tree before the deletions is gone: %v", err)
	}
}

// within are the model's keys with from <= key < to.
func (l list) within(from, to []byte) (keys []string) {
	for _, k := range l.sorted() {
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	return keys
}

// drawRange draws the bounds of a range; it may hold no key.
func drawRange(t *rapid.T) (from, to []byte) {
	from = keys().Draw(t, "from")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return from, nil
	case 1:
		return from, append(bytes.Clone(from), 0)
	}
	if to = keys().Draw(t, "to"); bytes.Compare(to, from) < 0 {
		from, to = to, from
	}
	return from, to
}

func TestProofsShowWhatTheTreeHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, model := build(t)
		from, to := drawRange(t)
		p, err := tree.Prove(from, to, 1000)
		if err != nil {
			t.Fatal(err)
		}
		root, err := p.Root()
		if err != nil || root != tree.Root() {
			t.Fatalf("the proof is of %s, and the tree is %s: %v", root, tree.Root(), err)
		}
		if !p.Covers(from, to) {
			t.Fatalf("%+v does not cover %q to %q", p, from, to)
		}
		want, got := model.within(from, to), p.Shown(from, to)
		if len(got) != len(want) {
			t.Fatalf("%d keys from %q to %q, not %d", len(got), from, to, len(want))
		}
		for i, l := range got {
			if string(l.Key) != want[i] || l.Digest != model[want[i]] {
				t.Fatalf("%q instead of %q", l.Key, want[i])
			}
		}
		if len(p.Leaves) > len(want)+2 {
			t.Fatalf("%d leaves for %d keys", len(p.Leaves), len(want))
		}
		if most := len(p.Leaves) - 1; most >= 0 {
			if _, err := tree.Prove(from, to, most); !errors.Is(err, ErrMany) {
				t.Fatalf("a proof of %d leaves is given where %d are asked for: %v", len(p.Leaves), most, err)
			}
		}
	})
}

// TestBentProofsAreOfOtherTrees changes proofs in every way that a liar has: none shows the root and covers the
// range with anything else than what the tree has there.
func TestBentProofsAreOfOtherTrees(t *testing.T) {
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		tree, _ := build(t)
		if tree.Len() == 0 {
			return
		}
		from, to := drawRange(t)
		p, err := tree.Prove(from, to, 1000)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(p.Shown(from, to))
		for kind := range 10 {
			bent := &Proof{Left: slices.Clone(p.Left), Leaves: slices.Clone(p.Leaves), Right: slices.Clone(p.Right)}
			how := bend(t, bent, kind)
			root, err := bent.Root()
			if err == nil && root == tree.Root() && bent.Covers(from, to) {
				if got := fmt.Sprint(bent.Shown(from, to)); got != want {
					t.Fatalf("%s: the proof shows %s instead of %s", how, got, want)
				}
				continue
			}
			found[how]++
		}
	})
	for _, how := range []string{"drop a leaf", "hide leaves in a step", "drop a step", "another digest", "another kind", "another key", "another bit", "swap steps", "a leaf twice", "sides"} {
		if found[how] == 0 {
			t.Errorf("%s: no bent proof was drawn that was refused", how)
		}
	}
}

// bend changes a proof in one of ten ways, if it can be changed so, and says how.
func bend(t *rapid.T, p *Proof, kind int) string {
	i := rapid.IntRange(0, len(p.Leaves)-1).Draw(t, "leaf")
	steps := &p.Left
	if rapid.Bool().Draw(t, "right") {
		steps = &p.Right
	}
	s := 0
	if len(*steps) > 0 {
		s = rapid.IntRange(0, len(*steps)-1).Draw(t, "step")
	}
	switch {
	case kind == 0:
		p.Leaves = slices.Delete(p.Leaves, i, i+1)
		return "drop a leaf"
	case kind == 1 && len(p.Leaves) > 1: // with a hash that is right
		b := differ(p.Leaves[0].Key, p.Leaves[1].Key)
		p.Left = append(p.Left, Step{Bit: b, Hash: p.Leaves[0].hash()})
		p.Leaves = p.Leaves[1:]
		return "hide leaves in a step"
	case kind == 2 && len(*steps) > 0:
		*steps = slices.Delete(*steps, s, s+1)
		return "drop a step"
	case kind == 3:
		p.Leaves[i].Digest[3] ^= 1
		return "another digest"
	case kind == 9:
		p.Leaves[i].Kind++
		return "another kind"
	case kind == 4:
		p.Leaves[i].Key = append(bytes.Clone(p.Leaves[i].Key), 0)
		return "another key"
	case kind == 5 && len(*steps) > 0:
		(*steps)[s].Bit++
		return "another bit"
	case kind == 6 && len(*steps) > 1:
		(*steps)[0], (*steps)[1] = (*steps)[1], (*steps)[0]
		return "swap steps"
	case kind == 7:
		p.Leaves = slices.Insert(p.Leaves, i, p.Leaves[i])
		return "a leaf twice"
	case kind == 8 && len(p.Left)+len(p.Right) > 0:
		p.Left, p.Right = p.Right, p.Left
		return "sides"
	}
	return "not at all"
}

// TestVectors pins the hashes, which others compute, too.
func TestVectors(t *testing.T) {
	d := func(s string) aweigh.Hash { return aweigh.Sum([]byte(s)) }
	tree := Tree{}.With([]Change{
		{Leaf: Leaf{Key: []byte("/a"), Digest: d("1")}}, {Leaf: Leaf{Key: []byte("/b"), Digest: d("2")}},
		{Leaf: Leaf{Key: []byte("/a/c"), Digest: d("3"), Kind: 1}}, {Leaf: Leaf{Digest: d("4")}},
	})
	root := tree.Root()
	if got := hex.EncodeToString(root[:]); got != "fb33c213f81526cf402d9d3a56b3d5a9ba3a02a68f7fe082b66f683f707b48c2" {
		t.Errorf("the root is %s", got)
	}
}

func BenchmarkWith(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		changes := make([]Change, size)
		for i := range changes {
			changes[i] = Change{Leaf: Leaf{Key: key(i), Digest: aweigh.Sum(key(i))}}
		}
		tree := Tree{}.With(changes)
		for _, block := range []int{1, 100} {
			b.Run(fmt.Sprintf("keys=%d/block=%d", size, block), func(b *testing.B) {
				n := 0
				for b.Loop() {
					batch := make([]Change, block)
					for i := range batch {
						n++
						batch[i] = Change{Leaf: Leaf{Key: key(n * 7919 % size), Digest: aweigh.Sum(key(n))}}
					}
					tree = tree.With(batch)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/key")
			})
		}
	}
}

func key(i int) []byte { return fmt.Appendf(nil, "/registry/pods/default/pod-%07d", i) }
