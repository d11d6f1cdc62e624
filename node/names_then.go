package node

import (
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// namesThen finds the names that authors had when something happened: under the policy and the roster of then. It reads
// each epoch once.
type namesThen struct {
	*Replica
	ruled  map[scope.Ruled]map[aweigh.Hash]string
	epochs map[aweigh.Epoch]map[aweigh.Hash]string
}

func (n *Replica) namesThen() *namesThen {
	return &namesThen{n, make(map[scope.Ruled]map[aweigh.Hash]string), make(map[aweigh.Epoch]map[aweigh.Hash]string)}
}

// of sets the names of the author of an entry and of its principal, under the policy and the roster that the entry
// names. They stay empty if this node lacks these.
func (n *namesThen) of(v *View, e *LineageEntry) error {
	under := scope.Ruled{Policy: e.Policy, Roster: e.Roster}
	names, known := n.ruled[under]
	if !known {
		t, err := n.terms(v, e.Height, func(t *scope.Terms, _ aweigh.Epoch) (bool, error) {
			r, err := t.Ruled()
			return r == under, err
		})
		if err != nil {
			return err
		}
		names = t.AuthorNames()
		n.ruled[under] = names
	}
	e.Name, e.Acts = names[e.Author], ""
	if len(e.Principal) > 0 {
		e.Acts = names[e.Entry.Acts()]
	}
	return nil
}

// in are the names in an epoch, of which at is a height; none if this node lacks its terms.
func (n *namesThen) in(v *View, number aweigh.Epoch, at aweigh.Height) (map[aweigh.Hash]string, error) {
	names, known := n.epochs[number]
	if known {
		return names, nil
	}
	t, err := n.terms(v, at, func(_ *scope.Terms, e aweigh.Epoch) (bool, error) { return e == number, nil })
	if err != nil {
		return nil, err
	}
	names = t.AuthorNames()
	n.epochs[number] = names
	return names, nil
}

// terms are those of the epoch of a block, if they fit: by the newest handover below the block, or by the state. A node
// that came by a snapshot may lack handovers; then the terms are empty.
func (n *namesThen) terms(v *View, at aweigh.Height, fits func(*scope.Terms, aweigh.Epoch) (bool, error)) (scope.Terms, error) {
	then, number, thenErr := n.History().TermsAt(*n.genesis, at)
	if thenErr == nil {
		if ok, err := fits(&then, number); ok || err != nil {
			return then, err
		}
	}
	e, err := v.State.Epoch()
	if err = errors.Join(thenErr, err); err != nil {
		return scope.Terms{}, err
	}
	now := e.Terms()
	if ok, err := fits(&now, e.Number); ok || err != nil {
		return now, err
	}
	return scope.Terms{}, nil
}
