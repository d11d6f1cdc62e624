package scope

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
)

// bends are ways to bend an honest proof. A bend returns nil if the proof has nothing of the kind. What comes of it
// may hold, if it shows the truth: a signature more than needed may go, and a range may be narrower.
var bends = []struct {
	name string
	bend func(w *vectorWorld, h *honestProof) []byte
}{
	{"a bit", func(w *vectorWorld, h *honestProof) []byte {
		raw := bytes.Clone(h.raw)
		raw[w.rng.IntN(len(raw))] ^= 1 << w.rng.IntN(8)
		return raw
	}},
	{"a byte", func(w *vectorWorld, h *honestProof) []byte {
		raw := bytes.Clone(h.raw)
		raw[w.rng.IntN(len(raw))] = byte(w.rng.IntN(256))
		return raw
	}},
	{"a byte more", func(w *vectorWorld, h *honestProof) []byte {
		return slices.Insert(bytes.Clone(h.raw), w.rng.IntN(len(h.raw)+1), byte(w.rng.IntN(256)))
	}},
	{"cut off", func(w *vectorWorld, h *honestProof) []byte { return h.raw[:w.rng.IntN(len(h.raw))] }},
	{"a value", ofKvs(func(w *vectorWorld, v *KeyValue) { v.Value = append(bytes.Clone(v.Value), '!') })},
	{"a revision", ofKvs(func(w *vectorWorld, v *KeyValue) { v.ModRevision++ })},
	{"a version without a value", ofKvs(func(w *vectorWorld, v *KeyValue) { v.Version, v.Value = 0, nil })},
	{"a value that is hidden", ofParts(func(w *vectorWorld, p *RangePart) {
		if len(p.Kvs) > 0 {
			p.Kvs = p.Kvs[:len(p.Kvs)-1]
		}
	})},
	{"a weight", ofParts(func(w *vectorWorld, p *RangePart) {
		if hands := p.Ancestry.Handovers; len(hands) > 0 {
			weights := hands[w.rng.IntN(len(hands))].Terms.Weights
			weights[w.rng.IntN(len(weights))]++
			return
		}
		anchors := p.Ancestry.Genesis.Anchors
		anchors[w.rng.IntN(len(anchors))].Score /= 2
	})},
	{"a signer that stays away", ofSigned(func(w *vectorWorld, f *Finality) {
		all, i := f.Certificate.Signatures, w.rng.IntN(len(f.Certificate.Signatures))
		f.Certificate.Signatures = slices.Delete(all, i, i+1)
	})},
	{"two signers that stay away", ofSigned(func(w *vectorWorld, f *Finality) {
		f.Certificate.Signatures = f.Certificate.Signatures[:len(f.Certificate.Signatures)-2]
	})},
	{"a signer's name under another signature", ofSigned(func(w *vectorWorld, f *Finality) {
		all := f.Certificate.Signatures
		all[0].Bytes, all[1].Bytes = all[1].Bytes, all[0].Bytes
	})},
	{"a signer twice", ofSigned(func(w *vectorWorld, f *Finality) {
		all := f.Certificate.Signatures
		all[1] = all[0]
	})},
	{"a signer from elsewhere", ofSigned(func(w *vectorWorld, f *Finality) {
		f.Certificate.Signatures[w.rng.IntN(len(f.Certificate.Signatures))].Anchor = aweigh.Sum([]byte("elsewhere"))
	})},
	{"a key beside the range", ofParts(func(w *vectorWorld, p *RangePart) {
		l := &p.Leaves.Leaves[w.rng.IntN(2)*(len(p.Leaves.Leaves)-1)]
		l.Key = append(bytes.Clone(l.Key), '0')
	})},
	{"a dropped leaf", ofParts(func(w *vectorWorld, p *RangePart) {
		i := w.rng.IntN(len(p.Leaves.Leaves))
		key := p.Leaves.Leaves[i].Key
		p.Leaves.Leaves = slices.Delete(p.Leaves.Leaves, i, i+1)
		p.Kvs = slices.DeleteFunc(p.Kvs, func(v KeyValue) bool { return bytes.Equal(v.Key, key) })
	})},
	{"a leaf of another kind", ofParts(func(w *vectorWorld, p *RangePart) { p.Leaves.Leaves[w.rng.IntN(len(p.Leaves.Leaves))].Kind ^= 1 })},
	{"a subtree beside the leaves", ofParts(func(w *vectorWorld, p *RangePart) {
		steps := p.Leaves.Left
		if len(steps) == 0 {
			steps = p.Leaves.Right
		}
		if len(steps) > 0 {
			steps[w.rng.IntN(len(steps))].Hash[w.rng.IntN(32)] ^= 1
		}
	})},
	{"an older root", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		old := w.stale[string(p.Key)+string(p.End)]
		if old == nil || h.at != w.newer {
			return nil
		}
		p.Parts[0].Leaves, p.Parts[0].Kvs = old.Parts[0].Leaves, old.Parts[0].Kvs
		return p.Encode()
	}},
	{"another scope", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		if len(p.Parts) == 1 {
			p.Parts = w.honest[len(w.honest)-5].copy().Parts[1:2] // of the proof of all keys
		} else {
			p.Parts[1] = p.Parts[len(p.Parts)-1]
			p.Parts = p.Parts[:len(p.Parts)-1]
		}
		return p.Encode()
	}},
	{"a scope less", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		if len(p.Parts) == 1 {
			return nil
		}
		p.Parts = p.Parts[:len(p.Parts)-1]
		return p.Encode()
	}},
	{"another network", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		p.Parts[0] = w.other.Parts[0]
		return p.Encode()
	}},
	{"a genesis", ofParts(func(w *vectorWorld, p *RangePart) { p.Ancestry.Genesis.Policy.EpochBlocks++ })},
	{"a way with a step less", ofParts(func(w *vectorWorld, p *RangePart) {
		if n := len(p.Ancestry.Above); n > 0 {
			p.Ancestry.Above = p.Ancestry.Above[:n-1]
		}
	})},
	{"an epoch less", ofParts(func(w *vectorWorld, p *RangePart) {
		if n := len(p.Ancestry.Handovers); n > 0 {
			p.Ancestry.Handovers = p.Ancestry.Handovers[:n-1]
		}
	})},
	{"a later time", ofSigned(func(w *vectorWorld, f *Finality) { f.Header.Time++ })},
	{"another root", ofSigned(func(w *vectorWorld, f *Finality) { f.Header.Current[0] ^= 1 })},
	{"a key that is shown as all", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		if len(p.End) > 0 || len(p.Parts[0].Kvs) == 0 {
			return nil
		}
		p.End = []byte{0}
		return p.Encode()
	}},
	{"another first key", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		p.Key = []byte(w.someKey())
		return p.Encode()
	}},
	{"another end", func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		p.End = []byte(w.someKey())
		return p.Encode()
	}},
}

// ofParts bends one part of a proof.
func ofParts(bend func(*vectorWorld, *RangePart)) func(*vectorWorld, *honestProof) []byte {
	return func(w *vectorWorld, h *honestProof) []byte {
		p := h.copy()
		bend(w, &p.Parts[w.rng.IntN(len(p.Parts))])
		return p.Encode()
	}
}

// ofKvs bends the content of one key.
func ofKvs(bend func(*vectorWorld, *KeyValue)) func(*vectorWorld, *honestProof) []byte {
	return ofParts(func(w *vectorWorld, p *RangePart) {
		if len(p.Kvs) > 0 {
			bend(w, &p.Kvs[w.rng.IntN(len(p.Kvs))])
		}
	})
}

// ofSigned bends a final block: the head of a part, or one that ended an epoch on the way there.
func ofSigned(bend func(*vectorWorld, *Finality)) func(*vectorWorld, *honestProof) []byte {
	return ofParts(func(w *vectorWorld, p *RangePart) {
		all := []*Finality{&p.Ancestry.Head}
		for i := range p.Ancestry.Handovers {
			all = append(all, &p.Ancestry.Handovers[i].Final)
		}
		bend(w, all[w.rng.IntN(len(all))])
	})
}
