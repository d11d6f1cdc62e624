package node

import (
	"errors"
	"sync/atomic"

	"github.com/aweigh/aweigh/store"
)

// durable hides the commits of a scope from readers until they are on disk and everything around the machine knows of
// them (P8); the store shows a batch before that. If a reader or a peer saw a commit that a power failure then lost,
// this node could contradict itself.
type durable struct {
	turn    chan struct{} // holds a token during a commit, or while a snapshot is taken; before the lock of views
	commits atomic.Uint64 // that have returned
	failed  bool          // a commit did: the store may show what is not on disk; with the turn
}

// commit carries out a commit, and calls know before the commit can be read. After a commit that fails nothing more is
// read.
func (d *durable) commit(write func() error, know func()) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	err := write()
	if d.failed = d.failed || err != nil; err == nil {
		d.commits.Add(1)
		know()
	}
	return err
}

// snapshot returns the present state of a store, between two commits of the scope. The error is ErrStopped after a
// commit that failed.
func (d *durable) snapshot(s store.Store) (store.Snapshot, error) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.failed {
		return nil, ErrStopped
	}
	return s.Snapshot(), nil
}

// between reads a store between two commits of a scope.
type between struct {
	store store.Store
	*durable
}

// Get implements kv.Reader.
func (b between) Get(key []byte) ([]byte, bool, error) {
	s, err := b.snapshot(b.store)
	if err != nil {
		return nil, false, err
	}
	value, ok, err := s.Get(key)
	return value, ok, errors.Join(err, s.Close())
}

// Scan implements kv.Reader.
func (b between) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	s, err := b.snapshot(b.store)
	if err != nil {
		return err
	}
	return errors.Join(s.Scan(from, to, reverse, visit), s.Close())
}
