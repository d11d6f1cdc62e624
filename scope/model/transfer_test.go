package model_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

// realm is a root scope with scopes below it, between which names move.
type realm struct {
	root   *world
	below  []*world
	proofs []scope.Carrying // that were ever made
}

// ancestry leads to the newest block of a scope, with the lineage up to the block before.
func (r *realm) ancestry(w *world) (a scope.Ancestry) {
	w.t.Helper()
	w.step(time.Millisecond)
	a = scope.Ancestry{Genesis: w.g, Handovers: w.hands, Head: w.last()}
	if w == r.root {
		return a
	}
	above, err := scope.NewStep(r.ancestry(r.root), r.root.state, w.g.Descent)
	must(w.t, err)
	a.Above = above
	return a
}

func (r *realm) all() []*world { return append([]*world{r.root}, r.below...) }

// prove makes a proof of what is on its way, or of what was decided about it.
func (r *realm) prove(t *rapid.T, pick func(int) int) {
	var from *world
	var sent []scope.Sent
	for i, all, first := 0, r.all(), pick(len(r.all())); i < len(all) && len(sent) == 0; i++ {
		from = all[(first+i)%len(all)]
		var err error
		sent, err = from.state.Sent(10)
		must(t, err)
	}
	if len(sent) == 0 {
		return
	}
	is := sent[pick(len(sent))]
	sentAs := is.Key
	for _, w := range r.all() {
		if is, ok, err := w.state.Received(is.To, is.ID); ok {
			must(t, err)
			p, err := scope.NewTransferDecided(r.ancestry(w), w.state, is.Entry)
			must(t, err)
			r.proofs = append(r.proofs, scope.Carrying{Key: sentAs, Proof: *p})
			return
		}
	}
	e, _, err := from.state.Lineage().Entry(is.Entry)
	must(t, err)
	p, err := scope.NewTransferSent(r.ancestry(from), from.state, &is, from.blocks[e.Height])
	must(t, err)
	r.proofs = append(r.proofs, scope.Carrying{Proof: *p})
}

// carry takes a proof to a scope: the one that it is for mostly.
func (r *realm) carry(pick func(int) int, c scope.Carrying) {
	w := r.all()[pick(len(r.all()))]
	if pick(4) > 0 {
		key := c.Key
		if len(key) == 0 {
			key = c.Proof.To
		}
		for _, at := range r.all() {
			if g := at.g.Prefix(); scope.Covers(g, key, nil) && len(g) >= len(w.g.Prefix()) {
				w = at
			}
		}
	}
	by := w.keys[pick(len(w.keys))]
	if pick(20) == 0 {
		by = w.author // which no anchor's node is
	}
	w.by(by, time.Duration(pick(3))*time.Second, w.mutation(scope.Carry, c))
}

// move puts a key of a scope, sends it, and carries the proof of that.
func (r *realm) move(t *rapid.T, pick func(int) int, w *world, key, to []byte) {
	w.now = max(w.now, r.root.now)
	w.step(time.Second, w.mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: key, Value: []byte{1}}}}))
	v, _ := w.model.At(w.model.Height()).Get(key)
	if v.UID.IsZero() {
		return // its author may not
	}
	until := w.now.Add(time.Duration(10+pick(1000)) * time.Second)
	w.step(time.Second, w.mutation(scope.Name, scope.Naming{Kind: scope.Send, Object: v.UID, Key: key, To: to, Until: until}))
	if r.prove(t, pick); len(r.proofs) > 0 {
		r.carry(pick, r.proofs[len(r.proofs)-1])
	}
}

