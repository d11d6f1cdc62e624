package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

// tower is a root scope with scopes for /a/ and, below that, for /a/b/, each with keys.
type tower struct {
	realms   []*realm
	parents  []*State   // before the newest block of each, which claims it
	ancestry []Ancestry // to that block
	keys     map[string]string
}

func newTower(t testing.TB) *tower {
	t.Helper()
	r := newRealm(t, nil)
	tw := &tower{keys: map[string]string{"/": "0", "/A": "1", "/a/b/old": "2", "/a/x": "3", "/b": "4", "/c": "5", "/a/b/new": "6", "/a/c": "7"}}
	r.one(r.ops(put("/", "0"), put("/A", "1"), put("/a/b/old", "2"), put("/a/x", "3"), put("/b", "4"), put("/c", "5"), put("/gone", "")))
	r.one(r.ops(del("/gone", "")))
	mid := r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	m := r.below(mid)
	m.add(m.next(nil, nil, m.world.sign(m.put("/a/c", "7"))...))
	low := m.delegate(m.decision("/a/b/", quorum.BFT, "a", "b", "c", "d")).Founded[0]
	l := m.below(low)
	l.add(l.next(nil, nil, l.world.sign(l.put("/a/b/new", "6"))...))
	tw.realms = []*realm{r, m, l}
	var above []Step
	for i, x := range tw.realms {
		tw.parents = append(tw.parents, x.state)
		x.add(x.next(nil, nil))
		a := Ancestry{Genesis: x.g, Handovers: x.hands, Head: x.final(), Above: above}
		tw.ancestry = append(tw.ancestry, a)
		if i < 2 {
			var err error
			if above, err = NewStep(a, x.state, []*Descent{mid.Descent, low.Descent}[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tw
}

// prove shows a range, from the scope at a level on.
func (tw *tower) prove(t testing.TB, level int, key, end []byte) *RangeProof {
	t.Helper()
	p := &RangeProof{Key: key, End: end}
	for i := level; i < len(tw.realms); i++ {
		if i > level {
			key, end = Intersect(tw.realms[i].g.Prefix(), key, end)
		}
		part, err := NewRangePart(tw.ancestry[i], tw.parents[i], key, end, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		p.Parts = append(p.Parts, part)
		if len(part.Below(key, end)) == 0 {
			break
		}
	}
	return p
}

// within lists the keys of a range with their values.
func (tw *tower) within(key, end []byte) (all []string) {
	for k, v := range tw.keys {
		if Within([]byte(k), key, end) {
			all = append(all, k+"="+v)
		}
	}
	slices.Sort(all)
	return all
}

func listed(kvs []KeyValue) (all []string) {
	for _, v := range kvs {
		all = append(all, fmt.Sprintf("%s=%s", v.Key, v.Value))
	}
	return all
}

// TestP61RangesAreProven: proofs over all scopes that a range touches show what the keys hold, and no more.
func TestP61RangesAreProven(t *testing.T) {
	tw := newTower(t)
	network := tw.realms[0].g.Hash()
	for _, c := range []struct {
		key, end string
		level    int
		parts    int
	}{
		{"/b", "", 0, 1}, {"/none", "", 0, 1}, {"/gone", "", 0, 1}, {"/a/c", "", 0, 2}, {"/a/c", "", 1, 1}, {"/a/none", "", 0, 2},
		{"/a/b/new", "", 0, 3}, {"/a/b/new", "", 2, 1}, {"/a/b/none", "", 1, 2}, {"/a/", "/a0", 0, 3}, {"/a/", "/a0", 1, 2},
		{"/", "\x00", 0, 3}, {"\x00", "\x00", 0, 3}, {"/b", "\x00", 0, 1}, {"/a/b/p", "/b", 0, 3}, {"/a/d", "/z", 0, 2},
	} {
		p, err := DecodeRangeProof(tw.prove(t, c.level, []byte(c.key), []byte(c.end)).Encode())
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Verify(network)
		if err != nil {
			t.Errorf("%q to %q, from level %d: %v", c.key, c.end, c.level, err)
			continue
		}
		if got, want := listed(r.Kvs), tw.within([]byte(c.key), []byte(c.end)); !slices.Equal(got, want) || len(r.Parts) != c.parts {
			t.Errorf("%q to %q, from level %d: %v in %d parts; want %v in %d", c.key, c.end, c.level, got, len(r.Parts), want, c.parts)
		}
		if _, err := p.Verify(aweigh.Sum([]byte("other"))); !errors.Is(err, ErrProof) {
			t.Errorf("%q: in another network: %v", c.key, err)
		}
	}
}

// TestP61LiesAreRefused presents old, foreign and incomplete parts.
func TestP61LiesAreRefused(t *testing.T) {
	tw := newTower(t)
	network := tw.realms[0].g.Hash()
	stale := tw.prove(t, 0, []byte("/b"), []byte("/c")).Parts[0]
	r := tw.realms[0]
	r.one(r.ops(put("/b", "newer"), put("/bb", "hidden")))
	if _, err := NewRangePart(tw.ancestry[0], r.state, []byte("/b"), nil, 1<<20); !errors.Is(err, ErrInvalid) {
		t.Errorf("a part of a state that its header does not claim: %v", err)
	}
	tw.parents[0] = r.state
	r.add(r.next(nil, nil))
	tw.ancestry[0] = Ancestry{Genesis: r.g, Handovers: r.hands, Head: r.final()}
	all := func() *RangeProof { return tw.prove(t, 0, []byte("/"), []byte{0}) }
	one := func() *RangeProof { return tw.prove(t, 0, []byte("/b"), []byte("/c")) }
	for name, p := range map[string]func() *RangeProof{ // order-free: each is checked alone
		"an old leaf under a new header": func() *RangeProof {
			p := one()
			p.Parts[0].Leaves, p.Parts[0].Kvs = stale.Leaves, stale.Kvs
			return p
		},
		"an old value": func() *RangeProof {
			p := one()
			p.Parts[0].Kvs[0] = stale.Kvs[0]
			return p
		},
		"a hidden key": func() *RangeProof {
			p := one()
			p.Parts[0].Kvs = p.Parts[0].Kvs[:1]
			p.Parts[0].Leaves.Leaves = slices.Delete(p.Parts[0].Leaves.Leaves, 1, 2)
			return p
		},
		"a hidden version": func() *RangeProof {
			p := one()
			p.Parts[0].Kvs = p.Parts[0].Kvs[:1]
			return p
		},
		"a hidden scope": func() *RangeProof {
			p := all()
			p.Parts = p.Parts[:1]
			return p
		},
		"a scope of another prefix": func() *RangeProof {
			p := all()
			p.Parts[1] = p.Parts[2]
			return p
		},
		"a part twice": func() *RangeProof {
			p := all()
			p.Parts = append(p.Parts, p.Parts[2])
			return p
		},
		"a delegation that is a key": func() *RangeProof {
			p := all()
			for i := range p.Parts[0].Leaves.Leaves {
				if l := &p.Parts[0].Leaves.Leaves[i]; l.Kind == HoldsScope {
					l.Kind = HoldsVersion
				}
			}
			p.Parts = p.Parts[:1]
			return p
		},
		"a range wider than the leaves": func() *RangeProof {
			p := one()
			p.Key = []byte("/A")
			return p
		},
		"a child's range from the root's tree": func() *RangeProof {
			p := tw.prove(t, 0, []byte("/a/c"), nil)
			p.Parts = p.Parts[:1]
			return p
		},
		"a root's range from a child's tree": func() *RangeProof {
			p := tw.prove(t, 1, []byte("/a/c"), nil)
			p.Key = []byte("/b")
			return p
		},
		"no key":  func() *RangeProof { p := one(); p.Key = nil; return p },
		"nothing": func() *RangeProof { p := one(); p.Parts = nil; return p },
		"too few signatures": func() *RangeProof {
			p := one()
			p.Parts[0].Ancestry.Head.Certificate.Signatures = p.Parts[0].Ancestry.Head.Certificate.Signatures[:2]
			return p
		},
	} {
		if r, err := p().Verify(network); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v, %v", name, listed(r.Kvs), err)
		}
	}
	p, other := tw.prove(t, 1, []byte("/a/c"), nil), aweigh.ScopeID{1} // as if the prefix had gone to another scope
	if err := new(RangeReport).follow(network, &p.Parts, &other, p.Key, []byte("/a/c\x00")); err == nil {
		t.Error("the part of another scope than the leaf names is taken")
	}
	if r, err := one().Verify(network); err != nil || !slices.Equal(listed(r.Kvs), []string{"/b=newer", "/bb=hidden"}) {
		t.Fatalf("%v, %v", r, err)
	}
}

// TestRangeProofBearsNoChange flips bits in the bytes of a proof: it is refused, or the range that it then names holds
// what it shows.
func TestRangeProofBearsNoChange(t *testing.T) {
	testshort.Skip(t)
	tw := newTower(t)
	network := tw.realms[0].g.Hash()
	raw := tw.prove(t, 1, []byte("/a/b"), []byte("/a/d")).Encode()
	rapid.Check(t, func(t *rapid.T) {
		bent := bytes.Clone(raw)
		i := rapid.IntRange(0, len(raw)-1).Draw(t, "byte")
		bent[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		p, err := DecodeRangeProof(bent)
		if err != nil {
			return
		}
		if r, err := p.Verify(network); err == nil && !slices.Equal(listed(r.Kvs), tw.within(p.Key, p.End)) {
			t.Fatalf("byte %d of %d changed from %#x to %#x: %q to %q holds %v", i, len(raw), raw[i], bent[i], p.Key, p.End, listed(r.Kvs))
		}
	})
}

// BenchmarkRangeProofs makes and verifies proofs of a scope with 10,000 keys and values of 100 bytes, below four
// anchors: of one key, of an absent one, and of 1,000. It reports the bytes beside the keys' content and the way from
// the genesis.
func BenchmarkRangeProofs(b *testing.B) {
	r := newRealm(b, func(p *Policy) { p.EpochBlocks = 1000 })
	for at := 0; at < 10_000; at += 100 {
		var ops []Op
		for i := range 100 {
			ops = append(ops, put(fmt.Sprintf("/registry/%05d", at+i), strings.Repeat("v", 100)))
		}
		r.one(r.ops(ops...))
	}
	before, err := r.state.Grown()
	if err != nil {
		b.Fatal(err)
	}
	r.add(r.next(nil, nil))
	a := Ancestry{Genesis: r.g, Head: r.final()}
	for _, c := range []struct{ name, key, end string }{
		{"one", "/registry/05000", ""}, {"absent", "/registry/05000a", ""}, {"1000", "/registry/05", "/registry/06"},
	} {
		key, end := []byte(c.key), []byte(c.end)
		part, err := NewRangePart(a, before, key, end, 4<<20)
		if err != nil {
			b.Fatal(err)
		}
		raw := (&RangeProof{Key: key, End: end, Parts: []RangePart{part}}).Encode()
		beside := len(raw) - len(canon.Encode(part.Kvs)) - len(canon.Encode(part.Ancestry))
		b.Run("make/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := NewRangePart(a, before, key, end, 4<<20); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(beside), "B/beside")
			b.ReportMetric(float64(len(raw)), "B/proof")
		})
		b.Run("make older/"+c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := NewOlderRangePart(a, before, key, end, 4<<20, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("verify/"+c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := DecodeRangeProof(raw)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Verify(r.g.Network()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
