package scope

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// vectorWorld is a history and honest proofs over it: of a tower at two times, so that the older proofs have older
// roots, and of a young network with one scope.
type vectorWorld struct {
	network aweigh.NetworkID
	now     time.Time
	older   *tower
	newer   *tower
	short   *tower // the root scope of the older one, before it delegated anything, in epoch 0
	honest  []*honestProof
	stale   map[string]*RangeProof // by the range, of the older tower
	other   *RangeProof            // of another network
	rng     *rand.Rand
}

// honestProof is a proof, and the tower that it is about.
type honestProof struct {
	name string
	raw  []byte
	at   *tower
}

// copy is the proof anew, to be bent.
func (h *honestProof) copy() *RangeProof {
	p, err := DecodeRangeProof(h.raw)
	if err != nil {
		panic(err)
	}
	return p
}

// newVectorWorld makes the history.
func newVectorWorld(t testing.TB) *vectorWorld {
	t.Helper()
	w := &vectorWorld{rng: rand.New(rand.NewPCG(70, 72)), stale: make(map[string]*RangeProof)}
	w.short = w.shortTower(t)
	w.older = newTower(t)
	r := w.older.realms[0]
	w.network = r.g.Hash()
	for _, c := range [][2]string{{"/b", ""}, {"/b", "\x00"}, {"/", "/a"}} {
		w.stale[c[0]+c[1]] = w.older.prove(t, 0, []byte(c[0]), []byte(c[1]))
	}
	w.add(t, "an older block", w.older, 0, "/b", "")
	w.add(t, "an older block", w.older, 0, "/none", "")
	w.add(t, "an older block", w.older, 1, "/a/none", "")
	r.one(r.ops(put("/b", "newer"), put("/bb", "new"), del("/c", "")))
	r.turn()
	w.newer = &tower{realms: w.older.realms, parents: slices.Clone(w.older.parents), ancestry: slices.Clone(w.older.ancestry), keys: maps.Clone(w.older.keys)}
	w.newer.keys["/b"], w.newer.keys["/bb"] = "newer", "new"
	delete(w.newer.keys, "/c")
	w.newer.parents[0] = r.state
	r.add(r.next(nil, nil))
	w.newer.ancestry[0] = Ancestry{Genesis: r.g, Handovers: slices.Clone(r.hands), Head: r.final()}
	for _, c := range []struct {
		level    int
		key, end string
	}{{0, "/b", ""}, {0, "/b", "\x00"}, {0, "/", "/a"}, {1, "/a/c", ""}, {2, "/a/b/new", ""}, {0, "/a/d", "/z"}, {0, "\x00", "\x00"}} {
		w.add(t, "the newest block", w.newer, c.level, c.key, c.end)
	}
	w.now = r.now.Time().Add(time.Second)
	for _, c := range [][2]string{{"/b", ""}, {"/b5", ""}, {"/a", "/b"}, {"\x00", "\x00"}} {
		w.add(t, "epoch 0", w.short, 0, c[0], c[1])
	}
	x := newRealm(t, func(p *Policy) { p.EpochBlocks++ })
	x.one(x.ops(put("/b", "4")))
	before := x.state
	x.add(x.next(nil, nil))
	away := &tower{realms: []*realm{x}, parents: []*State{before}, ancestry: []Ancestry{{Genesis: x.g, Head: x.final()}}}
	w.other = away.prove(t, 0, []byte("/b"), nil)
	return w
}

// shortTower is the network of newTower in its first epoch: of another history, and the same identity. Its proofs are
// short, so that many are verified in little time.
func (w *vectorWorld) shortTower(t testing.TB) *tower {
	t.Helper()
	r := newRealm(t, nil)
	tw := &tower{realms: []*realm{r}, keys: make(map[string]string)}
	var ops []Op
	for i := range 40 {
		k, v := fmt.Sprintf("/%c%d", 'a'+i%4, i/4), fmt.Sprintf("value %d", i)
		tw.keys[k] = v
		ops = append(ops, put(k, v))
	}
	r.one(r.ops(ops...))
	tw.parents = []*State{r.state}
	r.add(r.next(nil, nil))
	tw.ancestry = []Ancestry{{Genesis: r.g, Head: r.final()}}
	return tw
}

func (w *vectorWorld) add(t testing.TB, when string, tw *tower, level int, key, end string) {
	t.Helper()
	w.honest = append(w.honest, w.prove(t, when, tw, level, key, end))
}

func (w *vectorWorld) prove(t testing.TB, when string, tw *tower, level int, key, end string) *honestProof {
	t.Helper()
	p := tw.prove(t, level, []byte(key), []byte(end))
	name := fmt.Sprintf("%q to %q of %s, in %d scopes", key, end, when, len(p.Parts))
	return &honestProof{name: name, raw: p.Encode(), at: tw}
}

// anyHonest proves some range of the short tower.
func (w *vectorWorld) anyHonest(t testing.TB) *honestProof {
	t.Helper()
	a, b := w.someKey(), w.someKey()
	switch w.rng.IntN(4) {
	case 0, 1:
		return w.prove(t, "epoch 0", w.short, 0, a, "")
	case 2:
		return w.prove(t, "epoch 0", w.short, 0, a, "\x00")
	}
	return w.prove(t, "epoch 0", w.short, 0, min(a, b), max(a, b)+"\x00")
}

func (w *vectorWorld) someKey() string {
	return fmt.Sprintf("/%c%d", 'a'+w.rng.IntN(5), w.rng.IntN(12))
}

// pick is the place of an honest proof to bend: of a short one in most cases.
func (w *vectorWorld) pick() int {
	if n := len(w.honest); w.rng.IntN(8) > 0 {
		return n - 1 - w.rng.IntN(4)
	}
	return w.rng.IntN(len(w.honest))
}
