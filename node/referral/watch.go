package referral

import (
	"fmt"
	"math"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// MaxChanges bounds the changes that one question examines, of any keys.
const MaxChanges = 1000

// Watch asks for the changes of a range of keys, from a revision on.
type Watch struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
	From     int64
}

// AboutNow returns a Watch that asks for no changes, and so only for the scope's revision.
func AboutNow(prefix []byte) Watch {
	return Watch{Key: prefix, From: math.MaxInt64}
}

// Events holds changes in order. They include changes of keys that were delegated to other scopes later.
type Events struct {
	_         struct{} `cbor:",toarray"`
	Compacted int64    // revisions below it cannot be read; set only if that matters to the asker, as All is then empty
	Given     int64    // how many prefixes in the range the scope has delegated
	Next      int64    // revision to ask from next; 0: these are all changes up to the answer's revision
	All       []Event
}

// Event is a scope.Event.
type Event struct {
	_     struct{} `cbor:",toarray"`
	Class lineage.Class
	Kv    scope.KeyValue
	Prev  []scope.KeyValue // at most one; none if the values that a transaction replaced exceed an answer
}

func (e *Event) Event() scope.Event {
	out := scope.Event{Class: e.Class, Kv: e.Kv}
	if len(e.Prev) > 0 {
		out.Prev = &e.Prev[0]
	}
	return out
}

// TellEvents returns an honest anchor's answer about changes up to revision at, 0 for the newest.
func TellEvents(s *scope.State, x *Watch, at int64) ([]byte, error) {
	given, err := s.Touching(x.Key, x.End)
	if err != nil {
		return nil, err
	}
	h := s.Head()
	to := h.Revision
	if at > 0 {
		to = min(to, at)
	}
	out := Events{Given: int64(len(given))}
	// For other questions the number is of no use, and anchors may differ in it.
	compacted, err := s.CompactedFor(x.Key, x.End)
	if err != nil {
		return nil, err
	}
	if x.From < compacted || x.From == math.MaxInt64 {
		out.Compacted = compacted
	}
	if x.From < compacted || x.From > to {
		return canon.Encode(out), nil
	}
	places, next, err := s.Places(x.From, to, x.Key, x.End, MaxChanges)
	if err != nil {
		return nil, err
	}
	room := MaxBytes
	for len(places) > 0 { // revision by revision; none is split
		n := 1
		for n < len(places) && places[n].Revision == places[0].Revision {
			n++
		}
		one, size, err := wireEvents(s, x, places[:n], true, MaxBytes)
		if err == nil && size > MaxBytes { // the values that it replaced exceed an answer
			one, size, err = wireEvents(s, x, places[:n], false, 4*MaxBytes)
		}
		if err == nil && size > 4*MaxBytes {
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

// wireEvents returns the changes at the places of one revision in the form in which they are sent, and the most bytes
// that they take. It stops once these exceed most.
func wireEvents(s *scope.State, x *Watch, places []scope.Place, prev bool, most int) (
	out []Event, size int, err error) {
	const fixed = 128 // of a version, besides its key and value
	for len(places) > 0 {
		p := places[0]
		if places = places[1:]; p.Remainder { // it is the last one
			if places, err = s.Remainder(p, x.Key, x.End); err != nil {
				return nil, 0, err
			}
			continue
		}
		e, err := s.Event(p, prev)
		if err != nil {
			return nil, 0, err
		}
		told := Event{Class: e.Class, Kv: e.Kv}
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

// Wrong returns why w is no possible answer to x, whichever node gave it; nil if it is possible.
func (w *Events) Wrong(x *Watch) error {
	last := x.From
	for i := range w.All {
		e := &w.All[i]
		at := e.Kv.ModRevision
		switch {
		case at < last || w.Next > 0 && at >= w.Next || w.Compacted > x.From:
			return fmt.Errorf("%w: changes in disorder", machine.ErrFrame)
		case !scope.Within(e.Kv.Key, x.Key, x.End) || len(e.Prev) > 1 || len(e.Prev) == 1 && string(e.Prev[0].Key) != string(e.Kv.Key):
			return fmt.Errorf("%w: changes that were not asked for", machine.ErrFrame)
		case e.Class != lineage.Insert && e.Class != lineage.Update && e.Class != lineage.Delete:
			return fmt.Errorf("%w: a change of class %d", machine.ErrFrame, e.Class)
		}
		last = at
	}
	if w.Next != 0 && w.Next <= x.From {
		return fmt.Errorf("%w: changes that lead nowhere", machine.ErrFrame)
	}
	return nil
}

// Through returns the revision up to which nothing is left to be read in the range of w, if the anchors that gave this
// answer had reached the given revision. The changes in w may be of later revisions: w has all changes up to those.
func (w *Events) Through(revision int64) int64 {
	if w.Next > 0 {
		return w.Next - 1
	}
	if n := len(w.All); n > 0 {
		revision = max(revision, w.All[n-1].Kv.ModRevision)
	}
	return revision
}
