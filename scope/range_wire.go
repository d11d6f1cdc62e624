package scope

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/keytree"
)

// rangeProofWire is the encoded form of a RangeProof.
type rangeProofWire struct {
	_     struct{} `cbor:",toarray"`
	Key   []byte
	End   []byte
	Parts []rangePartWire
}

// rangePartWire is the encoded form of a RangePart. A leaf that follows from the content of its key is left out.
type rangePartWire struct {
	_        struct{} `cbor:",toarray"`
	Ancestry Ancestry
	Left     []keytree.Step
	Beside   []keytree.Leaf // that do not follow from the content
	Right    []keytree.Step
	Kvs      []KeyValue
}

// leafOf is the leaf of a key with this content.
func leafOf(v *KeyValue) keytree.Leaf {
	return keytree.Leaf{Key: v.Key, Kind: HoldsVersion, Digest: v.Digest()}
}

func (p *RangePart) wire() rangePartWire {
	w := rangePartWire{Ancestry: p.Ancestry, Left: p.Leaves.Left, Right: p.Leaves.Right, Kvs: p.Kvs}
	kvs := p.Kvs
	for _, l := range p.Leaves.Leaves {
		for len(kvs) > 0 && bytes.Compare(kvs[0].Key, l.Key) < 0 {
			kvs = kvs[1:]
		}
		if len(kvs) > 0 && bytes.Equal(kvs[0].Key, l.Key) {
			if of := leafOf(&kvs[0]); of.Kind == l.Kind && of.Digest == l.Digest {
				continue
			}
		}
		w.Beside = append(w.Beside, l)
	}
	return w
}

// part puts the leaves of the content between the others, in order of their keys.
func (w *rangePartWire) part() RangePart {
	p := RangePart{Ancestry: w.Ancestry, Leaves: keytree.Proof{Left: w.Left, Right: w.Right}, Kvs: w.Kvs}
	beside := w.Beside
	for i := range w.Kvs {
		for len(beside) > 0 && bytes.Compare(beside[0].Key, w.Kvs[i].Key) < 0 {
			p.Leaves.Leaves, beside = append(p.Leaves.Leaves, beside[0]), beside[1:]
		}
		p.Leaves.Leaves = append(p.Leaves.Leaves, leafOf(&w.Kvs[i]))
	}
	p.Leaves.Leaves = append(p.Leaves.Leaves, beside...)
	return p
}

// Encode is the part's canonical encoding.
func (p *RangePart) Encode() []byte { return canon.Encode(p.wire()) }

// DecodeRangePart reads what RangePart.Encode wrote. It verifies nothing. Errors wrap ErrProof.
func DecodeRangePart(data []byte) (p RangePart, err error) {
	w, err := decodeProof[rangePartWire](data)
	if err != nil {
		return p, err
	}
	return w.part(), nil
}

// Encode is the proof's canonical encoding.
func (p *RangeProof) Encode() []byte {
	w := rangeProofWire{Key: p.Key, End: p.End}
	for i := range p.Parts {
		w.Parts = append(w.Parts, p.Parts[i].wire())
	}
	return canon.Encode(w)
}

// DecodeRangeProof reads what Encode wrote. It verifies nothing. Errors wrap ErrProof.
func DecodeRangeProof(data []byte) (*RangeProof, error) {
	w, err := decodeProof[rangeProofWire](data)
	if err == nil && len(w.Parts) == 0 {
		err = fmt.Errorf("%w: it has no parts", ErrProof)
	}
	if err != nil {
		return nil, err
	}
	p := &RangeProof{Key: w.Key, End: w.End}
	for i := range w.Parts {
		p.Parts = append(p.Parts, w.Parts[i].part())
	}
	return p, nil
}
