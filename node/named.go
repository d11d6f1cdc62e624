package node

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Resolved is what a name stands for: an object, and one of its versions.
type Resolved struct {
	_              struct{}        `cbor:",toarray"`
	Kv             scope.KeyValue  // of the version
	Key            []byte          // an alias that names the object now
	Number, Newest int64           // of the version, and of the newest one
	Claims         bool            // the object, too, says that Key is an alias of it
	Moved          *scope.Redirect // how it was found, if the key that was asked for does not name it itself
}

// named is what a key stands for in a scope, in its newest version.
func named(s *scope.State, key []byte) (r Resolved, err error) {
	found, ok, err := s.Resolve(key)
	if err != nil {
		return r, err
	}
	r.Moved = found.Moved
	switch {
	case !ok && r.Moved != nil:
		return r, fmt.Errorf("%w: %q was moved to %q, and its object %s is deleted since; see its history", scope.ErrKeyNotFound, key, r.Moved.To, r.Moved.Object)
	case !ok:
		return r, fmt.Errorf("%w: %q", scope.ErrKeyNotFound, key)
	}
	r.Kv, r.Key, r.Claims, r.Newest, r.Number = found.Kv, found.Kv.Key, found.Claims, found.Number, found.Number
	return r, nil
}
