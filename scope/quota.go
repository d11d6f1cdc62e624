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

// Full reports whether a scope of some policy holds as much as that allows.
func (h *Head) Full(p *Policy) bool { return p.Limits.ScopeBytes > 0 && h.Bytes >= p.Limits.ScopeBytes }

// crowded refuses what would make a full scope hold more.
func (x *execution) crowded(p *plan) error {
	if x.next.head.Full(x.policy) && p.puts() {
		return ErrNoSpace
	}
	return nil
}

// puts reports whether some operation of the plan is a put.
func (p *plan) puts() bool {
	return slices.ContainsFunc(p.ops, func(op Op) bool { return op.Kind == OpPut }) ||
		slices.ContainsFunc(p.inner, func(in plan) bool { return in.puts() })
}
