package node

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// names remembers what peers are called: every frame needs it, and base58 is
// dear. The zero value is ready, and safe for concurrent use.
type names struct {
	mu  sync.RWMutex
	ofs map[peer.ID]Peer
	ids map[Peer]peer.ID
}

// maxNamed bounds the peers remembered; strangers come and go.
const maxNamed = 4096

// of is the name of a peer.
func (n *names) of(id peer.ID) Peer {
	n.mu.RLock()
	p, ok := n.ofs[id]
	n.mu.RUnlock()
	if !ok {
		p = Peer(id.String())
		n.remember(id, p)
	}
	return p
}

// id is the peer of a name. The error says why it is none.
func (n *names) id(p Peer) (peer.ID, error) {
	n.mu.RLock()
	id, ok := n.ids[p]
	n.mu.RUnlock()
	if ok {
		return id, nil
	}
	id, err := peer.Decode(string(p))
	if err == nil && Peer(id.String()) == p { // a name may have other forms
		n.remember(id, p)
	}
	return id, err
}

func (n *names) remember(id peer.ID, p Peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ofs == nil || len(n.ofs) >= maxNamed {
		n.ofs, n.ids = make(map[peer.ID]Peer), make(map[Peer]peer.ID)
	}
	n.ofs[id], n.ids[p] = p, id
}
