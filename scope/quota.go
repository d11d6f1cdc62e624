package scope

import (
	"errors"
	"slices"
)

// ErrNoSpace means that a scope holds as much as its policy allows. Keys can be deleted, and
// old content compacted away.
var ErrNoSpace = errors.New("scope: mvcc: database space exceeded")

// recordBytes is what a version of a key counts.
func recordBytes(k, record []byte) int64 { return int64(len(k)-len(space{})) + int64(len(record)) }

// putBytes is what a put of a key counts before it is done: no less than what it counts afterwards, and the same as in
// etcd (costPut of its quota.go).
func putBytes(key, value []byte) int64 { return 256 + int64(len(key)+len(value)) }

// Bounds of the room that is left in a scope that counts as full, in bytes: the least put, and the largest put of
// etcd.
const (
	least       = 257
	mostReserve = 3 << 19
)

// Full reports whether a scope of some policy holds as much as that allows, less one part in 64: so little room that
// puts of usual sizes would be refused one by one. The room left is no more than 1.5 MiB.
func (h *Head) Full(p *Policy) bool { return FullAt(h.Bytes, p.Limits.ScopeBytes) }

// FullAt reports whether a scope that holds some bytes is full, where so many are allowed; 0: any number.
func FullAt(bytes, most int64) bool {
	return most > 0 && bytes >= most-max(least, min(most/64, mostReserve))
}

// crowded refuses what would make a scope hold more than its policy allows, and every put of a full one.
func (x *execution) crowded(p *plan) error {
	most := x.policy.Limits.ScopeBytes
	if most > 0 && p.puts() && (x.next.head.Full(x.policy) || x.next.head.Bytes+x.grows > most) {
		return ErrNoSpace
	}
	return nil
}

// puts reports whether some operation of the plan is a put.
func (p *plan) puts() bool {
	return slices.ContainsFunc(p.ops, func(op Op) bool { return op.Kind == OpPut }) ||
		slices.ContainsFunc(p.inner, func(in plan) bool { return in.puts() })
}
