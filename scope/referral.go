package scope

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
)

// Referral is a scope's answer about keys that it has delegated: the scope that decides about them. It is a proof for
// a verifier that knows the scope's genesis and the epoch of Head; the verifier need not trust the node that returns
// it.
type Referral struct {
	_     struct{} `cbor:",toarray"`
	Child Genesis
	Head  Finality // of a block of the scope after the delegation
	Gave  Listed   // the entry of the delegation, in the lineage that Head names
}

// NewReferral refers from a scope, whose state is s, to the one that a key is delegated
// to. Errors wrap ErrKeyNotFound if it is not delegated. The head is that of a later block
// than the delegation's.
func NewReferral(head Finality, s *State, key []byte) (r Referral, err error) {
	_, child, ok, err := s.Delegated(key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q is not delegated", ErrKeyNotFound, key)
	}
	if err != nil {
		return r, err
	}
	a := Ancestry{Head: head}
	gave, err := a.list(s.Lineage(), child.Descent.Entry)
	return Referral{Child: child, Head: head, Gave: gave}, err
}

// Check verifies the referral in the epoch of its head, and gives the delegation. Errors
// wrap ErrProof.
func (r *Referral) Check(parent *Genesis, e *Epoch) (d Delegation, err error) {
	_, err = r.Child.Check()
	if err == nil && r.Child.Descent == nil {
		err = errors.New("a referral to a root scope")
	}
	if err == nil {
		err = r.Head.CheckIn(e)
	}
	if err == nil {
		err = (&Ancestry{Head: r.Head}).lists(&r.Gave)
	}
	if err == nil {
		err = r.Child.given(parent, &r.Gave)
	}
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return r.Child.delegation(), nil
}

// delegation is the one that founded a scope below the root's.
func (g *Genesis) delegation() Delegation {
	d := g.Descent
	must.Hold(d != nil, "the delegation of a root scope")
	return Delegation{Prefix: d.Prefix, Child: g.Hash(), Revision: d.Revision, Height: d.Height}
}

// given reports why an entry of a parent's lineage did not found this scope.
func (g *Genesis) given(parent *Genesis, gave *Listed) error {
	d, e := g.Descent, &gave.Entry
	switch {
	case !bytes.HasPrefix(d.Prefix, parent.Prefix()) || len(d.Prefix) == len(parent.Prefix()):
		return fmt.Errorf("scope %q has no %q to delegate", parent.Prefix(), d.Prefix)
	case d.Network != parent.Network() || d.Parent != parent.Hash() || d.Parent != e.Scope:
		return errors.New("a scope of another parent, or network")
	case e.Class != lineage.Delegate || e.Posterior != g.Hash() || string(e.Key) != string(d.Prefix) || gave.Place.Index != d.Entry || e.Height != d.Height:
		return fmt.Errorf("the parent did not delegate %q to this scope", d.Prefix)
	}
	return nil
}
