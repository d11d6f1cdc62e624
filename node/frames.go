package node

import (
	"context"
	"errors"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
)

// addressee returns the replica that a frame is for, and the frame without its address; nil if this node has no
// replica in that scope.
func (n *Node) addressee(frame []byte) (*Replica, []byte) {
	to, rest, ok := addressed(frame)
	if !ok {
		return n.root, frame
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.replicas[to], rest
}

func (n *Node) frame(from peer.ID, frame []byte) {
	gossip := len(frame) > 0 && frame[0] == tagGossip
	if gossip {
		frame = frame[1:]
	}
	p, rest := n.addressee(frame)
	if p == nil { // it may be founded in a block that is not here yet
		n.root.note(machine.Dropped{From: n.called.of(from), Class: refusal.Stale, Why: "a frame of a scope that this node does not follow"})
		return
	}
	if gossip {
		p.gossip(from, rest)
		return
	}
	p.frame(from, rest)
}

// errNoPart answers requests about a scope that this node does not follow.
var errNoPart = errors.New("node: no part in this scope here")

func (n *Node) request(ctx context.Context, from peer.ID, req []byte) ([]byte, error) {
	if body, ok := stateRequest(req); ok {
		return n.serveStates(ctx, n.called.of(from), body)
	}
	p, rest := n.addressee(req)
	if p == nil {
		return nil, errNoPart
	}
	return p.request(ctx, from, rest)
}

func (n *Node) gossip(from peer.ID, topic p2p.Topic, data []byte) p2p.Verdict {
	n.mu.RLock()
	p := n.topics[topic]
	n.mu.RUnlock()
	if p == nil {
		return p2p.Ignore
	}
	return p.gossip(from, data)
}

func (n *Node) peer(id peer.ID, up bool) {
	n.states.linked(id, up)
	for _, p := range n.parts() {
		if !up {
			p.readers.parted(id, n.called.of(id))
		}
		p.peer(id, up)
	}
}
