package sim

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// resumes looks at the disk with which a node starts: if the node died between the commit of a step and its notes and
// frames, nothing else tells of what became final there, and of what it proposed.
func (x *watch) resumes(n *Node) {
	if n.excused() || x.lost {
		return
	}
	x.proposedUntold(n)
	x.finalUntold(n)
}

// finalUntold notes the final blocks, and the epochs that begin with them, that no node has told of.
func (x *watch) finalUntold(n *Node) {
	w, h := x.w, machine.History{Reader: n.Disk, Scope: x.w.id}
	for height := x.top + 1; height <= n.machine.Status().Head.Height; height++ {
		b, err := h.Block(height)
		must.OK(err, "reading a final block")
		x.finalized(n, machine.Finalized{Height: height, View: b.Header.View, Block: b.Hash(), Epoch: b.Header.Epoch, Mutations: b.Len()})
		if b.Header.Next.IsZero() || int(b.Header.Epoch)+1 != len(w.epochs) {
			continue
		}
		hands, err := h.Handovers(height-1, 1)
		must.OK(err, "reading a handover")
		if len(hands) == 0 { // it is not complete yet
			return
		}
		next, err := w.epochs[b.Header.Epoch].Follow(hands[0])
		must.OK(err, "following a handover")
		x.epoch(n, next)
	}
}

// proposedUntold notes the blocks that the watch has not seen.
func (x *watch) proposedUntold(n *Node) {
	prefix := machine.Record(x.w.id, 'b')
	err := n.Disk.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		if _, known := x.headers[aweigh.Hash(k[len(prefix):])]; known {
			return true
		}
		if b, err := scope.DecodeBlock(raw, scope.MostLimits(), x.w.verify); err == nil {
			x.proposed(b.Header)
		}
		return true
	})
	must.OK(err, "reading blocks")
}
