package machine

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Patient bundles, which may wait for weeks, take one part in patientShare of the pool, and those of one author one in
// patientOfOne.
const (
	patientShare = 4
	patientOfOne = 16
)

// errManyPatient refuses a bundle that may wait for weeks.
var errManyPatient = fmt.Errorf("%w, for longer than limits.valid_for", ErrBusy)

// patient returns the author that a bundle acts for if the bundle may wait for longer than the policy's
// limits.valid_for, zero if not.
func (m *Machine) patient(b *scope.CheckedBundle) aweigh.Hash {
	lim := &m.chain.policy.Limits
	if b.ValidUntil() <= max(m.now, m.chain.state.Head().Time).Add(lim.ValidFor+lim.Drift) {
		return aweigh.Hash{}
	}
	return b.Mutations()[0].Principal()
}

// waitsFull reports why there is no room for a bundle of some bytes that may wait for weeks.
func (p *pool) waitsFull(author aweigh.Hash, bytes int) error {
	if !author.IsZero() && (p.patient[author]+bytes > p.limit/patientOfOne || p.patient[aweigh.Hash{}]+bytes > p.limit/patientShare) {
		return errManyPatient
	}
	return nil
}

// countPatient adds the bytes of an entry, or takes them away, by is 1 or -1.
func (p *pool) countPatient(e *pooled, by int) {
	if e.patience.IsZero() {
		return
	}
	if p.patient == nil {
		p.patient = make(map[aweigh.Hash]int)
	}
	for _, author := range []aweigh.Hash{e.patience, {}} {
		if p.patient[author] += by * len(e.bundle.Raw()); p.patient[author] == 0 {
			delete(p.patient, author)
		}
	}
}
