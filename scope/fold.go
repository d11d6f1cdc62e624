package scope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
)

// A scope to which a prefix was delegated can be folded back into the scope above (P65). That scope orders it as it
// orders another government (Revocation). The scope below obeys, and ends with an epoch that has no blocks, of which
// the terms name all that it held (Home). Nodes of the scope above bring that, part by part (Bringing). With the end
// of an epoch, the keys are the scope's own again.

// Folds reports whether the order is that the scope goes back to the one above, rather than to others.
func (r *Revocation) Folds() bool { return r.Child.folds() }

// folds reports whether no anchors are to govern the scope: it goes back to the one above.
func (c *Child) folds() bool { return len(c.Anchors) == 0 }

// Folding is the decision to take back what was delegated.
func Folding(prefix []byte) Decision {
	return Decision{Kind: Fold, Child: &Child{Prefix: prefix}}
}

// checkFold reports whether what a scope is folded by is a prefix and no more.
func (c *Child) checkFold() error {
	if len(c.Prefix) == 0 || len(c.Prefix) > maxPrefix {
		return fmt.Errorf("a prefix of %d bytes, between 1 and %d are taken", len(c.Prefix), maxPrefix)
	}
	if !bytes.Equal(canon.Encode(*c), canon.Encode(Child{Prefix: c.Prefix})) {
		return errors.New("a scope is taken back by its prefix alone")
	}
	return nil
}

// FoldRecord tells of a prefix that a scope had delegated, and that came home.
type FoldRecord struct {
	Prefix []byte
	Child  aweigh.ScopeID
	Went   int64         // revision at which the keys went
	Home   int64         // revision at which they came back
	Since  aweigh.Height // of the block that delegated the prefix
	Height aweigh.Height // of the block with which they came back
}

// folded is the encoding of a FoldRecord, under the revision of Home. The genesis leads to the history that the scope
// below has.
type folded struct {
	_             struct{} `cbor:",toarray"`
	Prefix        []byte
	Genesis       []byte
	Went          int64
	Since, Height aweigh.Height
}

// foldedAt is the store's key of what came home at a revision.
func (s *space) foldedAt(home int64) []byte {
	return s.at(atFolded, binary.BigEndian.AppendUint64(nil, uint64(home))...)
}

// Folds are the prefixes that came home, in the order in which they did, of which some revision that can be read was
// the other scope's.
func (s *State) Folds() ([]FoldRecord, error) {
	if s.head.Folded == 0 {
		return nil, nil
	}
	var all []FoldRecord
	err := s.eachFold(s.head.Compacted+1, func(f FoldRecord, _ []byte) bool {
		all = append(all, f)
		return true
	})
	return all, err
}

// EachFoldSince visits what came home at a revision or later, in the order in which it did, with the genesis of the
// scope that had it.
func (s *State) EachFoldSince(revision int64, visit func(FoldRecord, *Genesis)) error {
	var bad error
	err := s.eachFold(max(revision, 0), func(f FoldRecord, genesis []byte) bool {
		var g Genesis
		if g, bad = DecodeGenesis(genesis); bad == nil {
			visit(f, &g)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// eachFold visits what came home at a revision or later, with the encoded genesis of the scope that had it, until visit
// returns false.
func (s *State) eachFold(from int64, visit func(f FoldRecord, genesis []byte) bool) error {
	var bad error
	prefix := s.space.at(atFolded)
	err := s.r.Scan(s.space.foldedAt(from), kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var rec folded
		if bad = canon.Decode(raw, &rec); bad != nil || len(k) != len(prefix)+8 {
			bad = fmt.Errorf("%w: a fold: %w", ErrCorrupt, bad)
			return false
		}
		return visit(FoldRecord{
			Prefix: rec.Prefix, Child: GenesisHash(rec.Genesis), Went: rec.Went, Home: int64(binary.BigEndian.Uint64(k[len(prefix):])),
			Since: rec.Since, Height: rec.Height,
		}, rec.Genesis)
	})
	return errors.Join(err, bad)
}

// Folded are the geneses of all scopes that came home, in the order in which they did.
func (s *State) Folded() (all []Genesis, err error) {
	if s.head.Folded == 0 {
		return nil, nil
	}
	var bad error
	err = s.eachFold(0, func(_ FoldRecord, genesis []byte) bool {
		var g Genesis
		g, bad = DecodeGenesis(genesis)
		all = append(all, g)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// wasElsewhere is ErrCompacted if another scope decided about some of [key, end), in the sense of Op, as of a
// revision: what they held then is not in this one's history.
func (r *region) wasElsewhere(key, end []byte, rev int64) error {
	for i := range r.folds {
		f := &r.folds[i]
		if f.Went <= rev && rev < f.Home && Overlap(key, end, f.Prefix, PrefixEnd(f.Prefix)) {
			return ErrCompacted
		}
	}
	return nil
}

// home is the revision from which on the history of [key, end), in the sense of Op, is whole; 0: from the first one on.
func (r *region) home(key, end []byte) (rev int64) {
	for i := range r.folds {
		if f := &r.folds[i]; Overlap(key, end, f.Prefix, PrefixEnd(f.Prefix)) {
			rev = max(rev, f.Home)
		}
	}
	return rev
}

// CompactedFor is the least revision from which on the changes of [key, end), in the sense of Op, can be read; 0: all
// can.
func (s *State) CompactedFor(key, end []byte) (int64, error) {
	if s.head.Folded == 0 {
		return s.head.Compacted, nil
	}
	own, err := s.region()
	if err != nil {
		return 0, err
	}
	return max(s.head.Compacted, own.home(key, end)), nil
}
