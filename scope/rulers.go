package scope

import "github.com/aweigh/aweigh"

// AuthorNames are the names of authors under the terms: of an anchor's key and that of its node the anchor's, and of
// each key that the policy lists that of its entry. Other authors have none.
func (t *Terms) AuthorNames() map[aweigh.Hash]string {
	names := make(map[aweigh.Hash]string)
	for i := range t.Policy.Authors {
		if a := &t.Policy.Authors[i]; a.Who == OneKey {
			names[a.Key.ID()] = a.Name
		}
	}
	for id, seat := range seated(t.Anchors) { // order-free: it fills a map
		names[id] = t.Anchors[seat].Name
	}
	return names
}

// Ruled is how entries of the lineage name the terms that they were decided under.
type Ruled struct{ Policy, Roster aweigh.Hash }

// Ruled names the terms.
func (t *Terms) Ruled() (Ruled, error) {
	r, err := t.roster()
	if err != nil {
		return Ruled{}, err
	}
	return Ruled{t.Policy.Hash(), r.Hash()}, nil
}

// Rulers verifies the way from the network's identity to the final block, as Verify does, and returns all epochs of
// the scope up to that of the block. Errors wrap ErrProof.
func (a *Ancestry) Rulers(network aweigh.NetworkID) (epochs []*Epoch, err error) {
	if _, err := a.Verify(network); err != nil {
		return nil, err
	}
	e, err := a.Genesis.Epoch()
	for i := 0; err == nil; i++ {
		if epochs = append(epochs, e); i == len(a.Handovers) {
			return epochs, nil
		}
		e, err = e.Follow(a.Handovers[i])
	}
	return nil, err
}
