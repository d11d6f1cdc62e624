package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// wake is when the machine is to be stepped next if nothing happens, 0 if never.
func (m *Machine) wake() aweigh.Instant {
	at := m.engineWake
	if m.slot != nil {
		at = aweigh.Earliest(at, m.gatherUntil())
	}
	if m.guard != nil {
		at = aweigh.Earliest(at, m.closing())
	}
	for _, t := range []aweigh.Instant{m.announceAt, m.pollAt, m.wants.next(), m.sync.at, m.reads.wake(m), m.listen.at, m.polls.at, m.pool.keepAt, m.retain.wake()} {
		at = aweigh.Earliest(at, t)
	}
	return at
}

// closing is when the clock ends the epoch, the next motion or the next lease, or the
// notice of an order, 0 if it does not, or did.
func (m *Machine) closing() (next aweigh.Instant) {
	at, err := m.chain.state.Deadline()
	must.OK(err, "reading the tally")
	for _, t := range []aweigh.Instant{at, m.chain.state.Head().Docket.Next, m.chain.state.LeaseDue(), m.order.due} {
		if t > m.now {
			next = aweigh.Earliest(next, t)
		}
	}
	return next
}
