package scope

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh/lineage"
)

// Event is one change of one key.
type Event struct {
	Class lineage.Class // Insert, Update or Delete
	Kv    KeyValue      // the new version; of a deletion only key, revision, UID and entry
	Prev  *KeyValue     // what an update or a deletion replaced, as of the revision before; nil if that is compacted
}

// Place is the position of one change of a key in the order of changes.
type Place struct {
	Key       []byte
	Revision  int64
	Sub       uint32 // within the revision
	Remainder bool   // it stands for all changes of the revision from Sub on, and Key is empty
}

// placesBytes bounds the places of one revision that are given at a time, in approximate bytes of memory.
const placesBytes = 64 << 10

// Places finds the changes of the keys [key, end), in the sense of Op, in the
// revisions from <= r <= to, in their order, without their content. It looks at about most
// changes in all, of any keys, and never splits a revision; next is the first revision that
// it did not reach. One place stands for the rest of a revision with more than placesBytes
// of them. The handover of a key to another scope is not a change of it. The error is
// ErrCompacted if from cannot be read any more.
func (s *State) Places(from, to int64, key, end []byte, most int) (places []Place, next int64, err error) {
	return s.places(first(from), to, key, end, most)
}

// Remainder finds the changes that a place stands for, of the keys [key, end): none, or as many as Places gives of a
// revision, and a place for the rest of them. The error is ErrCompacted if the revision cannot be read any more.
func (s *State) Remainder(p Place, key, end []byte) (places []Place, err error) {
	places, _, err = s.places(revision{p.Revision, p.Sub}, p.Revision, key, end, math.MaxInt)
	return places, err
}

func (s *State) places(from revision, to int64, key, end []byte, most int) (places []Place, next int64, err error) {
	if from.main < s.head.Compacted {
		return nil, from.main, ErrCompacted
	}
	to = min(to, s.head.Revision)
	own, err := s.region()
	if err == nil && from.main < own.home(key, end) {
		err = ErrCompacted
	}
	if err != nil {
		return nil, from.main, err
	}
	looked, next := 0, max(from.main, to+1)
	at, size := from.main, 0 // of the places in a revision
	err = s.changes(from, func(c change, _ bool) bool {
		if c.at.main > to {
			return false
		}
		if looked >= most && c.at.sub == 0 {
			next = c.at.main
			return false
		}
		looked++
		if !Within(c.key, key, end) || own.went(c) {
			return true
		}
		if c.at.main > at {
			at, size = c.at.main, 0
		}
		if size >= s.bounds.PlacesBytes {
			places = append(places, Place{Revision: at, Sub: c.at.sub, Remainder: true})
			next = at + 1
			return false
		}
		size += 64 + len(c.key)
		places = append(places, Place{Key: bytes.Clone(c.key), Revision: at, Sub: c.at.sub})
		return true
	})
	if err != nil {
		return nil, from.main, err
	}
	return places, next, nil
}

// Changed are the keys [key, end), in the sense of Op, that changed in the revisions from <= r <= to, in order; ok is
// false if there are more than so many changes in these revisions, of any keys, or later revisions than the newest.
// That a key went to another scope is a change of it. The error is ErrCompacted if from cannot be read any more.
func (s *State) Changed(from, to int64, key, end []byte, most int) (keys [][]byte, ok bool, err error) {
	if from < s.head.Compacted {
		return nil, false, ErrCompacted
	}
	looked := 0
	err = s.changes(first(from), func(c change, _ bool) bool {
		if c.at.main > to || looked > most {
			return false
		}
		if looked++; Within(c.key, key, end) {
			keys = append(keys, bytes.Clone(c.key))
		}
		return true
	})
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), looked <= most && to <= s.head.Revision, err
}

// Events is Places with the content of all of them, whatever it takes.
func (s *State) Events(from, to int64, key, end []byte, most int) (events []Event, next int64, err error) {
	places, next, err := s.Places(from, to, key, end, most)
	if err != nil {
		return nil, from, err
	}
	events = make([]Event, 0, len(places))
	for i := 0; i < len(places); i++ {
		if p := places[i]; p.Remainder {
			rest, err := s.Remainder(p, key, end)
			if err != nil {
				return nil, from, err
			}
			places, i = slices.Replace(places, i, i+1, rest...), i-1
			continue
		}
		e, err := s.Event(places[i], true)
		if err != nil {
			return nil, from, err
		}
		events = append(events, e)
	}
	return events, next, nil
}

// Event reads the content of the change at a place, with what it replaced if prev is set. The
// error is ErrCompacted if it was compacted since the place was found.
func (s *State) Event(p Place, prev bool) (e Event, err error) {
	v, ok, err := s.exactly(p.Key, revision{p.Revision, p.Sub})
	if err != nil {
		return e, err
	}
	if !ok {
		if p.Revision <= s.head.Compacted {
			return e, ErrCompacted
		}
		return e, fmt.Errorf("%w: no version of %q at revision %d", ErrCorrupt, p.Key, p.Revision)
	}
	e.Kv = v
	switch {
	case v.Version == 0:
		e.Class = lineage.Delete
	case v.CreateRevision == v.ModRevision:
		e.Class = lineage.Insert
		return e, nil
	default:
		e.Class = lineage.Update
	}
	if prev && p.Revision > s.head.Compacted {
		prev, ok, err := s.before(p.Key, p.Revision-1)
		if err != nil {
			return e, err
		}
		if ok {
			e.Prev = &prev
		}
	}
	return e, nil
}
