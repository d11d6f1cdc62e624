package scope

import "fmt"

// Doomed reports why an open motion would be void if the next block carried it
// (P32): its subject has changed since it opened. It is empty for one that would
// apply. Changed content dooms a motion for good; conditions and policies may
// change back.
func (s *State) Doomed(mo *Motion) (why string, err error) {
	m := new(CheckedMutation)
	if err := m.open(mo.Mutation, MostLimits()); err != nil {
		return "", fmt.Errorf("%w: the mutation of motion %s: %w", ErrCorrupt, mo.ID().Short(), err)
	}
	if s, err = s.Begin(); err != nil {
		return "", err
	}
	h := Header{Height: s.head.Height + 1, Time: s.head.Time, Policy: s.epoch.Domain().Policy}
	x := newExecution(s, &Block{Header: h})
	x.begin(m)
	var failure error
	if m.Class != Govern {
		failure = x.begun(mo, m)
	}
	if failure == nil {
		_, failure, err = x.stands(mo, m)
	}
	if err != nil || failure == nil {
		return "", err
	}
	return reason(failure), nil
}
