package edge

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/p2p"
)

// Join implements node.Transport.
func (h *host) Join(topics ...p2p.Topic) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		h.topics[t] = true
	}
	return nil
}

// Publish implements node.Transport.
func (h *host) Publish(t p2p.Topic, data []byte) error {
	h.stats.published.Add(1)
	h.spread(t, data)
	return nil
}

// spread gives gossip to all peers, once.
func (h *host) spread(t p2p.Topic, data []byte) {
	id := h.net.chance.of("gossip", string(t), data)
	h.mu.Lock()
	known := h.seen[id]
	h.seen[id] = true
	var to []*link
	for _, l := range h.links {
		to = append(to, l)
	}
	h.mu.Unlock()
	if known {
		return
	}
	for _, l := range to {
		took, lost := h.fate("gossip", l.to.id, data)
		if lost {
			continue
		}
		time.AfterFunc(took, func() {
			if h.net.reaches(h.id, l.to.id) {
				l.to.hear(h.id, t, data)
			}
		})
	}
}

// hear judges gossip, and passes it on.
func (h *host) hear(from peer.ID, t p2p.Topic, data []byte) {
	id := h.net.chance.of("gossip", string(t), data)
	h.mu.Lock()
	known, joined := h.seen[id], h.topics[t]
	if !known && joined {
		h.seen[id] = true
	}
	h.mu.Unlock()
	if known || !h.enter() {
		return
	}
	defer h.running.Done()
	if !joined {
		h.spread(t, data)
		return
	}
	h.stats.heard.Add(1)
	if h.handler.Gossip(from, t, data) == p2p.Accept {
		h.mu.Lock()
		delete(h.seen, id)
		h.mu.Unlock()
		h.spread(t, data)
	}
}

// Hears implements node.Transport.
func (h *host) Hears(t p2p.Topic) (ids []peer.ID) {
	h.mu.Lock()
	var to []*host
	for _, l := range h.links {
		to = append(to, l.to)
	}
	h.mu.Unlock()
	for _, o := range to {
		o.mu.Lock()
		if o.topics[t] {
			ids = append(ids, o.id)
		}
		o.mu.Unlock()
	}
	return ids
}
