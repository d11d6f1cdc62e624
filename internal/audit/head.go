package audit

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// Head is the line of a state of the lineage that anchors made final, and that holds all entries of the lines before.
// It has what proves that to a reader that knows the network's identity.
type Head struct {
	Kind        string   `json:"kind"`
	Next        string   `json:"next"` // of the line before
	Network     string   `json:"network"`
	Scope       string   `json:"scope"`
	Size        int64    `json:"size"` // entries
	Root        string   `json:"root"` // RFC 6962, section 2.1
	Height      uint64   `json:"height"`
	Block       string   `json:"block"` // whose header names size and root
	Time        string   `json:"time"`
	Consistency []string `json:"consistency"` // with the entries before the line: RFC 6962, section 2.1.2
	Ancestry    []byte   `json:"ancestry"`    // from the genesis by all handovers to the block: scope.Ancestry
}

// HeadOf is the line after the entry before next, of a verified ancestry and a proof of consistency.
func HeadOf(next int64, network aweigh.NetworkID, a *scope.Ancestry, c lineage.Consistency) *Head {
	h := &a.Head.Header
	line := &Head{
		Kind: KindHead, Next: since(next), Network: network.String(), Scope: a.Genesis.Hash().String(), Size: h.LineageSize,
		Root: h.LineageRoot.String(), Height: uint64(h.Height), Block: h.Hash().String(), Time: instant(h.Time),
		Consistency: []string{}, Ancestry: a.Encode(),
	}
	for _, x := range c.Path {
		line.Consistency = append(line.Consistency, x.String())
	}
	return line
}

// read verifies the way from the network's identity to the head, and returns the epochs on it.
func (l *Head) read(network *aweigh.NetworkID, trust func(*scope.Ancestry) error) (a scope.Ancestry,
	epochs []*scope.Epoch, err error) {
	if a, err = scope.DecodeAncestry(l.Ancestry); err != nil {
		return a, nil, err
	}
	of := a.Genesis.Network()
	if network != nil && of != *network {
		return a, nil, fmt.Errorf("%w: it is of network %s, and not of %s", scope.ErrProof, of, *network)
	}
	if epochs, err = a.Rulers(of); err == nil && trust != nil {
		err = trust(&a)
	}
	return a, epochs, err
}

// consistent is the proof of a line that stands after so many entries.
func (l *Head) consistent(after int64) (c lineage.Consistency, err error) {
	c = lineage.Consistency{Old: after, Size: l.Size}
	for _, text := range l.Consistency {
		h, err := aweigh.ParseHash(text)
		if err != nil {
			return c, fmt.Errorf("%w: %w", ErrLine, err)
		}
		c.Path = append(c.Path, h)
	}
	return c, nil
}
