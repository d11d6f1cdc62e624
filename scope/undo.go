package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// Undo is what a block replaced in the state's records. A header claims the state
// before its block, so no final header claims the newest state until the next block
// is final. With an Undo, a node shows the state before the newest block, checks it
// against that block's header, and executes the block again. No part of an Undo is
// trusted; see Audit.Newest.
type Undo struct {
	_        struct{} `cbor:",toarray"`
	Block    aweigh.Hash
	Short    bool             // the replaced records were too many to keep
	Replaced []SnapshotRecord // as they were
	Absent   [][]byte         // keys without a record before, without the scope's prefix
}

// Undo returns the Undo of a block that was executed on s with these ops; it reads from s
// the records that they replace. It holds at most so many bytes of records. What follows
// from the block is left out: versions, receipts, changes and entries that it added.
func (s *State) Undo(block aweigh.Hash, ops []kv.Op, most int) (u Undo, err error) {
	u.Block = block
	for i := range ops {
		op := &ops[i]
		if !bytes.HasPrefix(op.Key, s.space[:]) || !op.Delete && s.adds(op) {
			continue
		}
		old, ok, err := s.r.Get(op.Key)
		if err != nil {
			return u, err
		}
		k := op.Key[len(s.space):]
		if most -= len(k) + len(old); most < 0 {
			return Undo{Block: block, Short: true}, nil
		}
		if ok {
			u.Replaced = append(u.Replaced, SnapshotRecord{Key: k, Value: old})
		} else {
			u.Absent = append(u.Absent, k)
		}
	}
	return u, nil
}

// adds reports whether an op stores what cannot have been there before, and what hides
// finds without an Undo.
func (s *State) adds(op *kv.Op) bool {
	switch op.Key[len(s.space)] {
	case atVersion, atChange, atReceipt, atExpiry, atLineage:
		return true
	case atObject:
		return isNew(op.Value)
	}
	return false
}

// isNew reports whether an object record is that of a life which has not ended.
func isNew(record []byte) bool { return len(record) > 0 && record[0] == 0 }

// before shows the state before a block, over the one after it.
func (u *Undo) before(r kv.Reader, s space, b *Block) (*kv.Overlay, error) {
	view := kv.NewOverlay(r)
	for _, rec := range u.Replaced {
		view.Apply(kv.Set(append(s[:len(s):len(s)], rec.Key...), rec.Value))
	}
	for _, k := range u.Absent {
		view.Apply(kv.Del(append(s[:len(s):len(s)], k...)))
	}
	prev, err := Open(view, b.Header.Scope)
	if err != nil {
		return nil, err
	}
	kept := kv.NewOverlay(nothingAt{}) // the records of u take precedence over those of the block
	kept.Apply(view.Ops()...)
	var hidden []kv.Op
	hide := func(k []byte) {
		if _, said := kept.First(k, append(bytes.Clone(k), 0)); !said {
			hidden = append(hidden, kv.Del(bytes.Clone(k)))
		}
	}
	if err := prev.hides(r, b, hide); err != nil {
		return nil, err
	}
	view.Apply(hidden...)
	return view, nil
}

// hides names the records in r, which shows the state after a block, that the block
// has added to s.
func (s *State) hides(r kv.Reader, b *Block, hide func(key []byte)) error {
	after := view{r: r, space: s.space, bounds: s.bounds}
	since := first(s.head.Revision + 1)
	err := after.changes(since, func(c change, _ bool) bool {
		hide(s.space.version(c.key, c.at))
		return true
	})
	keys := func(from, to []byte, wanted func(k, v []byte) bool) {
		if err == nil {
			err = r.Scan(from, to, false, func(k, v []byte) bool {
				if wanted(k, v) {
					hide(k)
				}
				return true
			})
		}
	}
	all := func(_, _ []byte) bool { return true }
	keys(s.space.change(since), s.space.at(atChange+1), all)
	index := func(kind byte, from int64) []byte {
		return binary.BigEndian.AppendUint64(s.space.at(atLineage, kind), uint64(from))
	}
	keys(index('h', tlog.StoredHashCount(s.head.LineageSize)), s.space.at(atLineage, 'h'+1), all)
	var bad error
	keys(index('e', s.head.LineageSize), s.space.at(atLineage, 'e'+1), func(_, run []byte) bool {
		entries, err := lineage.DecodeRun(run)
		if err != nil {
			bad = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		for i := range entries {
			if e := &entries[i]; e.Class == lineage.Insert || e.Class == lineage.TakenOver || e.Class == lineage.CameHome || e.Class == lineage.Received {
				hide(s.space.at(atObject, e.Object[:]...))
			}
		}
		return true
	})
	height := binary.BigEndian.AppendUint64(nil, uint64(b.Header.Height))
	keys(s.space.at(atExpiry), s.space.at(atExpiry+1), func(k, ids []byte) bool {
		if !bytes.HasSuffix(k, height) {
			return false
		}
		for ; len(ids) >= len(aweigh.Hash{}); ids = ids[len(aweigh.Hash{}):] {
			hide(s.space.at(atReceipt, ids[:len(aweigh.Hash{})]...))
		}
		return true
	})
	if err == nil {
		err = bad
	}
	return err
}

// nothingAt is a Reader of nothing.
type nothingAt struct{}

func (nothingAt) Get([]byte) ([]byte, bool, error)                         { return nil, false, nil }
func (nothingAt) Scan(_, _ []byte, _ bool, _ func(k, v []byte) bool) error { return nil }
