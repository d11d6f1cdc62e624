package machine

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// KeepAfter is after how long a waiting mutation of this node's own clients is stored on disk (P35). Where a quorum
// answers, hardly any mutation waits that long.
const KeepAfter = 3 * time.Second

// keep makes durable the bundles that have waited for long, and deletes those that no longer wait. A bundle that an
// open proposal holds waits as well: the proposal fails if this node stopped before any other anchor received it.
func (m *Machine) keep() {
	p := &m.pool
	for _, id := range p.kept {
		m.write(kv.Del(keyPending(m.id, id)))
	}
	p.kept = p.kept[:0]
	if p.own == 0 {
		p.keepAt = 0
		return
	}
	if p.keepAt == 0 {
		p.keepAt = m.now.Add(m.cfg.Bounds.KeepAfter)
	}
	if m.now < p.keepAt {
		return
	}
	p.keepAt = m.now.Add(m.cfg.Bounds.KeepAfter)
	for _, e := range p.order {
		if !e.gone && e.local && !e.kept && m.now.Sub(e.came) >= m.cfg.Bounds.KeepAfter/2 {
			m.write(kv.Set(keyPending(m.id, e.bundle.ID()), e.bundle.Raw()))
			m.fx.Sync = true
			p.onDisk(e)
		}
	}
}

// onDisk notes that an entry is on disk, or will be with this step.
func (p *pool) onDisk(e *pooled) {
	e.kept = true
	if p.durable == nil {
		p.durable = make(map[aweigh.Hash]bool)
	}
	for i := range e.bundle.Mutations() {
		p.durable[e.bundle.Mutations()[i].ID] = true
	}
}

// Kept reports whether a mutation that waits here is on disk, provided that the writes of earlier effects are.
func (m *Machine) Kept(mutation aweigh.Hash) bool { return m.pool.durable[mutation] }

// Waits visits the bundles that wait here to become part of a final block, in order of arrival, until visit returns
// false. kept reports whether this node has one on disk, and continues with it after a restart.
func (m *Machine) Waits(visit func(b *scope.CheckedBundle, kept bool) bool) {
	for _, e := range m.pool.order {
		if !e.gone && !visit(e.bundle, e.kept) {
			return
		}
	}
}

// restorePool reads back the bundles that waited when this node stopped.
func (m *Machine) restorePool() error {
	all := Record(m.id, 'p')
	return m.store.Scan(all, kv.PrefixEnd(all), false, func(k, raw []byte) bool {
		b, err := verified(slices.Clone(raw), m.chain.policy.Limits)
		if err != nil { // of another program or policy; the client repeats it
			m.pool.kept = append(m.pool.kept, aweigh.Hash(k[len(all):]))
			return true
		}
		if m.pool.add(b, "", false, false, true, 0) == nil {
			m.pool.onDisk(m.pool.entries[b.ID()])
		}
		return true
	})
}

// verified returns the bundle of an encoding whose signatures were verified before. It returns an error if the bundle
// is not within the limits.
func verified(raw []byte, lim scope.Limits) (*scope.CheckedBundle, error) {
	return scope.CheckBundle(raw, lim, func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil })
}
