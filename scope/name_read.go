package scope

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// Redirect is the rest of an alias that was moved: it leads to the object under
// its present names.
type Redirect struct {
	_      struct{} `cbor:",toarray"`
	Key    []byte   // the alias that was moved
	To     []byte   // the alias that took its place then
	Object aweigh.UID
	Until  aweigh.Instant // by the blocks' time
}

// Resolution is the object that an alias names.
type Resolution struct {
	Kv     KeyValue  // newest content, under an alias that names the object
	Number int64     // of this version of the object, from 1
	Claims bool      // the object's own list has Kv.Key as an alias, if objects of the scope have lists
	Moved  *Redirect // how the object was found, if the key that was asked for does not name it itself
}

// Resolve finds the object that a key names, or named until it was moved. It
// reports false where there is none; Moved then is the redirect of an alias that
// was moved, if it is known.
func (s *State) Resolve(key []byte) (r Resolution, ok bool, err error) {
	r.Kv, ok, err = s.newest(key)
	if err == nil && !ok {
		if r.Moved, err = s.moved(key); err != nil || r.Moved == nil {
			return r, false, err
		}
		r.Kv, ok, err = s.found(r.Moved.Object, r.Moved.To)
	}
	if err != nil || !ok {
		return r, false, err
	}
	n, err := s.names()
	if err != nil {
		return r, false, err
	}
	if n.Objects == 0 { // every object has the key alone that its versions stand under
		r.Claims, r.Number = true, r.Kv.Version
		return r, true, nil
	}
	a, err := s.aliasesWith(r.Kv.UID, &r.Kv)
	if err != nil {
		return r, false, err
	}
	for i, k := range a.Keys {
		if bytes.Equal(k, r.Kv.Key) {
			r.Claims, r.Number = true, a.before[i]+r.Kv.Version
		}
	}
	return r, true, nil
}

// moved is the redirect of an alias, nil if there is none, or it is over.
func (s *State) moved(key []byte) (*Redirect, error) {
	r, err := s.redirect(key)
	if err != nil || r == nil || r.Until < s.head.Time {
		return nil, err
	}
	return &Redirect{Key: key, To: r.To, Object: r.Object, Until: r.Until}, nil
}

// found is the newest content of an object, under an alias that is preferred if it
// still is one.
func (s *State) found(u aweigh.UID, preferred []byte) (KeyValue, bool, error) {
	v, ok, err := s.newest(preferred)
	if err != nil || ok && v.UID == u {
		return v, ok, err
	}
	a, err := s.Aliases(u)
	if err != nil || len(a.Keys) == 0 {
		return v, false, err
	}
	return s.newest(a.Keys[0])
}

// Aliases is what names an object.
type Aliases struct {
	Keys   [][]byte // that name it, oldest first; none if it is retired, or never existed
	Last   int64    // count of its newest entry in the lineage, for lineage.Log.Chain; 0 if it was never there
	Parent *Parent  // of a fork that is not retired
	before []int64  // of each key, the versions that it never showed
}

// Aliases returns the names of an object.
func (s *State) Aliases(u aweigh.UID) (a Aliases, err error) { return s.aliasesWith(u, nil) }

// aliasesWith is Aliases for callers that know the newest content under one of the keys; known may be nil.
func (s *State) aliasesWith(u aweigh.UID, known *KeyValue) (a Aliases, err error) {
	list, err := s.aliases(u)
	if err != nil {
		return a, err
	}
	if list == nil {
		raw, ok, err := s.r.Get(s.space.at(atObject, u[:]...))
		if err != nil || !ok {
			return a, err
		}
		o, err := readObject(raw)
		if err != nil {
			return a, err
		}
		if a.Last = o.End; o.End != 0 {
			return a, nil
		}
		v := known
		if v == nil || !bytes.Equal(v.Key, o.Key) {
			newest, ok, err := s.newest(o.Key)
			if err == nil && (!ok || newest.UID != u) {
				err = fmt.Errorf("%w: the key of object %s names another", ErrCorrupt, u)
			}
			if err != nil {
				return a, err
			}
			v = &newest
		}
		a.Last, a.Keys, a.before = v.Entry+1, [][]byte{o.Key}, []int64{0}
		return a, nil
	}
	a.Last, a.Parent = list.Last, list.Parent
	for _, h := range list.Held {
		a.Keys, a.before = append(a.Keys, h.Key), append(a.before, h.Before)
	}
	return a, nil
}

// Version is one version of an object's content.
type Version struct {
	Number int64         // from 1
	Index  int64         // of Entry in the lineage
	Entry  lineage.Entry // that wrote it
	shown  []shown       // newest first, and Entry last
}

// shown is an entry about content under a key.
type shown struct {
	index int64
	entry lineage.Entry
}

// mostWalked bounds the entries of an object that a search for a version looks at.
const mostWalked = 100_000

// ErrFar means that a version lies too far back to be found by its number.
var ErrFar = fmt.Errorf("scope: the version lies more than %d changes of the object back; find its revision in the object's history, and read that", mostWalked)

