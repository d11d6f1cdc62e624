package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// Bundles that act by grants with a record lose their place in the pool with the block that deletes the record: no
// later block can carry them out, and a patient one would take room of its principal for weeks.

// grants are those of some bundles in a pool.
type grants struct {
	of []scope.Grant // and not a bundle: it would stay in memory after its place was given up
	n  int           // bundles
}

// grantsOf names the grants of a bundle, zero if none has a record.
func grantsOf(b *scope.CheckedBundle) aweigh.Hash {
	if !b.Recorded() {
		return aweigh.Hash{}
	}
	return aweigh.Sum(b.Mutations()[0].Grants...)
}

// countGrants adds a bundle to those by its grants, or takes it away: by is 1 or -1.
func (p *pool) countGrants(e *pooled, by int) {
	if e.grants.IsZero() {
		return
	}
	g := p.grants[e.grants]
	if g == nil {
		if g = (&grants{of: e.bundle.Grants()}); p.grants == nil {
			p.grants = make(map[aweigh.Hash]*grants)
		}
		p.grants[e.grants] = g
	}
	if g.n += by; g.n == 0 {
		delete(p.grants, e.grants)
	}
}

// dropRevoked drops the bundles whose grants are revoked as of the newest block, but for those in open proposals, which
// fail on record. A request for such a mutation is refused.
func (m *Machine) dropRevoked() {
	if len(m.pool.grants) == 0 || m.cfg.TakesDenied && m.guard != nil {
		return
	}
	revoked := make(map[aweigh.Hash]error)
	for id, g := range m.pool.grants { // order-free: a set
		failure, err := m.chain.state.Revoked(g.of)
		must.OK(err, "reading the record of a grant")
		if failure != nil {
			revoked[id] = failure
		}
	}
	if len(revoked) == 0 {
		return
	}
	var all []unfit
	for _, e := range m.pool.order {
		if e.gone || e.view != 0 {
			continue
		}
		if why := revoked[e.grants]; why != nil {
			all = append(all, unfit{e, why})
		}
	}
	m.refuse(all, nil)
}
