package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// FreeMemory frees memory that only the next block needs, and that this block's execution fills or reads again: there
// may be thousands of scopes, most of them idle. It changes nothing but the use of memory. Call it after effects were
// performed, when there has been nothing to do for a while. If something waits to be decided, it does nothing.
func (m *Machine) FreeMemory() {
	m.chain.settle()
	if len(m.chain.candidates) > 0 || len(m.pool.entries) > 0 {
		return
	}
	m.fx = Effects{}
	m.recent.Reset()
	if !m.chain.state.IsLean() {
		m.chain.freeMemory()
		m.attends.freeMemory(m.chain.state)
	}
	m.pool.freeMemory()
	m.polls.known = nil // as the state says
	m.lastOffer = nil
	if m.proposed <= m.engine.Final() {
		m.proposal = nil
	}
	m.helped.freeMemory(m.now)
	m.served.freeMemory(m.now)
	if len(m.inputs) == 0 {
		m.inputs = nil
	}
	if len(m.checks) == 0 {
		m.checks = nil
	}
	m.met = nil
}

// freeMemory forgets the ballots on blocks that a block on top of s can no longer record.
func (l attends) freeMemory(s *scope.State) {
	open := make(map[aweigh.View]bool)
	err := s.Open(func(_ aweigh.Height, subject quorum.Subject, _ func(aweigh.AnchorID) bool) { open[subject.View] = true })
	must.OK(err, "reading the tally")
	for v := range l { // order-free: a filter
		if v <= s.Head().View && !open[v] {
			delete(l, v)
		}
	}
}

func (c *chain) freeMemory() {
	c.state = c.state.Lean()
	c.store.FreeMemory()
	c.candidates, c.order = nil, nil
}

// freeMemory frees the memory of an empty pool.
func (p *pool) freeMemory() {
	p.entries, p.order, p.gone = nil, nil, 0
	if len(p.mine) == 0 {
		p.mine = nil
	}
	if len(p.durable) == 0 {
		p.durable = nil
	}
	if len(p.kept) == 0 {
		p.kept = nil
	}
}

// freeMemory forgets the peers that may be answered again.
func (l *nextHelp) freeMemory(now aweigh.Instant) {
	for p, at := range *l { // order-free: a filter
		if now >= at {
			delete(*l, p)
		}
	}
	if len(*l) == 0 {
		*l = nil
	}
}
