package model_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

// notice is that of the scopes that the tests found.
const notice = time.Minute

// turn makes blocks until the epoch ends.
func (w *world) turn() {
	w.t.Helper()
	for e := w.epoch().Number; w.epoch().Number == e; {
		w.now = w.now.Add(time.Second)
		w.block(scope.Evidence{})
	}
}

// decide lets three anchors approve a decision, and ends the epoch.
func (w *world) decide(d scope.Decision) {
	w.t.Helper()
	w.turn()
	for _, k := range w.keys[:3] {
		w.by(k, time.Second, w.mutation(scope.Govern, d))
	}
	w.turn()
}

// delegated is the delegation of a prefix, nil if there is none.
func (w *world) delegated(prefix string) *scope.Delegation {
	w.t.Helper()
	all, err := w.state.Delegations()
	must(w.t, err)
	for i := range all {
		if string(all[i].Prefix) == prefix {
			return &all[i]
		}
	}
	return nil
}

// give delegates a prefix, and gives the world of the scope that is founded; nil if what the prefix holds cannot go.
func (w *world) give(prefix string, p scope.Policy) *world {
	w.t.Helper()
	p.Children = scope.Bound{}
	w.decide(scope.Decision{Kind: scope.Delegate, Child: &scope.Child{Prefix: []byte(prefix), Name: "child", Policy: p, Anchors: w.g.Anchors}})
	d := w.delegated(prefix)
	if d == nil {
		return nil
	}
	_, g, _, err := w.state.Delegated([]byte(prefix))
	must(w.t, err)
	c := &world{
		t: w.t, g: g, author: w.author, store: w.store, model: model.Child(g, w.model).Within(w.bounds), now: w.now, nonce: w.nonce + 1<<20,
		bounds: w.bounds, keys: w.keys, below: make(map[aweigh.ScopeID]*model.Model), added: w.added,
	}
	w.below[g.Hash()] = c.model
	c.open()
	return c
}

// closes ends the scope by an order, and reports whether it holds so little that it can go.
func (w *world) closes(order *scope.Revocation) bool {
	w.t.Helper()
	w.now = max(w.now, order.Time.Add(notice))
	w.turn()
	if _, _, failure, err := w.state.Parts(order.Hash()); failure != nil || err != nil {
		must(w.t, err)
		return false
	}
	for !w.block(scope.Evidence{Revocation: order}) {
	}
	w.turn()
	return w.state.IsClosed()
}

// homing is how far a scope has come home; nil if none is to.
func (w *world) homing(prefix string) *scope.Homing {
	w.t.Helper()
	all, err := w.state.Homings()
	must(w.t, err)
	for i := range all {
		if string(all[i].Prefix) == prefix {
			return &all[i]
		}
	}
	return nil
}

// source is what a node has of the closed scope.
func (w *world) source() *scope.HomeSource {
	return &scope.HomeSource{State: w.state, Genesis: w.g, Handovers: func(above aweigh.Height, most int) (all []scope.Handover, err error) {
		for i := range w.hands {
			if h := w.hands[i].Final.Header.Height; h > above && len(all) < most {
				all = append(all, w.hands[i])
			}
		}
		return all, nil
	}}
}

// brings takes the steps in which a scope comes home, and others besides.
func (w *world) brings(t *rapid.T, prefix string, c *world) {
	w.t.Helper()
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	var past []*scope.Bringing
	h := w.homing(prefix)
	for steps := 0; h != nil; h = w.homing(prefix) {
		if steps++; steps > 2000 {
			t.Fatalf("it does not come home")
		}
		if h.Closed && h.Next == h.Parts {
			w.turn()
			continue
		}
		b, err := c.source().Next(h, mostOf(h, []int{1, 100, 10_000}[pick(3)]))
		must(w.t, err)
		by := w.keys[pick(len(w.keys))]
		switch pick(16) {
		case 0:
			by = w.author // which no anchor's node is
		case 1:
			if len(past) > 0 {
				b = past[pick(len(past))]
			}
		case 2:
			if h.Closed {
				later := *h
				later.Next += int64(pick(3))
				if other, err := c.source().Next(&later, mostOf(&later, 100)); err == nil && other != nil {
					b = other
				}
			}
		case 3:
			if bent := *b; len(bent.Part) > 0 {
				bent.Part = slices.Clone(bent.Part)
				bent.Part[len(bent.Part)-1] ^= 1
				b = &bent
			}
		case 4:
			program(t, w, someKeys, false)
		}
		past = append(past, b)
		m := w.mutation(scope.Bring, b)
		if _, err := scope.Sign(by, w.g.Policy.Limits, m); err == nil {
			w.by(by, time.Second, m)
		}
		if steps%8 == 0 {
			w.whole(pick)
		}
	}
}

