package scope

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh/lineage"
)

// Event is one change of one key.
type Event struct {
	Class lineage.Class // Insert, Update or Delete
	Kv    KeyValue      // the new version; of a deletion only key, revision, UID and entry
	Prev  *KeyValue     // what an update or a deletion replaced, as of the revision before; nil if that is compacted
}

// Events reads the changes of the keys [key, end), in the sense of Op, in the
// revisions from <= r <= to, in their order. It looks at about so many changes in
// all, of any keys, and never splits a revision; next is the first revision that
// it did not reach. That a key went to another scope is no change of it. The error is
// ErrCompacted if from cannot be read any more.
func (s *State) Events(from, to int64, key, end []byte, most int) (events []Event, next int64, err error) {
	if from < s.head.Compacted {
		return nil, from, ErrCompacted
	}
	to = min(to, s.head.Revision)
	own, err := s.region()
	if err != nil {
		return nil, from, err
	}
	var changes []change
	looked, next := 0, max(from, to+1)
	err = s.changes(first(from), func(c change, _ bool) bool {
		if c.at.main > to {
			return false
		}
		if looked >= most && c.at.sub == 0 {
			next = c.at.main
			return false
		}
		looked++
		if Within(c.key, key, end) && !own.went(c) {
			changes = append(changes, change{c.at, bytes.Clone(c.key)})
		}
		return true
	})
	if err != nil {
		return nil, from, err
	}
	events = make([]Event, len(changes))
	for i, c := range changes {
		if events[i], err = s.event(c.key, c.at); err != nil {
			return nil, from, err
		}
	}
	return events, next, nil
}

func (s *State) event(key []byte, at revision) (e Event, err error) {
	v, ok, err := s.exactly(key, at)
	if err != nil {
		return e, err
	}
	if !ok {
		return e, fmt.Errorf("%w: no version of %q at revision %d", ErrCorrupt, key, at.main)
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
	if at.main > s.head.Compacted {
		prev, ok, err := s.before(key, at.main-1)
		if err != nil {
			return e, err
		}
		if ok {
			e.Prev = &prev
		}
	}
	return e, nil
}
