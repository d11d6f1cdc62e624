package kv

import (
	"bytes"

	"github.com/tidwall/btree"
)

// Overlay is a Reader that shows Ops on top of a base, without writing them.
// Overlays stack: a block that is not yet final is one Overlay on its parent's.
// The zero value is not ready; use NewOverlay. Not safe for concurrent writing.
type Overlay struct {
	base Reader
	ops  *btree.BTreeG[Op] // nil while there are no ops
	log  []Op
}

// NewOverlay is an empty Overlay on base.
func NewOverlay(base Reader) *Overlay { return &Overlay{base: base} }

// Apply puts ops on top; a later Op on the same key wins.
func (o *Overlay) Apply(ops ...Op) {
	if len(ops) == 0 {
		return
	}
	if o.ops == nil {
		less := func(a, b Op) bool { return bytes.Compare(a.Key, b.Key) < 0 }
		o.ops = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	for _, op := range ops {
		o.ops.Set(op)
	}
	o.log = append(o.log, ops...)
}

// Ops is all that was applied, in order.
func (o *Overlay) Ops() []Op { return o.log }

// Reset takes all ops off again.
func (o *Overlay) Reset() { o.ops, o.log = nil, nil }

// Rebase puts the overlay on another base, which must show what the old one
// showed, as when the base's own ops have reached the store.
func (o *Overlay) Rebase(base Reader) { o.base = base }

// Base is the Reader below.
func (o *Overlay) Base() Reader { return o.base }

// Get implements Reader.
func (o *Overlay) Get(key []byte) ([]byte, bool, error) {
	if o.ops != nil {
		if op, ok := o.ops.Get(Op{Key: key}); ok {
			return op.Value, !op.Delete, nil
		}
	}
	return o.base.Get(key)
}

// Scan implements Reader by merging the overlay with its base.
func (o *Overlay) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	if o.ops == nil {
		return o.base.Scan(from, to, reverse, visit)
	}
	next, stop := o.walk(from, to, reverse)
	defer stop()
	mine, have := next()
	before := func(a, b []byte) bool {
		if reverse {
			return bytes.Compare(a, b) > 0
		}
		return bytes.Compare(a, b) < 0
	}
	emit := func() bool {
		op := mine
		mine, have = next()
		return op.Delete || visit(op.Key, op.Value)
	}
	more := true
	err := o.base.Scan(from, to, reverse, func(key, value []byte) bool {
		for have && before(mine.Key, key) {
			if more = emit(); !more {
				return false
			}
		}
		if have && bytes.Equal(mine.Key, key) {
			more = emit()
		} else {
			more = visit(key, value)
		}
		return more
	})
	for err == nil && more && have {
		more = emit()
	}
	return err
}

// First is the first of the overlay's own ops on a key within [from, to).
func (o *Overlay) First(from, to []byte) (first Op, ok bool) {
	if o.ops == nil {
		return Op{}, false
	}
	o.ops.Ascend(Op{Key: from}, func(op Op) bool {
		first, ok = op, to == nil || bytes.Compare(op.Key, to) < 0
		return false
	})
	if !ok {
		return Op{}, false
	}
	return first, true
}

// walk is a pull iterator over the overlay's own ops within [from, to).
func (o *Overlay) walk(from, to []byte, reverse bool) (next func() (Op, bool), stop func()) {
	it := o.ops.Iter()
	started := false
	in := func(op Op) bool {
		return bytes.Compare(op.Key, from) >= 0 && (to == nil || bytes.Compare(op.Key, to) < 0)
	}
	return func() (Op, bool) {
		var ok bool
		switch {
		case started && reverse:
			ok = it.Prev()
		case started:
			ok = it.Next()
		case !reverse:
			ok = it.Seek(Op{Key: from})
		case to == nil:
			ok = it.Last()
		default:
			ok = it.Seek(Op{Key: to})
			if ok {
				ok = it.Prev()
			} else {
				ok = it.Last()
			}
		}
		started = true
		if !ok || !in(it.Item()) {
			return Op{}, false
		}
		return it.Item(), true
	}, it.Release
}
