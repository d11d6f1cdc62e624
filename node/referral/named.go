package referral

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Resolved is the object that a name stands for, and one of its versions.
type Resolved struct {
	_              struct{}        `cbor:",toarray"`
	Kv             scope.KeyValue  // that version
	Key            []byte          // an alias that names the object now
	Number, Newest int64           // number of that version, and of the newest one
	Claims         bool            // the object lists Key as an alias, too
	Moved          *scope.Redirect // how it was found, if the requested key itself does not name it
}

// Names are the keys that the answer names.
func (r *Resolved) Names() Ranges {
	keys := [][]byte{r.Key, r.Kv.Key}
	if r.Moved != nil {
		keys = append(keys, r.Moved.Key, r.Moved.To)
	}
	return Keys(keys...)
}

// Named returns what a key stands for in a scope, in the newest version. The error wraps scope.ErrKeyNotFound if it
// stands for nothing; r.Moved is set if that is because its object was moved and then deleted.
func Named(s *scope.State, key []byte) (r Resolved, err error) {
	found, ok, err := s.Resolve(key)
	if err != nil {
		return r, err
	}
	r.Moved = found.Moved
	switch {
	case !ok && r.Moved != nil:
		return r, fmt.Errorf("%w: %q was moved, and its object %s is deleted since; see its history", scope.ErrKeyNotFound, key, r.Moved.Object)
	case !ok:
		return r, fmt.Errorf("%w: %q", scope.ErrKeyNotFound, key)
	}
	r.Kv, r.Key, r.Claims, r.Newest, r.Number = found.Kv, found.Kv.Key, found.Claims, found.Number, found.Number
	return r, nil
}
