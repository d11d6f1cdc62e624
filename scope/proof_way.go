package scope

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
)

// Step is one scope on the way from a network's root scope to another: what leads from
// its genesis to a final block, and in the lineage before that, that it delegated the
// prefix of the next.
type Step struct {
	_         struct{} `cbor:",toarray"`
	Genesis   Genesis
	Handovers []Handover // from epoch 0 to that of Head
	Head      Finality
	Gave      Listed // the entry of the delegation
}

// NewStep goes on from an ancestry of a scope's parent, whose state is s, with the
// delegation to the scope.
func NewStep(a Ancestry, s *State, d *Descent) ([]Step, error) {
	gave, err := a.list(s.Lineage(), d.Entry)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(a.Above), Step{Genesis: a.Genesis, Handovers: a.Handovers, Head: a.Head, Gave: gave}), nil
}

// Visit is one scope on the way of a proof, with the anchors that attest it.
type Visit struct {
	Prefix    []byte
	Scope     aweigh.ScopeID
	Roster    aweigh.Hash // of Head's epoch
	Handovers int         // from the scope's genesis to there
	Head      Attestation // of the block by which it delegated to the next scope, or that covers the change
}

// Visits verifies the proof, and gives the scopes that it leads through, the root's
// first. Errors wrap ErrProof.
func (p *KeyProof) Visits(network aweigh.NetworkID) (visits []Visit, err error) {
	if _, err := p.Verify(network); err != nil {
		return nil, err
	}
	a := &p.Ancestry
	for i := range a.Above {
		s := &a.Above[i]
		visits = append(visits, (&Ancestry{Genesis: s.Genesis, Handovers: s.Handovers, Head: s.Head}).visit())
	}
	return append(visits, a.visit()), nil
}

// visit is of an ancestry that was verified.
func (a *Ancestry) visit() Visit {
	_, last, err := a.epochs(0)
	must.Hold(err == nil, "an ancestry that was verified does not hold: %v", err)
	return Visit{
		Prefix: a.Genesis.Prefix(), Scope: a.Genesis.Hash(), Roster: last.Roster.Hash(),
		Handovers: len(a.Handovers), Head: a.Head.attestation(last),
	}
}

// maxWay bounds the scopes that a proof leads through.
const maxWay = 64

// descends verifies that a genesis is that of a network's root scope or, by the steps
// from there, of one that descends from it.
func (g *Genesis) descends(network aweigh.NetworkID, above []Step) error {
	if len(above) > maxWay {
		return fmt.Errorf("a way of %d scopes; %d are followed", len(above), maxWay)
	}
	if _, err := g.form(); err != nil {
		return err
	}
	if g.Descent == nil {
		if len(above) > 0 {
			return errors.New("a way to the root scope, which needs none")
		}
		if g.Hash() != network {
			return errors.New("it starts from the genesis of another network")
		}
		return nil
	}
	if len(above) == 0 {
		return fmt.Errorf("it does not show how %q was delegated", g.Descent.Prefix)
	}
	parent := above[len(above)-1]
	if err := parent.Genesis.descends(network, above[:len(above)-1]); err != nil {
		return err
	}
	a := Ancestry{Genesis: parent.Genesis, Handovers: parent.Handovers, Head: parent.Head}
	if _, _, err := a.epochs(0); err != nil {
		return err
	}
	if err := a.lists(&parent.Gave); err != nil {
		return err
	}
	if g.Descent.Network != network {
		return errors.New("a scope of another network")
	}
	return g.given(&parent.Genesis, &parent.Gave)
}

// handed reports whether an entry records content that a scope took over from its parent.
func handed(e *lineage.Entry) bool {
	return e.Height == 0 && (e.Class == lineage.TakenOver || e.Class == lineage.AliasFollow)
}