// live is what is under each key, but for its place.
func (w *world) live() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	res, err := w.state.Range([]byte{0}, []byte{0}, scope.Range{})
	must(w.t, err)
	for _, v := range res.Kvs {
		all[string(v.Key)] = fmt.Sprintf("%q, created at %d, version %d, lease %d, %s", v.Value, v.CreateRevision, v.Version, v.Lease, v.UID)
	}
	return all
}

// replayed executes all blocks again, and compares the scopes.
func replayed(t *rapid.T, w *world, children []*world, blocks []*scope.Block) {
	again := kv.NewOverlay(nothing{})
	ops, err := scope.Init(w.g)
	must(t, err)
	again.Apply(ops...)
	open := func(id aweigh.ScopeID) *scope.State {
		s, err := scope.Open(again, id)
		must(t, err)
		return s.Within(w.bounds)
	}
	for _, b := range blocks {
		res, err := open(b.Header.Scope).Execute(b)
		must(t, err)
		again.Apply(res.Ops...)
	}
	for _, c := range append(children, w) {
		if got, want := open(c.g.Hash()).Head(), c.state.Head(); got != want {
			t.Fatalf("executed again, the head is %+v, and was %+v", got, want)
		}
	}
}

// TestFoldingIsTheModels runs random programs in a scope and in one that it delegates a prefix to and takes back,
// several times. Every outcome, the lineage and all that can be read is what the models say, and what comes home is
// what the scope below held. Executed again, all blocks lead to the same.
func TestFoldingIsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		bounds := drawBounds(pick)
		p := drawPolicy(pick, nil)
		p.EpochBlocks, p.Children.Notice = uint64(8+pick(8)), notice
		keys := anchorsOf(t, 4)
		w := newWorldOf(t, bounds, p, keys...)
		var blocks []*scope.Block
		w.keys, w.below, w.added = keys, make(map[aweigh.ScopeID]*model.Model), func(b *scope.Block) { blocks = append(blocks, b) }
		var children []*world
		for _, id := range someLeases {
			w.step(time.Second, w.mutation(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: 36_000}))
		}
		for range 1 + pick(3) {
			program(t, w, someKeys, false)
			c := w.give("a", p)
			if c == nil {
				continue
			}
			children = append(children, c)
			program(t, c, isleKeys, false)
			program(t, w, someKeys, false)
			program(t, c, isleKeys, false)
			w.now = max(w.now, c.now)
			w.decide(scope.Folding([]byte("a")))
			order := w.delegated("a").Revocation
			if order == nil || !order.Folds() {
				t.Fatalf("no order: %+v", order)
			}
			program(t, c, isleKeys, false)
			if !c.closes(order) {
				return // it holds too much
			}
			c.whole(pick)
			want := c.live()
			w.now = max(w.now, c.now).Add(time.Minute)
			program(t, w, someKeys, false)
			w.brings(t, "a", c)
			for key, v := range want {
				held, _ := w.model.At(w.model.Height()).Get([]byte(key))
				if held.Version == 0 || held.ModRevision <= c.state.Head().Revision {
					t.Fatalf("%q did not come home: %s", key, v)
				}
			}
			w.whole(pick)
		}
		program(t, w, someKeys, false)
		replayed(t, w, children, blocks)
	})
}

// mostOf is how many bytes a step may have: a part is whole.
func mostOf(h *scope.Homing, most int) int {
	if h.Closed {
		return 1 << 20
	}
	return most
}
