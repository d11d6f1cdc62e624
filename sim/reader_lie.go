package sim

import (
	"bytes"
	"errors"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/scope"
)

// proofLie is one way to deceive a verified reader: it bends the honest answer, and reports whether there was something
// to bend.
type proofLie struct {
	name string
	bend func(b *bent) bool
}

var errNone = errors.New("sim: there is nothing there")

// misprove answers a verified reader with a lie of a drawn kind, or with the truth where no kind fits.
func (l *liar) misprove(x *proving, err error, answer func(raw []byte, lie string, err error)) {
	switch kind := x.rand.IntN(16); {
	case kind == 0:
		l.told("misprove", "reader %d gets no answer", x.id)
		x.silent = x.try
		return
	case kind == 1 || err != nil:
		l.told("misprove", "reader %d gets an error", x.id)
		answer(nil, "error", errNone)
		return
	}
	raw := x.proof.Encode()
	for _, i := range x.rand.Perm(len(proofLies)) {
		b := &bent{proving: x, l: l, i: x.rand.IntN(len(x.proof.Parts))}
		if b.p, err = scope.DecodeRangeProof(raw); err != nil {
			break
		}
		b.part = &b.p.Parts[b.i]
		if proofLies[i].bend(b) {
			l.told("misprove", "reader %d gets %s", x.id, proofLies[i].name)
			if b.raw == nil {
				b.raw = b.p.Encode()
			}
			answer(b.raw, proofLies[i].name, nil)
			return
		}
	}
	answer(raw, "", nil)
}

// bent is an answer on its way to be a lie.
type bent struct {
	*proving
	l    *liar
	p    *scope.RangeProof // a copy
	i    int               // a part of it that was drawn
	part *scope.RangePart
	raw  []byte // in place of p
}

// bounds are those of the part's keys.
func (b *bent) bounds() (key, end []byte) {
	if b.i == 0 {
		return b.p.Key, b.p.End
	}
	return scope.Intersect(b.part.Ancestry.Genesis.Prefix(), b.p.Key, b.p.End)
}

// past is what the part was by one of the old states of the liar's disk, nil if none can be proven or fits.
func (b *bent) past(fits func(*scope.RangePart) bool) *scope.RangePart {
	key, end := b.bounds()
	return b.once(b.nodes[b.i], key, end, fits)
}

// once is what keys held by one of the old states, in the scope of a node's part.
func (b *bent) once(n *Node, key, end []byte, fits func(*scope.RangePart) bool) *scope.RangePart {
	for _, seen := range b.w.readers.pasts[n.body] {
		s, err := scope.Open(seen, n.world.id)
		if err != nil {
			continue
		}
		by := n.prover()
		by.State = s.Within(n.world.bounds)
		a, err := by.Claim(0)
		if err != nil {
			continue
		}
		if part, err := scope.NewRangePart(a, by.State, key, end, mostProven); err == nil && fits(&part) {
			return &part
		}
	}
	return nil
}

// kv is the content of a key of the part, nil if it has none.
func (b *bent) kv() *scope.KeyValue {
	if len(b.part.Kvs) == 0 {
		return nil
	}
	return &b.part.Kvs[b.rand.IntN(len(b.part.Kvs))]
}

// ofKv bends the content of one key.
func ofKv(do func(*scope.KeyValue)) func(*bent) bool {
	return func(b *bent) bool {
		kv := b.kv()
		if kv != nil {
			do(kv)
		}
		return kv != nil
	}
}

// hides leaves out the ith of the keys that the part holds, with its leaf.
func (b *bent) hides(i int) bool {
	key := b.part.Kvs[i].Key
	b.part.Kvs = slices.Delete(b.part.Kvs, i, i+1)
	b.part.Leaves.Leaves = slices.DeleteFunc(b.part.Leaves.Leaves, func(l keytree.Leaf) bool { return bytes.Equal(l.Key, key) })
	return true
}

// run shows the leaves of the part's tree from the ith to the jth alone, with the hash of all others beside them.
func (b *bent) run(all []keytree.Leaf, i, j int) bool {
	tree, err := b.states[b.i].Current()
	if err != nil {
		return false
	}
	p, err := tree.Prove(all[i].Key, append(bytes.Clone(all[j].Key), 0), scope.MaxRangeLeaves)
	if err != nil {
		return false
	}
	b.part.Leaves = *p
	b.part.Kvs = slices.DeleteFunc(b.part.Kvs, func(v scope.KeyValue) bool {
		return !slices.ContainsFunc(p.Leaves, func(l keytree.Leaf) bool { return bytes.Equal(l.Key, v.Key) })
	})
	return true
}

// lonely shows a key that is there as absent: by the leaf beside it, under a hash that stands for the key.
func (b *bent) lonely() bool {
	kv := b.kv()
	tree, err := b.states[b.i].Current()
	if kv == nil || len(b.part.Kvs) > 1 || err != nil {
		return false
	}
	whole, err := tree.Prove([]byte{0}, nil, scope.MaxRangeLeaves)
	if err != nil {
		return false
	}
	all := whole.Leaves
	at := slices.IndexFunc(all, func(l keytree.Leaf) bool { return bytes.Equal(l.Key, kv.Key) })
	switch {
	case at > 0:
		return b.run(all, at-1, at-1)
	case at == 0 && len(all) > 1:
		return b.run(all, 1, 1)
	}
	return false
}

