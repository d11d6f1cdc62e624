package sim

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// belief is what a verified reader took about one scope: that a block is final, and what its header claims of keys.
type belief struct {
	by       int // the reader
	of       *Node
	height   aweigh.Height // of the block
	block    aweigh.Hash
	key, end []byte
	kvs      []scope.KeyValue
}

// believes checks an answer that a verified reader took.
func (w *World) believes(q *inquest, at *Node, p *scope.RangeProof, r *scope.RangeReport) {
	w.watch.reach("verified read")
	if len(r.Parts) > 1 {
		w.watch.reach("verified read over scopes")
	}
	w.log(at, "verified", "reader %d takes %d keys of %d scopes", q.id, len(r.Kvs), len(r.Parts))
	for i := range r.Parts {
		id, head := r.Parts[i].Scope, &r.Parts[i].Head
		before := q.before[id]
		q.taken[id] = max(q.taken[id], head.Height)
		c := w.find(id)
		if c == nil {
			if w.promises(p.Parts[i].Ancestry.Genesis.Descent) {
				w.breach(Verified, nil, "reader %d takes keys of a scope %q that was never founded, of %s", q.id, r.Parts[i].Prefix, at)
			}
			continue
		}
		if c.overBudget() {
			continue
		}
		age := w.now.Sub(head.Time)
		c.holds(Verified, nil, q.atMost == 0 || age <= q.atMost, "reader %d takes of %s what held %v ago, where %v are permitted", q.id, at, age, q.atMost)
		c.holds(Verified, nil, head.Height >= before, "reader %d takes of %s what block %d claims, and had taken of %d", q.id, at, head.Height, before)
		b := belief{by: q.id, of: at, height: head.Height, block: head.Block, key: p.Key, end: p.End, kvs: p.Parts[i].Kvs}
		if i > 0 {
			b.key, b.end = scope.Intersect(r.Parts[i].Prefix, p.Key, p.End)
		}
		if !c.watch.bearsOut(&b) {
			c.watch.believed = append(c.watch.believed, b)
		}
	}
}

// promises reports whether anything is promised of the scopes above one.
func (w *World) promises(d *scope.Descent) bool {
	if d == nil {
		return true
	}
	c := w.find(d.Parent)
	return c != nil && !c.overBudget()
}

// bearsOut compares what a reader took with the final blocks, and with what a model makes of them. It reports false if
// no honest node is known to have come as far.
func (x *watch) bearsOut(b *belief) bool {
	final, known := x.final[b.height]
	m := x.modelled()
	if !known || m != nil && m.Height() < b.height-1 {
		return false
	}
	x.w.holds(Verified, nil, final == b.block, "reader %d takes block %s of %s as final at height %d, where %s is", b.by, b.block.Short(), b.of, b.height, final.Short())
	if m == nil {
		return true
	}
	want, err := m.At(b.height-1).Range(b.key, b.end, scope.Range{})
	x.w.holds(Verified, nil, err == nil && bytes.Equal(canon.Encode(want.Kvs), canon.Encode(b.kvs)),
		"reader %d takes of %s that %q to %q hold %s after block %d, where they hold %s: %v", b.by, b.of, b.key, b.end, listed(b.kvs), b.height-1, listed(want.Kvs), err)
	return true
}

func listed(kvs []scope.KeyValue) string {
	text := fmt.Sprintf("%d keys", len(kvs))
	for i := range kvs[:min(len(kvs), 3)] {
		text += fmt.Sprintf(", version %d of %q", kvs[i].Version, kvs[i].Key)
	}
	return text
}

// recall looks again at what readers took before an honest node had the block.
func (x *watch) recall() {
	all := x.believed
	x.believed = nil
	for i := range all {
		if !x.bearsOut(&all[i]) {
			x.believed = append(x.believed, all[i])
		}
	}
}

// refuses looks at an answer that a verified reader refused. One of an honest node may only be too old.
func (w *World) refuses(q *inquest, at *Node, lie string, err error) {
	if lie != "" {
		w.watch.reach("refused: " + lie)
		return
	}
	if errors.Is(err, scope.ErrAged) {
		w.watch.reach("verified read too old")
		return
	}
	if at.honest() && !at.spoiled {
		for _, c := range w.scopes { // where nothing is promised, a node may follow another history than others
			if c.overBudget() {
				return
			}
		}
		w.holds(Verified, at, false, "what it proves to reader %d of %q to %q is refused: %v", q.id, q.question.Key, q.question.End, err)
	}
}
