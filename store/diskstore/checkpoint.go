package diskstore

import (
	"fmt"

	"github.com/aweigh/aweigh/store"
)

// Checkpoint makes dir, which must not exist, a copy of the store as of now,
// durable and ready for Open, while commits go on. Tables are hard-linked
// where the file system can, so it costs little time and space, and dir
// should then be copied elsewhere. A dir under its final name is complete: an
// interrupted Checkpoint leaves only dir + ".partial", which the next removes.
func (p *Store) Checkpoint(dir string) error {
	if p.closed.Load() {
		return store.ErrClosed
	}
	if err := p.fault.get(); err != nil {
		return err
	}
	if _, err := p.fs.Stat(dir); err == nil {
		return fmt.Errorf("store: checkpoint: %s exists already", dir)
	}
	if err := p.checkpoint(dir, dir+".partial"); err != nil {
		return fmt.Errorf("store: checkpoint to %s: %w", dir, err)
	}
	return nil
}

func (p *Store) checkpoint(dir, partial string) error {
	if err := p.fs.RemoveAll(partial); err != nil {
		return err
	}
	// The barrier is ours, not pebble.WithFlushedWAL: that one writes to the log
	// past our lock. It also makes the copy of the log complete.
	if err := p.Commit(nil, true); err != nil {
		return err
	}
	if err := p.db.Checkpoint(partial); err != nil {
		return err
	}
	if err := p.fs.Rename(partial, dir); err != nil {
		return err
	}
	parent, err := p.fs.OpenDir(p.fs.PathDir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}
