package node

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// views lets reads between two commits share a snapshot of the store and the state
// in it: to take one, to decode its head and to close it costs more than to
// read a key.
type views struct {
	store   store.Store
	scope   aweigh.ScopeID
	given   func() []scope.Delegation // that are known
	vacant  *atomic.Bool              // there is no state yet
	pin     *pinned                   // what is to come first
	counted rangeCounts

	mu     sync.Mutex
	newest *shared // held for the next who asks; nil if nobody did since the last block
	closed bool    // none is held any more
}

// shared is a state that is read by several.
type shared struct {
	*scope.State
	snapshot store.Snapshot
	commits  uint64 // that it shows at least
	uses     int
}

// open gives a state that shows every commit that has returned, if the node may serve it.
func (v *views) open() (*shared, error) {
	if v.pin != nil {
		if err := v.pin.holds(); err != nil {
			return nil, err
		}
	}
	return v.own()
}

// own is open for the node's own use: it follows a history before it has come to the trusted roster.
func (v *views) own() (*shared, error) {
	commits := v.store.Commits() // before the snapshot, so that it cannot promise too much
	if v.vacant != nil && v.vacant.Load() {
		return nil, ErrInstalling
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.newest; s != nil && s.commits >= commits {
		s.uses++
		return s, nil
	}
	snapshot := v.store.Snapshot()
	state, err := scope.Open(snapshot, v.scope)
	if err == nil {
		state, err = state.Knowing(v.given()).Naming()
	}
	if err != nil {
		if _, replacing, _ := snapshot.Get(keyInstalling(v.scope)); replacing {
			err = ErrInstalling
		}
		return nil, errors.Join(err, snapshot.Close())
	}
	s := &shared{State: state, snapshot: snapshot, commits: commits, uses: 1}
	if !v.closed {
		err = v.let()
		v.newest = s
		s.uses++
	}
	return s, err
}

// release is for one who has read.
func (v *views) release(s *shared) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return s.release()
}

func (s *shared) release() error {
	if s.uses--; s.uses > 0 {
		return nil
	}
	return s.snapshot.Close()
}

// expire lets go of a state that is no longer the newest, so that what it holds of
// the disk is given back though nobody reads.
func (v *views) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.let() // a snapshot in memory has nothing to fail at
}

// close is for the end: from now on no state is held that nobody reads.
func (v *views) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	return v.let()
}

func (v *views) let() error {
	s := v.newest
	if s == nil {
		return nil
	}
	v.newest = nil
	return s.release()
}
