package node

import "sync"

// expected counts the questions that peers may still answer, so that nobody can make this node verify
// blocks that it did not ask for, and what it asks for many times a second counts as no flood.
type expected struct {
	mu    sync.Mutex
	peers map[Peer]int
}

// maxExpected bounds the answers expected of one peer; older ones were lost.
const maxExpected = 4

func (e *expected) add(p Peer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peers == nil || len(e.peers) > maxHelped {
		e.peers = make(map[Peer]int)
	}
	e.peers[p] = min(e.peers[p]+1, maxExpected)
}

// expect notes that a peer is asked something.
func (n *Part) expect(of Peer, f []byte) {
	if len(f) == 0 {
		return
	}
	switch f[0] {
	case tagCatchUp:
		n.expected.add(of)
	case tagAsk:
		n.pledges.add(of)
	}
}

// rest gives back the room in which nothing is expected.
func (e *expected) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.peers) == 0 {
		e.peers = nil
	}
}

// take reports whether an answer of the peer is expected, and counts it.
func (e *expected) take(p Peer) bool {
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
