package monitor

import (
	"hash/fnv"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// sketched is the number of views in a sketch, up to the highest one with votes.
const sketched = 2

// Sketch names what matters of the votes: for the newest views which certificates there can be, on which view their
// blocks stand, and whether some votes lack for more; and how far apart the anchors are. Runs that come to the same
// sketch are about as far as each other.
func (e *Epoch) Sketch() uint64 {
	low := e.top - min(e.top, sketched-1)
	var text []byte
	for v := low; v <= e.top; v++ {
		if x := e.views[v]; x != nil {
			text = append(text, e.sketchView(v, x)...)
		}
		text = append(text, '/')
	}
	last := e.top
	for seat := range e.anchors {
		if a := &e.anchors[seat]; !a.lies {
			last = min(last, a.at)
		}
	}
	text = append(text, byte(min(e.top-last, 3)))
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64()
}

func (e *Epoch) sketchView(v aweigh.View, x *view) (text []byte) {
	flag := func(mark byte, is bool) {
		if is {
			text = append(text, mark)
		}
	}
	flag('0', e.can(quorum.Nullify, x.nullified))
	for i := range x.blocks {
		c := &x.blocks[i]
		text = append(text, 'b')
		flag('n', e.can(quorum.Notarize, c.notarized))
		flag('f', e.can(quorum.Finalize, c.finalized))
		if b := e.blocks[c.hash]; b != nil {
			above := v
			if parent := e.blocks[b.parent]; parent != nil {
				above = v - parent.view
			}
			text = append(text, byte(min(above, 3)))
		}
	}
	return text
}
