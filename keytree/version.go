package keytree

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// version is a tree among those that share nodes. One that is kept holds the changes up to the newest in memory.
type version struct {
	root  aweigh.Hash
	size  int
	nodes *nodes

	// Under the lock of nodes:
	next *version // nil: nodes are those of this version
	back []Change // what makes next into this version
}

// with is a new version after changes, which are in order, to which the nodes belong then.
func (v *version) with(changes []Change) *version {
	v.take()
	next := &version{nodes: v.nodes}
	v.next, v.back = next, v.nodes.change(changes)
	v.nodes.pack()
	next.size, next.root = len(v.nodes.leaves)-len(v.nodes.freeLeaves), v.nodes.sum()
	return next
}

// take makes the nodes those of this version. That takes as long as the changes between did.
func (v *version) take() {
	var way []*version // from this version to the one that has the nodes
	for at := v; at.next != nil; at = at.next {
		way = append(way, at)
	}
	for _, to := range slices.Backward(way) {
		from := to.next
		from.next, from.back = to, v.nodes.change(to.back)
		to.next, to.back = nil, nil
	}
	if len(way) > 0 {
		v.nodes.sum()
	}
}
