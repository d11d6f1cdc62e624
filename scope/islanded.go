package scope

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
)

// Islanded is the record of an island of the scope.
type Islanded struct {
	_        struct{} `cbor:",toarray"`
	Prefix   []byte
	Members  []aweigh.AnchorID
	Weight   uint64         // of the members, in the epoch of the scope in which they founded it
	Total    uint64         // of all anchors in that epoch
	Height   aweigh.Height  // of the scope's block to whose state it was added
	Revision int64          // of the scope then
	Due      aweigh.Instant // when its changes are taken at the earliest
	Size     int64          // entries of its lineage that are known to be final
	Next     int64          // the first of them that has not been taken
	Taken    aweigh.Hash    // root of its lineage up to Next; zero until something was taken
	Stands   int64          // mutations of which all changes were taken
	Aside    int64          // mutations that were set aside
	By       aweigh.Hash    // the author that put it on record
}

// done reports whether all that is known of the island was taken or set aside.
func (i *Islanded) done() bool { return i.Next >= i.Size }

// before reports whether an island's changes are taken before those of another: the order of heavier islands, of
// islands with a newer base, and of identities.
func (i *Islanded) before(id aweigh.ScopeID, o *Islanded, other aweigh.ScopeID) bool {
	return cmp.Or(cmp.Compare(o.Weight, i.Weight), cmp.Compare(o.Height, i.Height), bytes.Compare(id[:], other[:])) < 0
}

// SetAside is the record of a key whose change in an island did not stand. Later changes of it in the same island are
// set aside as well.
type SetAside struct {
	_        struct{}    `cbor:",toarray"`
	Entry    int64       // of the island's lineage: the first one of the mutation
	Mutation aweigh.Hash // of the island
	Author   aweigh.Hash // of that mutation
	Reason   string
	Time     aweigh.Instant // of the block that set it aside
}

// Open reports whether the change may be put to the vote: it did not stand for another reason than that its author has
// no right to it.
func (a *SetAside) Open() bool { return !isDenial(a.Reason) }

func (s *space) island(id aweigh.ScopeID) []byte { return s.at(atIsland, id[:]...) }

func (s *space) aside(island aweigh.ScopeID, key []byte) []byte {
	return append(s.at(atAside, island[:]...), key...)
}

// taken is the key that tells that a mutation of an island was taken or set aside.
func (s *space) taken(island aweigh.ScopeID, mutation aweigh.Hash) []byte {
	return append(s.at(atTaken, island[:]...), mutation[:]...)
}

// IslandRecord is an island of the scope that is on record.
type IslandRecord struct {
	ID aweigh.ScopeID
	Islanded
}

// Islands are those on record, by identity.
func (s *State) Islands() ([]IslandRecord, error) { return s.view.islands() }

func (v *view) islands() (all []IslandRecord, err error) {
	prefix := v.space.at(atIsland)
	var bad error
	err = v.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var is IslandRecord
		copy(is.ID[:], k[len(prefix):])
		if bad = canon.Decode(raw, &is.Islanded); bad == nil {
			all = append(all, is)
		}
		return bad == nil
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: an island: %w", ErrCorrupt, bad)
	}
	return all, err
}

// AsideOf visits the keys whose changes in an island did not stand, in order, until visit returns false.
func (s *State) AsideOf(island aweigh.ScopeID, visit func(key []byte, is SetAside) bool) error {
	prefix := s.space.aside(island, nil)
	var bad error
	err := s.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var is SetAside
		if bad = canon.Decode(raw, &is); bad != nil {
			return false
		}
		return visit(bytes.Clone(k[len(prefix):]), is)
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: what was set aside: %w", ErrCorrupt, bad)
	}
	return err
}
