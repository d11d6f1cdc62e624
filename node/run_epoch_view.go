package node

import (
	"sync/atomic"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// epochView is the term of the newest epoch, for the goroutines around the machine.
type epochView struct {
	term atomic.Pointer[machine.EpochView]
}

// set publishes the term that the machine is in, and reports whether it is new.
func (r *epochView) set(t *machine.EpochView) bool { return r.term.Swap(t) != t }

// checker returns the Checker of the newest epoch.
func (r *epochView) checker() *machine.Checker { return r.term.Load().Checker }

// Anchor implements admission.Members.
func (r *epochView) Anchor(p machine.Peer) bool {
	_, ok := r.term.Load().Anchors[p]
	return ok
}

// epoch returns the newest epoch.
func (r *epochView) epoch() *scope.Epoch { return r.term.Load().Epoch }

// Seats implements admission.Members.
func (r *epochView) Seats() int { return len(r.term.Load().Anchors) }
