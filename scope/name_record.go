package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
)

// names counts what must be searched in addition to the keys themselves. In a scope without aliases, nothing is
// searched.
type names struct {
	_         struct{} `cbor:",toarray"`
	Objects   int64    // with a list of aliases
	Redirects int64
	Sent      int64 // names that are on their way to other scopes
	Received  int64 // names that came from there, or were declined
}

// aliases is the list of an object that has, or once had, more names than the
// key it was created under, or that was forked. It is deleted with the object.
type aliases struct {
	_      struct{} `cbor:",toarray"`
	Last   int64    // index of the object's newest entry in the lineage, plus one
	Parent *Parent  // of a fork
	Held   []held   // oldest first; never empty
}

// held is one alias of an object. The versions of a key count from 1; those of
// the object go on from before the key came to name it.
type held struct {
	_      struct{} `cbor:",toarray"`
	Key    []byte
	Before int64 // versions of the object that the key never showed
}

// Parent is the version of another object that a fork began with.
type Parent struct {
	_        struct{} `cbor:",toarray"`
	Object   aweigh.UID
	Key      []byte // where it stood
	Revision int64
	Sub      uint32
}

// redirect is the record that remains of an alias that was moved.
type redirect struct {
	_      struct{} `cbor:",toarray"`
	Object aweigh.UID
	To     []byte // the alias that took its place
	Until  aweigh.Instant
}

// before is how many versions of the object a key of the list never showed.
func (a *aliases) before(key []byte) int64 {
	if i := a.find(key); a != nil && i >= 0 {
		return a.Held[i].Before
	}
	return 0
}

func (a *aliases) find(key []byte) int {
	if a == nil {
		return -1
	}
	for i := range a.Held {
		if bytes.Equal(a.Held[i].Key, key) {
			return i
		}
	}
	return -1
}

// redirect is the store's key of an alias's redirect.
func (s *space) redirect(key []byte) []byte {
	b := append(append(make([]byte, 0, len(s)+len(key)+3), s[:]...), atRedirect)
	return append(appendEscaped(b, key), escape, escapeEnd)
}

// redirectExpiry is the store's key by which a redirect is found when it is over.
func (s *space) redirectExpiry(until aweigh.Instant, key []byte) []byte {
	b := append(append(make([]byte, 0, len(s)+9+len(key)), s[:]...), atRedirectExpiry)
	return append(binary.BigEndian.AppendUint64(b, uint64(until)), key...)
}

// withRedirectExpiry adds to the op that sets a redirect the one by which it is found when
// it is over. Errors wrap ErrInvalid.
func (s *space) withRedirectExpiry(set []kv.Op) ([]kv.Op, error) {
	k := set[0].Key[len(s):]
	if k[0] != atRedirect {
		return set, nil
	}
	var r redirect
	if err := canon.Decode(set[0].Value, &r); err != nil || len(k) < 3 {
		return nil, fmt.Errorf("%w: redirect %x", ErrInvalid, k)
	}
	return append(set, kv.Set(s.redirectExpiry(r.Until, keyOf(k[1:])), nil)), nil
}

// record reads the canonical encoding under a store's key.
func (v *view) record(key []byte, what any) (ok bool, err error) {
	raw, ok, err := v.r.Get(key)
	if err != nil || !ok {
		return false, err
	}
	if err := canon.Decode(raw, what); err != nil {
		return false, fmt.Errorf("%w: record %x: %w", ErrCorrupt, key[len(v.space):], err)
	}
	return true, nil
}

// aliases is the list of an object; nil if it has none, and at most one name.
func (v *view) aliases(u aweigh.UID) (*aliases, error) {
	var a aliases
	ok, err := v.record(v.space.at(atAliases, u[:]...), &a)
	if err == nil && ok && len(a.Held) == 0 {
		err = fmt.Errorf("%w: object %s has an empty list of aliases", ErrCorrupt, u)
	}
	if err != nil || !ok {
		return nil, err
	}
	return &a, nil
}

// redirect is the redirect of an alias; nil if there is none.
func (v *view) redirect(key []byte) (*redirect, error) {
	var r redirect
	if ok, err := v.record(v.space.redirect(key), &r); err != nil || !ok {
		return nil, err
	}
	return &r, nil
}

// names counts what there is to look for.
func (s *State) names() (n names, err error) {
	if s.named != nil {
		return *s.named, nil
	}
	_, err = s.record(s.space.at(atNames), &n)
	return n, err
}

// Naming is the state, which reads at once how many names there are to look for, and
// not again for each that it resolves.
func (s *State) Naming() (*State, error) {
	n, err := s.names()
	if err != nil {
		return nil, err
	}
	knows := *s
	knows.named = &n
	return &knows, nil
}

// replace replaces the record about names under a key, or deletes it if what is
// nil.
func (x *execution) replace(k []byte, what any) error {
	old, ok, err := x.r.Get(k)
	if err != nil {
		return err
	}
	if ok {
		x.removeElement(k, old)
	}
	if what == nil {
		x.versions.Apply(kv.Del(k))
		return nil
	}
	record := canon.Encode(what)
	x.versions.Apply(kv.Set(k, record))
	x.addElement(k, record)
	return nil
}

// storeNames writes what the block made of the counts.
func (x *execution) storeNames() error {
	now := x.names
	if now == *x.next.named {
		return nil
	}
	x.next.named = &now
	return x.replace(x.space.at(atNames), now)
}
