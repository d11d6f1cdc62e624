package scope

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// founded is what an import of a scope's first state compares with: no block follows
// it yet, so the genesis takes its place.
type founded struct {
	genesis Genesis
	state   *State // without what was handed over
	taken   takeover
	due     aweigh.Instant // when the first lease ends
}

// NewFirstImport expects the state that a scope was founded with, whose genesis must
// be known to be the one that its parent delegated to.
func NewFirstImport(g Genesis) (*Import, error) {
	if _, err := g.Check(); err != nil {
		return nil, err
	}
	if g.Descent == nil {
		return nil, fmt.Errorf("%w: the root scope was founded with nothing", ErrInvalid)
	}
	s, _, err := begin(&g)
	if err != nil {
		return nil, err
	}
	want := s.head
	want.LineageSize = g.Descent.Keys
	return &Import{
		want: want, state: State{view: view{space: s.space, bounds: &defaults}}, log: lineage.Open(nil, s.space.at(atLineage), 0),
		first: &founded{genesis: g, state: s},
	}, nil
}

// Scope is the identity of the scope whose state is expected.
func (i *Import) Scope() aweigh.ScopeID { return i.want.Scope }

// head is what the head of a claimed state must be. What depends on the things that
// were handed over is checked when they are all there.
func (f *founded) head(claimed Head) Head {
	h := f.state.head
	h.LineageSize, h.LineageRoot, h.Digest = f.genesis.Descent.Keys, claimed.LineageRoot, claimed.Digest
	h.Leases, h.LeaseDue, h.Bytes, h.Current = claimed.Leases, claimed.LeaseDue, claimed.Bytes, claimed.Current
	return h
}

// enter takes the next entry that came.
func (f *founded) enter(e *lineage.Entry) error {
	if e.Scope != f.state.head.Scope || e.Policy != f.genesis.Policy.Hash() || e.Roster != f.state.epoch.Roster.Hash() {
		return fmt.Errorf("%w: an entry of another scope, or under another policy or roster", ErrInvalid)
	}
	f.taken.enter(*e)
	return nil
}

// check reports whether the records are the ones that were handed over.
func (f *founded) check(i *Import) error {
	f.taken.sum = i.sum
	h := &i.state.head
	if f.taken.digest() != f.genesis.Descent.Handed || i.leases != h.Leases || f.due != h.LeaseDue {
		return fmt.Errorf("%w: not what the scope was founded with", ErrInvalid)
	}
	return nil
}
