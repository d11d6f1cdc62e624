package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
)

// wake returns when the machine must be stepped next if no event comes, 0 if never.
func (m *Machine) wake() aweigh.Instant {
	at := m.engineWake
	if m.slot != nil {
		at = aweigh.Earliest(at, m.gatherUntil())
	}
	if m.guard != nil {
		at = aweigh.Earliest(at, m.closing())
	}
	if m.guard == nil {
		at = aweigh.Earliest(at, max(m.pollAt, m.now)) // at once where an epoch began
	}
	for _, t := range []aweigh.Instant{m.announceAt, m.wants.next(), m.sync.at, m.reads.wake(m), m.listen.wake(m.now), m.polls.at, m.pool.keepAt, m.retain.wake()} {
		at = aweigh.Earliest(at, t)
	}
	return at
}

// closing returns the next instant at which the epoch, a motion, a lease or the notice of an order ends by the clock,
// 0 if there is none.
func (m *Machine) closing() (next aweigh.Instant) {
	at, err := m.chain.state.ClockEnds()
	must.OK(err, "reading the tally")
	for _, t := range []aweigh.Instant{at, m.chain.state.Head().Docket.Next, m.chain.state.LeaseDue(), m.order.due} {
		if t > m.now {
			next = aweigh.Earliest(next, t)
		}
	}
	return next
}

// busy reports whether there is something to decide: mutations or ballots that no proposal holds, the end of the
// epoch, of a motion or of a lease, or an order of the scope above.
func (m *Machine) busy() bool {
	if m.Closed() {
		return false
	}
	due, err := m.chain.state.Due(m.now)
	must.OK(err, "reading the tally")
	lease := m.chain.state.LeaseDue()
	founded := m.chain.state.Height() == 0 && m.chain.state.Head().Prefix != "" // its first block shows that it decides
	return founded || due || lease != 0 && lease <= m.now || m.pool.waiting > 0 || m.polls.due.unproposed > 0 || m.chain.state.DeadlinePassed(m.now) || m.order.waits(m.now)
}
