package store

import (
	"bytes"
	"fmt"

	"github.com/tidwall/btree"

	"github.com/aweigh/aweigh/kv"
)

// Mem is a Store in memory that can crash. It is deterministic and for one
// goroutine at a time. It keeps the keys and values of the Ops it is given, and
// returns them, without copying; callers must not change them.
type Mem struct {
	reader
	// undo has for each commit that is not synced the ops that take it back,
	// oldest commit first. Synced commits, the usual kind, so cost nothing more.
	undo   [][]kv.Op
	next   [faults]error // what FailNext asked for
	failed error
	closed bool
}

// Fault names the step at which FailNext makes a Mem fail.
type Fault int

const (
	// FaultCommit fails before anything is written; the store has failed.
	FaultCommit Fault = iota
	// FaultSync fails a commit with sync after it was written but not synced: a
	// crash may or may not keep it. The store has failed.
	FaultSync
	// FaultRead fails one Get or Scan and changes nothing.
	FaultRead

	faults
)

// NewMem is an empty Mem.
func NewMem() *Mem { return &Mem{reader: reader{tree: newTree()}} }

// Commit implements Store.
func (m *Mem) Commit(ops []kv.Op, sync bool) error {
	if err := CheckKeys(ops); err != nil {
		return err
	}
	if m.closed {
		return ErrClosed
	}
	if m.failed != nil {
		return m.failed
	}
	if err := m.take(FaultCommit); err != nil {
		return m.fail(err)
	}
	var fault error
	if sync {
		fault = m.take(FaultSync)
	}
	durable := sync && fault == nil
	if durable {
		clear(m.undo) // to free their content
		m.undo = m.undo[:0]
	}
	back := m.apply(ops, !durable)
	if !durable && len(ops) > 0 {
		m.undo = append(m.undo, back)
	}
	if fault != nil {
		return m.fail(fault)
	}
	return nil
}

// Get implements kv.Reader.
func (m *Mem) Get(key []byte) (value []byte, ok bool, err error) {
	if err := m.readable(); err != nil {
		return nil, false, err
	}
	return m.reader.Get(key)
}

// Scan implements kv.Reader. Nothing may be committed while it runs.
func (m *Mem) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	if err := m.readable(); err != nil {
		return err
	}
	return m.reader.Scan(from, to, reverse, visit)
}

// Snapshot implements Store.
func (m *Mem) Snapshot() Snapshot { return reader{tree: m.tree.Copy()} }

// Close implements Store. A Crash opens the Mem again.
func (m *Mem) Close() error {
	if m.failed == nil {
		m.undo = nil
	}
	m.closed = true
	return nil
}

// Unsynced is the number of commits that a crash could take back.
func (m *Mem) Unsynced() int { return len(m.undo) }

// Crash simulates the end of the process and its start on the same disk: it
// keeps the first keep of the unsynced commits (all if there are fewer), undoes
// the later ones, and forgets planned and past faults. Snapshots taken before
// stay unchanged.
func (m *Mem) Crash(keep int) {
	for i := len(m.undo) - 1; i >= max(keep, 0); i-- {
		m.apply(m.undo[i], false)
	}
	*m = Mem{reader: m.reader}
}

// Tear is Crash on a disk that tears a commit: of the first one that is taken back, the first ops, at most part, stay.
func (m *Mem) Tear(keep, part int) {
	if keep = max(keep, 0); keep < len(m.undo) {
		back := m.undo[keep] // the last op's is first
		m.undo[keep] = back[:max(0, len(back)-part)]
	}
	m.Crash(keep)
}

// Clone is a copy as of now, faults left out: an old copy of the disk, when a
// node is later started from it. Crash it first to leave out unsynced commits.
func (m *Mem) Clone() *Mem {
	return &Mem{reader: reader{tree: m.tree.Copy()}, undo: append([][]kv.Op(nil), m.undo...)}
}

// FailNext makes the next step of that kind fail with err, once.
func (m *Mem) FailNext(f Fault, err error) { m.next[f] = err }

func (m *Mem) take(f Fault) error {
	err := m.next[f]
	m.next[f] = nil
	return err
}

func (m *Mem) fail(err error) error {
	m.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	return m.failed
}

func (m *Mem) readable() error {
	if m.closed {
		return ErrClosed
	}
	if err := m.take(FaultRead); err != nil {
		return fmt.Errorf("store: read: %w", err)
	}
	return nil
}

// apply carries out ops and returns, if asked to, the ops that take them back.
func (m *Mem) apply(ops []kv.Op, reversible bool) (back []kv.Op) {
	if reversible {
		back = make([]kv.Op, len(ops))
	}
	for i, op := range ops {
		var old kv.Op
		var had bool
		if op.Delete {
			old, had = m.tree.Delete(op)
		} else {
			old, had = m.tree.Set(op)
		}
		if !reversible {
			continue
		}
		if !had {
			old = kv.Del(op.Key)
		}
		back[len(ops)-1-i] = old // the last change is the first to go
	}
	return back
}

// reader reads a tree of Set ops.
type reader struct{ tree *btree.BTreeG[kv.Op] }

func newTree() *btree.BTreeG[kv.Op] {
	less := func(a, b kv.Op) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// Get implements kv.Reader.
func (r reader) Get(key []byte) (value []byte, ok bool, err error) {
	op, ok := r.tree.Get(kv.Op{Key: key})
	return op.Value, ok, nil
}

// Scan implements kv.Reader.
func (r reader) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	lower, some := Bounds(from, to)
	switch {
	case !some:
	case !reverse:
		r.tree.Ascend(kv.Op{Key: lower}, func(op kv.Op) bool {
			return (to == nil || bytes.Compare(op.Key, to) < 0) && visit(op.Key, op.Value)
		})
	case to == nil:
		r.tree.Reverse(func(op kv.Op) bool {
			return bytes.Compare(op.Key, lower) >= 0 && visit(op.Key, op.Value)
		})
	default:
		r.tree.Descend(kv.Op{Key: to}, func(op kv.Op) bool {
			return bytes.Equal(op.Key, to) || // Descend includes its pivot
				bytes.Compare(op.Key, lower) >= 0 && visit(op.Key, op.Value)
		})
	}
	return nil
}

// Close implements Snapshot.
func (r reader) Close() error { return nil }
