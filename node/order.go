package node

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// Ordered says that the scope above has ordered that this one shall have another
// government, after the notice that it was founded with. It comes from this node's own,
// final state of the scope above.
type Ordered struct{ Revocation *scope.Revocation }

func (Ordered) event() {}

// order is the newest one that the scope above gave, as far as this node knows.
type order struct {
	newest *scope.Revocation // nil: none
	tried  int               // how often this anchor proposed to obey it
	due    aweigh.Instant    // when it is to be obeyed, on top of the final state; 0: it is not
}

// hear takes an order, unless a newer one is known.
func (o *order) hear(m *Machine, r *scope.Revocation) {
	if r != nil && (o.newest == nil || r.Entry > o.newest.Entry) {
		o.newest, o.tried = r, 0
		o.look(m)
	}
}

// look finds out when the order is to be obeyed, as things stand.
func (o *order) look(m *Machine) {
	from, awaits, err := m.chain.state.Awaits(o.newest)
	must.OK(err, "reading the genesis")
	if o.due = 0; awaits {
		o.due = max(1, from)
	}
}

// patience is after how long an anchor proposes once more to obey an order, at first and at most. Others may
// not know the order yet, and give each view up in which it is proposed.
const (
	leastPatience = 500 * time.Millisecond
	mostPatience  = time.Minute
)

// propose is on, for a block that this anchor proposes: what nobody votes for shall not hold up all else. The notice
// is over by this node's clock as well: a scope whose time has run ahead does not cut it short.
func (o *order) propose(m *Machine, s *scope.State, at aweigh.Instant) *scope.Revocation {
	r := o.on(s, min(m.now, at))
	if r != nil {
		o.due = m.now.Add(min(m.cfg.Bounds.OrderSoon<<min(o.tried, 16), m.cfg.Bounds.OrderLate))
		o.tried++
	}
	return r
}

// waits reports whether it is time to obey.
func (o *order) waits(now aweigh.Instant) bool { return o.due != 0 && o.due <= now }

// on is the order that a block of a time on top of a state is to obey, nil if none.
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
