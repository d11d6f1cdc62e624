package admission

import (
	"sync"

	"github.com/aweigh/aweigh/node/machine"
)

// expected counts the questions that each peer may still answer. So a peer cannot make this node verify blocks that it
// did not ask for, and answers that the node asks for many times a second do not count as a flood.
type expected struct {
	mu    sync.Mutex
	peers map[machine.Peer]int
}

// maxExpected bounds the answers expected of one peer; older ones were lost.
const maxExpected = 4

func (e *expected) add(p machine.Peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peers == nil || len(e.peers) > machine.MaxHelped {
		e.peers = make(map[machine.Peer]int)
	}
	e.peers[p] = min(e.peers[p]+1, maxExpected)
}

// freeMemory frees the memory of peers of which nothing is expected.
func (e *expected) freeMemory() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.peers) == 0 {
		e.peers = nil
	}
}

// take reports whether an answer of the peer is expected, and counts it.
func (e *expected) take(p machine.Peer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peers[p] == 0 {
		return false
	}
	if e.peers[p]--; e.peers[p] == 0 {
		delete(e.peers, p)
	}
	return true
}
