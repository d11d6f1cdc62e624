package node

import (
	"sync/atomic"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// roll is the term of the newest epoch, for the goroutines around the machine.
type roll struct{ term atomic.Pointer[term] }

// call makes known the term that the machine is in, and reports whether it is new.
func (r *roll) call(t *term) bool { return r.term.Swap(t) != t }

// checker verifies frames of the newest epoch.
func (r *roll) checker() *Checker { return r.term.Load().checker }

// anchor is the anchor whose node a peer is.
func (r *roll) anchor(p Peer) (a aweigh.AnchorID, ok bool) {
	a, ok = r.term.Load().anchors[p]
	return a, ok
}

// epoch is the newest one.
func (r *roll) epoch() *scope.Epoch { return r.term.Load().epoch }

// seats is how many anchors there are.
func (r *roll) seats() int { return len(r.term.Load().anchors) }
