package node

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// views makes reads between two commits share a snapshot of the store and its state: to take a snapshot, decode its
// head and close it costs more than to read a key.
type views struct {
	store   store.Store
	scope   aweigh.ScopeID
	given   func() scope.Territory // as far as it is known
	final   func() *scope.State    // of the machine, when it last told
	vacant  *atomic.Bool           // there is no state yet
	changes atomic.Bool            // a snapshot takes the place of the state
	pin     *pinned                // nothing is served before it is reached
	counted rangeCounts
	durable durable

	mu     sync.Mutex
	newest *shared // held for the next reader; nil if none was opened since the last block
	read   bool    // a view was opened since the newest was prepared
	closed bool    // no state is kept for readers any more
}

// shared is a state that several readers use.
type shared struct {
	*scope.State
	snapshot store.Snapshot
	commits  uint64 // that it shows at least
	uses     int
}

// open returns a state that shows every commit that has returned, if the node may serve it.
func (v *views) open() (*shared, error) {
	if v.pin != nil {
		if err := v.pin.holds(); err != nil {
			return nil, err
		}
	}
	return v.own()
}

// own is open for the node's own use: the node follows a history before it has reached the trusted roster.
func (v *views) own() (*shared, error) {
	if v.vacant != nil && v.vacant.Load() {
		return nil, ErrInstalling
	}
	if s := v.held(); s != nil {
		return s, nil
	}
	v.durable.turn <- struct{}{}
	defer func() { <-v.durable.turn }()
	if s := v.held(); s != nil { // another reader, or the commit that was under way, was faster
		return s, nil
	}
	if v.durable.failed {
		return nil, ErrStopped
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s, err := v.take()
	if s != nil {
		s.uses++
	}
	return s, err
}

// held returns the newest state if it shows every commit that has returned, and nil otherwise.
func (v *views) held() *shared {
	commits := v.durable.commits.Load()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read = true
	s := v.newest
	if s == nil || s.commits < commits {
		return nil
	}
	s.uses++
	return s
}

// prepare opens the state after a commit, before the next commit begins, so that readers need not wait for that. It
// does so only if there was a reader since the last time. A state that is not read then is held until the next block.
func (v *views) prepare() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.read || v.closed || v.vacant != nil && v.vacant.Load() {
		return
	}
	v.read = false
	_, _ = v.take() // the next reader gets the error
}

// take makes the present state the newest. No commit is under way.
func (v *views) take() (*shared, error) {
	commits := v.durable.commits.Load()
	snapshot := v.store.Snapshot()
	if v.changes.Load() { // delegations of another state may be known than of the one that is there
		return nil, errors.Join(ErrInstalling, snapshot.Close())
	}
	state, err := scope.Open(snapshot, v.scope)
	if err == nil {
		state, err = state.Knowing(v.given()).Sharing(v.final()).Naming()
	}
	if err != nil {
		if _, replacing, _ := snapshot.Get(machine.KeyInstalling(v.scope)); replacing {
			err = ErrInstalling
		}
		return nil, errors.Join(err, snapshot.Close())
	}
	s := &shared{State: state, snapshot: snapshot, commits: commits}
	if !v.closed {
		err = v.let()
		v.newest = s
		s.uses++
	}
	return s, err
}

// release ends the use of a state by one reader.
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

// expire releases a state that is no longer the newest, so that its disk space is freed even if there are no readers.
func (v *views) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.newest; s != nil && s.commits < v.durable.commits.Load() {
		_ = v.let() // a snapshot in memory has nothing to fail at
	}
}

// close ends the keeping of states: from now on a state is closed when its last reader releases it.
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
