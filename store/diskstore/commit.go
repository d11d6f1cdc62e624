package diskstore

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

// Commit implements store.Store. Readers may see ops before they are durable.
func (p *Store) Commit(ops []kv.Op, sync bool) error {
	if err := store.CheckKeys(ops); err != nil {
		return err
	}
	if p.closed.Load() {
		return store.ErrClosed
	}
	if err := p.fault.get(); err != nil {
		return err
	}
	b := p.db.NewBatch()
	size, err := fill(b, ops, sync)
	if err != nil {
		return fmt.Errorf("store: commit of %d ops: %w", len(ops), err)
	}
	how := pebble.NoSync
	if sync {
		how = pebble.Sync
	}
	err = p.db.Apply(b, how)
	if err != nil {
		p.fault.set(fmt.Errorf("commit: %w", err))
	}
	if err := p.fault.get(); err != nil { // also what diskFS kept from Pebble
		return err
	}
	if sync {
		if err := p.synced.reach(uint64(b.SeqNum()) + uint64(b.Count())); err != nil {
			p.fault.set(err)
			return p.fault.get()
		}
	}
	p.commits.Add(1)
	p.ops.Add(uint64(len(ops)))
	if was := p.bytes.Add(uint64(size)) - uint64(size); was < p.early && was+uint64(size) >= p.early {
		if _, err := p.db.AsyncFlush(); err != nil {
			p.fault.set(fmt.Errorf("writing a table out: %w", err))
			return p.fault.get()
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