// older reports whether a part claims less than the honest one, with other keys.
func (b *bent) older(p *scope.RangePart) bool {
	return p.Ancestry.Head.Header.Height < b.part.Ancestry.Head.Header.Height
}

// aged reports whether the reader refuses a part as too old.
func (b *bent) aged(p *scope.RangePart) bool {
	return b.atMost > 0 && b.w.now.Sub(p.Ancestry.Head.Header.Time) > b.atMost
}

// behind reports whether a part is of a block before one that the reader had seen.
func (b *bent) behind(p *scope.RangePart) bool {
	return p.Ancestry.Head.Header.Height < b.before[p.Ancestry.Genesis.Hash()] &&
		(b.atMost == 0 || b.w.now.Sub(p.Ancestry.Head.Header.Time) < b.atMost/2)
}

// becomes puts a part in the place of the honest one.
func (b *bent) becomes(p *scope.RangePart) bool {
	if p != nil {
		*b.part = *p
	}
	return p != nil
}

var proofLies = []proofLie{
	{"old proof", func(b *bent) bool { return b.becomes(b.past(b.aged)) }},
	{"proof behind", func(b *bent) bool { return b.becomes(b.past(b.behind)) }},
	{"hidden key", func(b *bent) bool {
		n := len(b.part.Kvs)
		return n > 0 && b.hides(b.rand.IntN(2)*(n-1))
	}},
	{"gap", func(b *bent) bool {
		n := len(b.part.Kvs)
		return n > 2 && b.hides(1+b.rand.IntN(n-2))
	}},
	{"key under a hash", func(b *bent) bool {
		kv, all := b.kv(), b.part.Leaves.Leaves
		if kv == nil || len(all) < 2 {
			return false
		}
		if i := slices.IndexFunc(all, func(l keytree.Leaf) bool { return bytes.Equal(l.Key, kv.Key) }); i > 0 {
			return b.run(all, 0, i-1)
		}
		return b.run(all, 1, len(all)-1)
	}},
	{"false neighbours", (*bent).lonely},
	{"old root", func(b *bent) bool {
		p := b.past(func(p *scope.RangePart) bool {
			return b.older(p) && p.Ancestry.Head.Header.Current != b.part.Ancestry.Head.Header.Current
		})
		if p != nil {
			b.part.Ancestry = p.Ancestry
		}
		return p != nil
	}},
	{"old content", func(b *bent) bool {
		p := b.past(func(p *scope.RangePart) bool {
			return b.older(p) && p.Ancestry.Head.Header.Current != b.part.Ancestry.Head.Header.Current
		})
		if p != nil {
			b.part.Leaves, b.part.Kvs = p.Leaves, p.Kvs
		}
		return p != nil
	}},
	{"other scope", func(b *bent) bool {
		if len(b.p.Parts) > 1 {
			return b.becomes(&b.p.Parts[(b.i+1)%len(b.p.Parts)])
		}
		return b.becomes(b.elsewhere())
	}},
	{"other range", func(b *bent) bool {
		key, end := append(bytes.Clone(b.p.Key), "/other"...), []byte(nil)
		part, err := scope.NewRangePart(b.part.Ancestry, b.states[b.i], key, end, mostProven)
		if err != nil || len(b.p.Parts) > 1 {
			return false
		}
		b.p.Key, b.p.End = key, end
		return b.becomes(&part)
	}},
	{"other value", ofKv(func(kv *scope.KeyValue) { kv.Value = append(bytes.Clone(kv.Value), '!') })},
	{"other version", ofKv(func(kv *scope.KeyValue) { kv.Version++ })},
	{"other object", ofKv(func(kv *scope.KeyValue) { kv.UID = aweigh.UID(aweigh.Sum(kv.UID[:])) })},
	{"flipped bit", func(b *bent) bool {
		b.raw = b.p.Encode()
		b.raw[b.rand.IntN(len(b.raw))] ^= 1 << b.rand.IntN(8)
		return true
	}},
	{"forged handover", (*bent).handover},
	{"stripped signatures", func(b *bent) bool { return b.strip() }},
	{"repeated signature", (*bent).repeat},
	{"mixed signatures", (*bent).mix},
	{"signed again", (*bent).signAgain},
	{"own block", (*bent).ownBlock},
}

// elsewhere is a part about the keys of another scope, nil if there is none.
func (b *bent) elsewhere() *scope.RangePart {
	for _, c := range b.w.scopes {
		n := c.Nodes[b.at.Index]
		if c.island || c == b.nodes[b.i].world || !n.serves() {
			continue
		}
		key, end := []byte{0}, []byte{0}
		if prefix := c.Genesis.Prefix(); len(prefix) > 0 {
			key, end = prefix, scope.PrefixEnd(prefix)
		}
		if part := b.once(n, key, end, func(*scope.RangePart) bool { return true }); part != nil {
			return part
		}
	}
	return nil
}
