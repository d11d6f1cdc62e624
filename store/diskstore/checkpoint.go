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
func (s *Store) Checkpoint(dir string) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := s.fault.get(); err != nil {
		return err
	}
	if _, err := s.fs.Stat(dir); err == nil {
		return fmt.Errorf("store: checkpoint: %s exists already", dir)
	}
	if err := s.checkpoint(dir, dir+".partial"); err != nil {
		return fmt.Errorf("store: checkpoint to %s: %w", dir, err)
	}
	return nil
}

func (s *Store) checkpoint(dir, partial string) error {
	if err := s.fs.RemoveAll(partial); err != nil {
		return err
	}
	// The barrier is ours, not pebble.WithFlushedWAL: that one writes to the log
	// past our lock. It also makes the copy of the log complete.
	if err := s.Commit(nil, true); err != nil {
		return err
	}
	if err := s.db.Checkpoint(partial); err != nil {
		return err
	}
	if err := s.fs.Rename(partial, dir); err != nil {
		return err
	}
	parent, err := s.fs.OpenDir(s.fs.PathDir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}