// TestTransfersAreTheModels moves names between scopes, under load and in any order of steps, also of steps that were
// taken before. Every outcome, the lineage and all that can be read is what the models say. Each object is in one scope
// in the end, but for what is still on its way.
func TestTransfersAreTheModels(t *testing.T) {
	received, declined, given := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		bounds := drawBounds(pick)
		p := drawPolicy(pick, nil)
		p.EpochBlocks, p.Children.Notice, p.Transfers = uint64(20+pick(30)), notice, pick(8) > 0
		keys := anchorsOf(t, 4)
		root := newWorldOf(t, bounds, p, keys...)
		root.keys, root.below, root.blocks = keys, make(map[aweigh.ScopeID]*model.Model), make(map[aweigh.Height]*scope.Block)
		r := &realm{root: root}
		for _, prefix := range []string{"a", "b"} {
			q := drawPolicy(pick, nil)
			q.EpochBlocks, q.Transfers = p.EpochBlocks, pick(8) > 0
			if pick(4) > 0 { // or most is declined
				q.Authors, q.Approvals, q.Actions = p.Authors, nil, scope.Policy{}.Actions
			}
			if c := root.give(prefix, q); c != nil {
				c.blocks = make(map[aweigh.Height]*scope.Block)
				r.below = append(r.below, c)
			}
		}
		names := map[string][]byte{"": []byte("c"), "a": []byte("ax"), "b": []byte("bx")}
		if len(r.below) == 2 && pick(2) > 0 { // so that many draws have some that is decided about
			r.move(t, pick, r.below[0], names["a"], []byte([]string{"cm", "bm"}[pick(2)]))
		}
		for range 12 + pick(10) {
			for _, w := range r.all() {
				w.now = max(w.now, root.now)
			}
			w := r.all()[pick(len(r.all()))]
			mine := names[string(w.g.Prefix())]
			switch pick(13) {
			case 0, 1, 2:
				w.step(time.Second, w.mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: mine, Value: []byte{byte(pick(3))}}}}))
			case 3, 4, 5:
				to := names[string(r.all()[pick(len(r.all()))].g.Prefix())]
				if string(to) == string(mine) {
					to = []byte(string(to) + "y")
				}
				v, _ := w.model.At(w.model.Height()).Get(mine)
				if v.UID.IsZero() {
					v.UID = aweigh.UID{1}
				}
				w.step(time.Second, w.mutation(scope.Name, scope.Naming{Kind: scope.Send, Object: v.UID, Key: mine, To: to, Until: w.now.Add(time.Duration(1+pick(100)) * time.Second)}))
			case 6, 7, 8:
				{
					made := len(r.proofs)
					r.prove(t, pick)
					if len(r.proofs) > made && pick(4) > 0 {
						r.carry(pick, r.proofs[made])
					}
				}
			case 9:
				w.step(time.Duration(pick(120))*time.Second, []scope.Mutation{
					w.mutation(scope.Name, scope.Naming{Kind: scope.Unbind, Key: mine}),
					w.mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: mine}}}),
				}[pick(2)])
			case 10, 11, 12:
				program(t, w, []string{string(mine)}, false)
			}
			if n := len(r.proofs); n > 0 && pick(2) > 0 {
				at := n - 1
				if pick(3) == 0 {
					at = pick(n)
				}
				r.carry(pick, r.proofs[at])
			}
		}
		lives := make(map[aweigh.UID]string)
		for _, w := range r.all() {
			w.whole(pick)
			sent, err := w.state.Sent(100)
			must(t, err)
			res, err := w.state.Range([]byte{0}, []byte{0}, scope.Range{})
			must(t, err)
			for _, v := range res.Kvs {
				on := false
				for _, s := range sent {
					on = on || string(s.Key) == string(v.Key)
				}
				if other := lives[v.UID]; !on && other != "" && other[0] != v.Key[0] {
					t.Fatalf("%q and %q of two scopes name one object", other, v.Key)
				} else if !on {
					lives[v.UID] = string(v.Key)
				}
			}
			for i := range w.state.Head().LineageSize {
				e, _, err := w.state.Lineage().Entry(i)
				must(t, err)
				switch e.Class {
				case lineage.Received:
					received++
				case lineage.Declined:
					declined++
				case lineage.Left:
					if scope.GivenUp(e.Reason) {
						given++
					}
				}
			}
		}
	})
	t.Logf("%d objects were received, %d declined, and %d given up", received, declined, given)
	if !testing.Short() && (received == 0 || declined == 0) { // few draws may well show one of both only
		t.Error("these are too few")
	}
}
