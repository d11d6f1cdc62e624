package scope

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
)

// IslandSource is what a member of an island has of it.
type IslandSource struct {
	State     *State     // of the island, at or after Final
	Genesis   Genesis    // of the island
	Terms     Terms      // see Rejoining
	Handovers []Handover // of the island, those after Final included
	Final     Finality
	Block     func(aweigh.Height) (*Block, error) // a final block of the island
}

// Announcement puts the island on record.
func (i *IslandSource) Announcement() Rejoining {
	hands := i.Handovers[:min(len(i.Handovers), int(i.Final.Header.Epoch))] // Final may be the block that ends an epoch
	return Rejoining{Genesis: i.Genesis.Encode(), Terms: i.Terms, Handovers: hands, Final: i.Final}
}

// Next is the changes of an island from an entry of its lineage on: those of as many whole mutations as fit into so
// many bytes, but of one at least, and the entry after them. It has no changes if none is left. An error wraps
// ErrCorrupt, or is the store's.
func (i *IslandSource) Next(from int64, most int) (r Rejoining, err error) {
	r = i.Announcement()
	log, size := i.State.Lineage(), len(canon.Encode(r))
	bundles := make(map[aweigh.Hash]bool)
	for at := from; at < i.Final.Header.LineageSize; {
		part, with, next, err := i.mutation(at, bundles)
		if err != nil {
			return r, err
		}
		var after []Provisional
		if next < i.Final.Header.LineageSize {
			e, err := i.entry(next)
			if err != nil {
				return r, err
			}
			after = []Provisional{{Entry: e}}
		}
		n, more := 0, 0
		for j := range part {
			if part[j].Place, err = log.Prove(at+int64(j), i.Final.Header.LineageSize); err != nil {
				return r, err
			}
			n += len(canon.Encode(part[j]))
		}
		for j := range after {
			if after[j].Place, err = log.Prove(next, i.Final.Header.LineageSize); err != nil {
				return r, err
			}
			more = len(canon.Encode(after[j]))
		}
		if with != nil {
			n += len(with.Raw())
		}
		if len(r.Changes) > 0 && (size+n+more > most || with != nil && len(r.Bundles) == maxRejoinBundles) {
			break
		}
		if size += n; with != nil {
			bundles[with.ID()] = true
			r.Bundles = append(r.Bundles, with.Raw())
		}
		r.Changes, r.After, at = append(r.Changes, part...), after, next
	}
	return r, nil
}

// entry is one of the island's lineage.
func (i *IslandSource) entry(at int64) (e lineage.Entry, err error) {
	e, ok, err := i.State.Lineage().Entry(at)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no entry %d in the lineage", ErrCorrupt, at)
	}
	return e, err
}

// mutation is the entries of one mutation, from the one at an index on, and the bundle that holds it unless it is among
// those; next is the index after them.
func (i *IslandSource) mutation(at int64, have map[aweigh.Hash]bool) (part []Provisional, with *CheckedBundle, next int64, err error) {
	for next = at; next < i.Final.Header.LineageSize; next++ {
		e, err := i.entry(next)
		if err != nil {
			return nil, nil, 0, err
		}
		if len(part) > 0 && (e.Mutation != part[0].Entry.Mutation || e.Height != part[0].Entry.Height) {
			break
		}
		p := Provisional{Entry: e}
		if e.Class.Shows() && e.Class != lineage.AliasFollow {
			if p.Value, err = i.State.shown(e.Key, e.Revision, e.Posterior); err != nil {
				return nil, nil, 0, err
			}
		}
		part = append(part, p)
	}
	b, err := i.Block(part[0].Entry.Height)
	if err != nil {
		return nil, nil, 0, err
	}
	n := slices.IndexFunc(b.Bundles, func(c *CheckedBundle) bool {
		return slices.ContainsFunc(c.mutations, func(m CheckedMutation) bool { return m.ID == part[0].Entry.Mutation })
	})
	if n < 0 {
		return nil, nil, 0, fmt.Errorf("%w: block %d does not hold mutation %s", ErrCorrupt, b.Header.Height, part[0].Entry.Mutation.Short())
	}
	if with = b.Bundles[n]; have[with.id] {
		with = nil
	}
	return part, with, next, nil
}

// shown is the version of a key that a revision wrote and that has a digest.
func (s *State) shown(key []byte, rev int64, digest aweigh.Hash) (v KeyValue, err error) {
	from := last(rev).appendInverted(s.space.appendKey(nil, key, escapeEnd))
	to := append(first(rev).appendInverted(s.space.appendKey(nil, key, escapeEnd)), 0)
	var bad error
	found := false
	err = s.r.Scan(from, to, false, func(k, record []byte) bool {
		if v, bad = s.decode(k, record); bad != nil {
			return false
		}
		v.Key = bytes.Clone(key)
		v.Value = bytes.Clone(v.Value)
		found = v.Digest() == digest
		return !found
	})
	if bad != nil {
		err = bad
	}
	if err == nil && !found {
		err = fmt.Errorf("%w: no version of %q at revision %d is the one that the lineage names", ErrCorrupt, key, rev)
	}
	return v, err
}

// ChangedBy is what a mutation of an island put and deleted, whose entries begin at an index, and an entry of it, which
// says who asked for it.
func (s *State) ChangedBy(first int64) (ops []Op, of lineage.Entry, err error) {
	for at := first; at < s.head.LineageSize; at++ {
		e, ok, err := s.Lineage().Entry(at)
		if err == nil && !ok {
			err = fmt.Errorf("%w: no entry %d in the lineage", ErrCorrupt, at)
		}
		if err != nil {
			return nil, of, err
		}
		if at == first {
			of = e
		}
		if e.Mutation != of.Mutation {
			break
		}
		switch {
		case e.Class.Clears():
			ops = append(ops, Op{Kind: OpDelete, Key: e.Key})
		case e.Class.Shows() && e.Class != lineage.AliasFollow:
			v, err := s.shown(e.Key, e.Revision, e.Posterior)
			if err != nil {
				return nil, of, err
			}
			ops = append(ops, Op{Kind: OpPut, Key: e.Key, Value: v.Value})
		}
	}
	return ops, of, nil
}
