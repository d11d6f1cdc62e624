package keytree

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// version is a tree among those that share nodes.
type version struct {
	root  aweigh.Hash
	size  int
	nodes *nodes

	// Under the lock of nodes:
	next *version // nil: nodes are those of this version
	back []Change // what makes next into this version
}

// with is a new version after changes, to which the nodes belong then.
func (v *version) with(changes []Change) *version {
	v.take()
	next := &version{nodes: v.nodes}
	v.next, v.back = next, make([]Change, 0, len(changes))
	for i := range changes {
		if undo, ok := v.nodes.change(&changes[i]); ok {
			v.back = append(v.back, undo)
		}
	}
	slices.Reverse(v.back)
	v.nodes.pack()
	next.size, next.root = len(v.nodes.leaves)-len(v.nodes.freeLeaves), v.nodes.sum()
	return next
}

// take makes the nodes those of this version.
func (v *version) take() {
	var way []*version // from this version to the one that has the nodes
	for at := v; at.next != nil; at = at.next {
		way = append(way, at)
	}
	for _, to := range slices.Backward(way) {
		from := to.next
		from.next, from.back = to, make([]Change, 0, len(to.back))
		for i := range to.back {
			if undo, ok := v.nodes.change(&to.back[i]); ok {
				from.back = append(from.back, undo)
			}
		}
		slices.Reverse(from.back)
		to.next, to.back = nil, nil
	}
	v.nodes.sum()
}
