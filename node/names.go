package node

import (
	"sync"

	"github.com/aweigh/aweigh/node/machine"

	"github.com/libp2p/go-libp2p/core/peer"
)

// names caches the names of peers: every frame needs one, and base58 is slow. The zero value is ready, and safe for
// concurrent use.
type names struct {
	mu  sync.RWMutex
	ofs map[peer.ID]machine.Peer
	ids map[machine.Peer]peer.ID
}

// maxNamed bounds the cached names: peers that are no anchors come and go.
const maxNamed = 4096

// of returns the name of a peer.
func (n *names) of(id peer.ID) machine.Peer {
	n.mu.RLock()
	p, ok := n.ofs[id]
	n.mu.RUnlock()
	if !ok {
		p = machine.Peer(id.String())
		n.remember(id, p)
	}
	return p
}

// id returns the peer of a name. The error says why the text is no name.
func (n *names) id(p machine.Peer) (peer.ID, error) {
	n.mu.RLock()
	id, ok := n.ids[p]
	n.mu.RUnlock()
	if ok {
		return id, nil
	}
	id, err := peer.Decode(string(p))
	if err == nil && machine.Peer(id.String()) == p { // a name may have other forms
		n.remember(id, p)
	}
	return id, err
}

func (n *names) remember(id peer.ID, p machine.Peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ofs == nil || len(n.ofs) >= maxNamed {
		n.ofs, n.ids = make(map[peer.ID]machine.Peer), make(map[machine.Peer]peer.ID)
	}
	n.ofs[id], n.ids[p] = p, id
}
