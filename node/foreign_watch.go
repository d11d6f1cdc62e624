package node

import (
	"fmt"
	"math"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// foreignChanges bounds the changes that one question about them looks at, of whatever keys.
const foreignChanges = 1000

// foreignWatch asks for the changes of a range of keys, from a revision on.
type foreignWatch struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
	From     int64
}

// aboutNow asks for no change, and so only how far a scope is.
func aboutNow(prefix []byte) foreignWatch {
	return foreignWatch{Key: prefix, From: math.MaxInt64}
}

// foreignEvents are changes, in their order, also of keys that went to other scopes later.
type foreignEvents struct {
	_         struct{} `cbor:",toarray"`
	Compacted int64    // revisions below cannot be read, if that is of interest; nothing else is told of those
	Given     int64    // prefixes in the range that the scope has delegated
	Next      int64    // where to go on; 0: up to the revision of the answer these are all
	All       []foreignEvent
}

// foreignEvent is a scope.Event.
type foreignEvent struct {
	_     struct{} `cbor:",toarray"`
	Class lineage.Class
	Kv    scope.KeyValue
	Prev  []scope.KeyValue // one or none; none if what a transaction replaced is more than an answer holds
}

func (e *foreignEvent) event() scope.Event {
	out := scope.Event{Class: e.Class, Kv: e.Kv}
	if len(e.Prev) > 0 {
		out.Prev = &e.Prev[0]
	}
	return out
}

// tellEvents is what an honest anchor says of changes up to a revision, 0 for the newest.
func tellEvents(s *scope.State, x *foreignWatch, at int64) ([]byte, error) {
	given, err := s.Touching(x.Key, x.End)
	if err != nil {
		return nil, err
	}
	h := s.Head()
	to := h.Revision
	if at > 0 {
		to = min(to, at)
	}
	out := foreignEvents{Given: int64(len(given))}
	if x.From < h.Compacted || x.From == math.MaxInt64 { // else it is nothing to who asks, and anchors may differ in it
		out.Compacted = h.Compacted
	}
	if x.From < h.Compacted || x.From > to {
		return canon.Encode(out), nil
	}
	places, next, err := s.Places(x.From, to, x.Key, x.End, foreignChanges)
	if err != nil {
		return nil, err
	}
	room := foreignBytes
	for len(places) > 0 { // revision by revision: none is split
		n := 1
		for n < len(places) && places[n].Revision == places[0].Revision {
			n++
		}
		one, size, err := wireEvents(s, x, places[:n], true, foreignBytes)
		if err == nil && size > foreignBytes { // what it replaced is more than an answer holds
			one, size, err = wireEvents(s, x, places[:n], false, 4*foreignBytes)
		}
		if err == nil && size > 4*foreignBytes {
			err = scope.ErrTooMuch
		}
		if err != nil {
			return nil, err
		}
		if room -= size; room < 0 && len(out.All) > 0 {
			next = places[0].Revision
			break
		}
		out.All, places = append(out.All, one...), places[n:]
	}
	if next <= to {
		out.Next = next
	}
	return canon.Encode(out), nil
}

// wireEvents reads the changes at the places of a revision, as they are told, and how many bytes they take at most. It
// reads no further where these are more than most.
func wireEvents(s *scope.State, x *foreignWatch, places []scope.Place, prev bool, most int) (
	out []foreignEvent, size int, err error) {
	const fixed = 128 // of a version, besides its key and value
	for len(places) > 0 {
		p := places[0]
		if places = places[1:]; p.Rest { // it is the last one
			if places, err = s.Rest(p, x.Key, x.End); err != nil {
				return nil, 0, err
			}
			continue
		}
		e, err := s.Event(p, prev)
		if err != nil {
			return nil, 0, err
		}
		told := foreignEvent{Class: e.Class, Kv: e.Kv}
		size += fixed + len(e.Kv.Key) + len(e.Kv.Value)
		if e.Prev != nil {
			told.Prev = []scope.KeyValue{*e.Prev}
			size += fixed + len(e.Prev.Key) + len(e.Prev.Value)
		}
		if out = append(out, told); size > most {
			break
		}
	}
	return out, size, nil
}

// wrong says what makes it no answer to a question, whoever gave it.
func (w *foreignEvents) wrong(x *foreignWatch) error {
	last := x.From
	for i := range w.All {
		e := &w.All[i]
		at := e.Kv.ModRevision
		switch {
		case at < last || w.Next > 0 && at >= w.Next || w.Compacted > x.From:
			return fmt.Errorf("%w: changes in disorder", ErrFrame)
		case !scope.Within(e.Kv.Key, x.Key, x.End) || len(e.Prev) > 1 || len(e.Prev) == 1 && string(e.Prev[0].Key) != string(e.Kv.Key):
			return fmt.Errorf("%w: changes that were not asked for", ErrFrame)
		case e.Class != lineage.Insert && e.Class != lineage.Update && e.Class != lineage.Delete:
			return fmt.Errorf("%w: a change of class %d", ErrFrame, e.Class)
		}
		last = at
	}
	if w.Next != 0 && w.Next <= x.From {
		return fmt.Errorf("%w: changes that lead nowhere", ErrFrame)
	}
	return nil
}

// through is up to where nothing is left to be read of the answer's range, if the anchors that
// said so were as far as a revision. What they said of later ones is so as well: it was said of all up to there.
func (w *foreignEvents) through(revision int64) int64 {
	if w.Next > 0 {
		return w.Next - 1
	}
	if n := len(w.All); n > 0 {
		revision = max(revision, w.All[n-1].Kv.ModRevision)
	}
	return revision
}
