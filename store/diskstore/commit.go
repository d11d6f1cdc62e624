package diskstore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

// Commit implements store.Store. Readers may see ops before they are durable.
func (s *Store) Commit(ops []kv.Op, sync bool) error {
	if err := store.CheckKeys(ops); err != nil {
		return err
	}
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := s.fault.get(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	size, err := fill(b, ops, sync)
	if err != nil {
		return fmt.Errorf("store: commit of %d ops: %w", len(ops), err)
	}
	how := pebble.NoSync
	if sync {
		how = pebble.Sync
	}
	err = s.db.Apply(b, how)
	if err != nil {
		s.fault.set(fmt.Errorf("commit: %w", err))
	}
	if err := s.fault.get(); err != nil { // also what diskFS kept from Pebble
		return err
	}
	if sync {
		if err := s.synced.reach(uint64(b.SeqNum()) + uint64(b.Count())); err != nil {
			s.fault.set(err)
			return s.fault.get()
		}
	}
	s.commits.Add(1)
	s.ops.Add(uint64(len(ops)))
	if was := s.bytes.Add(uint64(size)) - uint64(size); was < s.early && was+uint64(size) >= s.early {
		if _, err := s.db.AsyncFlush(); err != nil {
			s.fault.set(fmt.Errorf("writing a table out: %w", err))
			return s.fault.get()
		}
	}
	if err := b.Close(); err != nil { // returns it to a pool
		return fmt.Errorf("store: commit of %d ops: %w", len(ops), err)
	}
	return nil
}

// fill writes ops into b and returns the bytes of their keys and values.
// Without ops, a barrier needs an empty record for the sync to wait for.
func fill(b *pebble.Batch, ops []kv.Op, sync bool) (size int, err error) {
	if len(ops) == 0 && sync {
		return 0, b.LogData(nil, nil)
	}
	for _, op := range ops {
		if op.Delete {
			err = b.Delete(op.Key, nil)
		} else {
			err = b.Set(op.Key, op.Value, nil)
		}
		if err != nil {
			return 0, err
		}
		size += len(op.Key) + len(op.Value)
	}
	return size, nil
}
