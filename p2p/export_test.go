package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Hint adds addresses of a peer that were learned by other means. A member
// that is not connected is dialled at once.
func (h *Host) Hint(info peer.AddrInfo) { h.dialer.seek([]peer.AddrInfo{info}) }

// Block closes the connections of a peer and refuses new ones for d.
func (h *Host) Block(id peer.ID, d time.Duration) {
	h.gate.block(id, d)
	_ = h.host.Network().ClosePeer(id)
}

// Leave ends what Join began. Topics that are not joined are ignored.
func (h *Host) Leave(topics ...Topic) {
	g := h.gossip
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range topics {
		if !g.joined[t] {
			continue
		}
		delete(g.joined, t)
		b := bucket(t)
		if g.members[b]--; g.members[b] == 0 {
			g.cancels[b]()
			g.cancels[b] = nil
		}
	}
}
