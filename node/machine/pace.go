package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// paces returns how many mutations of a bundle count at the rates of authors (P46), beside those that wait already, and
// why it is refused if an entry has no room for one. A bundle that waits already counts once.
func (m *Machine) paces(b *scope.CheckedBundle, at aweigh.Instant) (counts map[string]int64, failure error) {
	if m.pool.entries[b.ID()] != nil {
		return nil, nil
	}
	counts, failure, err := m.chain.state.Paces(b, at, m.pool.paced)
	must.OK(err, "reading what authors use")
	return counts, failure
}

// pace counts the mutations of an entry in the pool, or no longer, by the entries of authors whose rates they use.
func (p *pool) pace(e *pooled, counts map[string]int64, by int64) {
	if len(counts) == 0 {
		return
	}
	if p.paced == nil {
		p.paced = make(map[string]int64)
	}
	for name, n := range counts { // order-free: sums
		if p.paced[name] += by * n; p.paced[name] == 0 {
			delete(p.paced, name)
		}
	}
	e.paced = counts
}
