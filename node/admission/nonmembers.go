package admission

import (
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/node/machine"
)

// NonMembers are the budgets that peers that are no anchors share, in all scopes of a node. Safe for concurrent use.
type NonMembers struct {
	limiter    *rate.Limiter
	neighbours *rate.Limiter                              // of peers that are anchors in another scope
	readers    *rate.Limiter                              // of peers that the policy lists as readers
	reads      atomic.Pointer[func(machine.Peer) bool]    // whether a peer is one of these
	homes      atomic.Pointer[map[machine.Peer]*Accounts] // per anchor: those of a scope where it is one
	turn       sync.Mutex                                 // held while a frame of theirs is verified: one at a time
}

// NewNonMembers returns the budget, unspent.
func NewNonMembers() *NonMembers {
	s := &NonMembers{
		limiter: rate.NewLimiter(allNonMembers, allNonMembers), readers: rate.NewLimiter(allReaders, allReaders),
		neighbours: rate.NewLimiter(allNeighbours, allNeighbours),
	}
	s.homes.Store(new(map[machine.Peer]*Accounts))
	return s
}

// SetHomes publishes the peers that are anchors, each with the accounts of a scope where it is one.
func (s *NonMembers) SetHomes(homes map[machine.Peer]*Accounts) { s.homes.Store(&homes) }

// SetReaders sets which peers the policy lists as readers, where it does not let all peers read. reads is called for
// each frame of a peer.
func (s *NonMembers) SetReaders(reads func(machine.Peer) bool) { s.reads.Store(&reads) }

// home returns the accounts of a scope where a peer is an anchor, nil if it is none anywhere.
func (s *NonMembers) home(p machine.Peer) *Accounts { return (*s.homes.Load())[p] }

// shared returns the limiter that a peer that is no anchor shares with others.
func (s *NonMembers) shared(p machine.Peer) *rate.Limiter {
	if s.home(p) != nil {
		return s.neighbours
	}
	if reads := s.reads.Load(); reads != nil && (*reads)(p) {
		return s.readers
	}
	return s.limiter
}
