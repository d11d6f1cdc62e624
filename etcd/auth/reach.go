package auth

import (
	"bytes"

	"github.com/aweigh/aweigh/scope"
)

// A put of one alias of an object is a put of all. Which aliases there are is known for sure when the put executes, so
// a transaction of a user carries the keys that the user may write, and fails where it would change others.

// Bounds of the permissions that a transaction carries of its user: above them it carries only the permissions for the
// keys that it puts.
const (
	reachRanges = scope.MaxReach
	reachBytes  = 4 << 10
)

// Bound limits what the puts of a transaction may change to what the user may write; nil: there is no user.
func (r *Rights) Bound(t *scope.Txn) {
	if r == nil || r.root || !puts(t, func([]byte) bool { return true }) {
		return
	}
	size := 0
	for _, s := range r.write {
		size += len(s.from) + len(s.to)
	}
	for _, s := range r.write {
		if len(r.write) > reachRanges || size > reachBytes {
			if key, end := s.op(); !puts(t, func(k []byte) bool { return scope.Within(k, key, end) }) {
				continue
			}
		}
		if scope.ToEnd(s.to) {
			continue // it ends before the least key; as the end of a range, its end would mean all keys
		}
		key, end := s.op()
		t.Reach = append(t.Reach, scope.Reach{Key: key, End: end})
	}
}

// allKeys is the least key, and as an end, the end of all keys.
var allKeys = []byte{0}

// op is a span of merged ones in the form of scope.Op.
func (s span) op() (key, end []byte) {
	if key, end = s.from, s.to; len(key) == 0 {
		key = allKeys // the least key
	}
	if end == nil {
		end = allKeys // to the end
	}
	return bytes.Clone(key), bytes.Clone(end)
}

// puts reports whether a transaction puts a key for which is holds, whichever branches it takes.
func puts(t *scope.Txn, is func(key []byte) bool) bool {
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			op := &branch[i]
			if op.Kind == scope.OpPut && is(op.Key) || op.Kind == scope.OpTxn && puts(op.Txn, is) {
				return true
			}
		}
	}
	return false
}
