package machine

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Patient bundles, which may wait for weeks, take one part in patientShare of the pool, and those of one author one in
// patientOfOne. Where authors that are neither anchors nor clients of this node ask for more, bundles of all take no
// more than half of that part: the rest is left to anchors, and to this node's clients.
const (
	patientShare = 4
	patientOfOne = 16
)

// errManyPatient refuses a bundle that may wait for weeks.
var errManyPatient = fmt.Errorf("%w; of those that may wait for weeks for approval", ErrBusy)

// patientAuthor is the author that a patient bundle acts for, zero for other bundles.
func patientAuthor(b *scope.CheckedBundle) aweigh.Hash {
	if !b.Patient() {
		return aweigh.Hash{}
	}
	return b.Mutations()[0].Principal()
}

// patientRoom reports why the pool has no room for a bundle that may wait for weeks.
func (m *Machine) patientRoom(b *scope.CheckedBundle, from Peer) error {
	p, author := &m.pool, patientAuthor(b)
	if author.IsZero() || p.entries[b.ID()] != nil {
		return nil
	}
	all := p.limit / patientShare
	if from != "" && !m.isAnchorNode(author) {
		all /= 2
	}
	if n := len(b.Raw()); p.patient[author]+n > p.limit/patientOfOne || p.patientAll+n > all {
		return errManyPatient
	}
	return nil
}

// countPatient adds the bytes of an entry, or takes them away, by is 1 or -1.
func (p *pool) countPatient(e *pooled, by int) {
	if e.patience.IsZero() {
		return
	}
	n := by * len(e.bundle.Raw())
	p.patientAll += n
	if p.patient == nil {
		p.patient = make(map[aweigh.Hash]int)
	}
	if p.patient[e.patience] += n; p.patient[e.patience] == 0 {
		delete(p.patient, e.patience)
	}
}
