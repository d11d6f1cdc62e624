package machine

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// Ordered says that the scope above has ordered another government for this scope, or that it goes back to the one
// above. The order takes effect after the notice in this scope's genesis. It comes from this node's own final state of
// the scope above.
type Ordered struct{ Revocation *scope.Revocation }

func (Ordered) event() {}

// order holds the newest order of the scope above that this node knows.
type order struct {
	newest *scope.Revocation // nil: none
	tried  int               // how often this anchor proposed to carry it out
	due    aweigh.Instant    // when it is to be carried out, on top of the final state; 0: never
}

// hear takes an order, unless a newer one is known.
func (o *order) hear(m *Machine, r *scope.Revocation) {
	if r != nil && (o.newest == nil || r.Entry > o.newest.Entry) {
		o.newest, o.tried = r, 0
		o.look(m)
	}
}

// look determines from the final state when the order is to be carried out.
func (o *order) look(m *Machine) {
	from, awaits, err := m.chain.state.Awaits(o.newest)
	must.OK(err, "reading the genesis")
	if o.due = 0; awaits {
		o.due = max(1, from)
	}
}

// mayChange reports whether the end of an epoch may change when the order is to be carried out: a scope cannot go home
// while it has a prefix delegated, and may have failed to.
func (o *order) mayChange() bool { return o.newest != nil && o.newest.Folds() }

// An anchor that proposed to carry out an order does so again after leastPatience at first and mostPatience at most.
// Other anchors may not know the order yet; then they give up each view in which it is proposed.
const (
	leastPatience = 500 * time.Millisecond
	mostPatience  = time.Minute
)

// propose is like on, for a block that this anchor proposes. It puts off the next attempt, so that an order for which
// other anchors do not vote, or which cannot be carried out now, does not hold up everything else, nor ask for one
// empty block after another. The notice must be over by this node's clock as well: a scope whose time has run ahead
// does not shorten the notice.
func (o *order) propose(m *Machine, s *scope.State, at aweigh.Instant) *scope.Revocation {
	if at = min(m.now, at); !o.waits(at) {
		return nil
	}
	r := o.on(s, at)
	o.due = m.now.Add(min(m.cfg.Bounds.OrderSoon<<min(o.tried, 16), m.cfg.Bounds.OrderLate))
	o.tried++
	if r != nil && r.Folds() {
		failure, err := s.TooMuch()
		must.OK(err, "reading what the scope holds")
		if failure != nil { // it may hold less later
			return nil
		}
	}
	return r
}

// waits reports whether it is time to carry out the order.
func (o *order) waits(now aweigh.Instant) bool { return o.due != 0 && o.due <= now }

// on returns the order that a block with time at on top of s carries out, nil if there is none.
func (o *order) on(s *scope.State, at aweigh.Instant) *scope.Revocation {
	if !o.waits(at) {
		return nil
	}
	from, awaits, err := s.Awaits(o.newest)
	must.OK(err, "reading the genesis")
	if !awaits || from > at {
		return nil
	}
	return o.newest
}