// Versions visits the versions of an object from the newest to the oldest, until
// visit returns false. It follows the lineage, which keeps what compaction drops
// of the content. Versions shown under several aliases count once.
func (s *State) Versions(u aweigh.UID, visit func(Version) bool) error {
	a, err := s.Aliases(u)
	if err != nil || a.Last == 0 {
		return err
	}
	var number int64
	if len(a.Keys) > 0 {
		v, ok, err := s.newest(a.Keys[0])
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: object %s has an alias that names nothing", ErrCorrupt, u)
		}
		number = a.before[0] + v.Version
	} else if number, err = s.versionAt(a.Last); err != nil {
		return err
	}
	walked := 0
	var bad error
	var under []shown // the version that comes next, under further keys
	err = s.Lineage().Chain(a.Last, func(index int64, e lineage.Entry) bool {
		if walked++; walked > s.bounds.Walked {
			bad = ErrFar
			return false
		}
		if e.Class.Shows() {
			under = append(under, shown{index, e})
		}
		if !makesVersion(e.Class) {
			return true
		}
		next := visit(Version{Number: number, Index: index, Entry: e, shown: under})
		number, under = number-1, nil
		if next && (e.Class == lineage.CameHome || e.Class == lineage.Received) && e.Prev > 0 { // those between are in the history of another scope
			number, bad = s.versionAt(e.Prev)
		}
		return next && bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// versionAt is the number of the version that an object had as of an entry, given by its index plus one, with which it
// went: to another scope, which the entry tells, or for good. Then the versions are counted that the lineage has.
func (s *State) versionAt(last int64) (n int64, err error) {
	e, _, err := s.Lineage().Entry(last - 1)
	if err != nil {
		return 0, err
	}
	if n, ok := parseVersion(e.Reason); ok && (e.Class == lineage.HandedOver || e.Class == lineage.Left) {
		return n, nil
	}
	walked := 0
	err = s.Lineage().Chain(last, func(_ int64, e lineage.Entry) bool {
		if makesVersion(e.Class) {
			n++
		}
		walked++
		return walked <= s.bounds.Walked
	})
	if err == nil && walked > s.bounds.Walked {
		err = ErrFar
	}
	return n, err
}

// Content is what a version holds, under the key under which it was written if it
// can still be read there, or under another alias. It reports false if a compaction
// dropped it.
func (s *State) Content(v Version) (KeyValue, bool, error) {
	for i := len(v.shown) - 1; i >= 0; i-- {
		kv, err := s.written(v.shown[i].index, &v.shown[i].entry)
		if err != nil || kv != nil {
			return *cmp.Or(kv, new(KeyValue)), err == nil, err
		}
	}
	return KeyValue{}, false, nil
}

// ContentUnder is Content that prefers what the version shows under a key.
func (s *State) ContentUnder(v Version, key []byte) (KeyValue, bool, error) {
	for i := range v.shown {
		if !bytes.Equal(v.shown[i].entry.Key, key) {
			continue
		}
		kv, err := s.written(v.shown[i].index, &v.shown[i].entry)
		if err != nil || kv != nil {
			return *cmp.Or(kv, new(KeyValue)), err == nil, err
		}
	}
	return s.Content(v)
}

// makesVersion reports whether an entry of a class stands for a version of an object;
// the others show one under a further key, or none.
func makesVersion(c lineage.Class) bool {
	return c == lineage.Insert || c == lineage.Update || c == lineage.TakenOver || c == lineage.CameHome || c == lineage.Received
}

// written is the version of an entry, if it can still be read.
func (s *State) written(index int64, e *lineage.Entry) (found *KeyValue, err error) {
	if e.Revision < s.head.Compacted {
		v, ok, err := s.before(e.Key, s.head.Compacted)
		if err != nil || !ok || v.Entry != index {
			return nil, err
		}
		return &v, nil
	}
	from := s.space.version(e.Key, last(e.Revision))
	to := s.space.version(e.Key, last(e.Revision-1))
	var bad error
	err = s.r.Scan(from, to, false, func(k, record []byte) bool {
		v, decodeErr := s.decode(k, record)
		if bad = decodeErr; bad == nil && v.Entry == index {
			v.Key = bytes.Clone(e.Key)
			found = &v
		}
		return bad == nil && found == nil
	})
	if err == nil {
		err = bad
	}
	return found, err
}

// UIDs lists the objects whose UID begins with a text in base32, retired ones
// included, at most so many.
func (s *State) UIDs(prefix string, most int) (found []aweigh.UID, err error) {
	prefix = strings.ToLower(prefix)
	from, err := aweigh.FirstUID(prefix)
	if err != nil {
		return nil, err
	}
	err = s.r.Scan(s.space.at(atObject, from[:]...), s.space.at(atObject+1), false, func(k, _ []byte) bool {
		var u aweigh.UID
		copy(u[:], k[len(s.space)+1:])
		if !strings.HasPrefix(u.String(), prefix) {
			return false
		}
		found = append(found, u)
		return len(found) < most
	})
	return found, err
}

// Redirects lists the redirects of keys in [key, end) in the sense of Op, in
// order of key, at most so many.
func (s *State) Redirects(key, end []byte, most int) (found []Redirect, err error) {
	prefix := s.space.at(atRedirect)
	from := appendEscaped(bytes.Clone(prefix), key)
	var bad error
	err = s.r.Scan(from, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
		at := bytes.Clone(keyOf(k[len(prefix):]))
		if !Within(at, key, end) || len(found) >= most {
			return false
		}
		r, movedErr := s.moved(at)
		if bad = movedErr; r != nil {
			found = append(found, *r)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return found, err
}
