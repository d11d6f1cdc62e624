package node

import (
	"context"
	"slices"
	"time"

	"github.com/aweigh/aweigh/node/machine"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Send implements carrier. A peer that may not read the scope gets nothing but requests for blocks: the state of a node
// that is behind does not know who may read by now.
func (n *Replica) Send(to machine.Peer, frame []byte) {
	if class := machine.FrameClassOf(frame); !class.Is(machine.ClassCatchUp) && !n.mayRead(to) {
		if class.Is(machine.ClassContent) { // it was read all the same
			n.budgets.Sent(to, frame)
		}
		n.measured.unread.Add(1)
		return
	}
	n.budgets.Sent(to, frame)
	if id, err := n.called.id(to); err == nil {
		count(&n.measured.sent, frame)
		n.host.Send(id, n.address.on(frame))
	}
}

// tagGossip begins a frame that holds gossip of a scope that not every peer may read: the scope's address follows, and
// then what would be published.
const tagGossip = 'G'

// public reports whether all that hear gossip may hear that of the scope: the peers that may read the root scope.
func (n *Replica) public() bool { return n == n.of.root || n.epochs.epoch().Policy.Open() }

// Gossip implements carrier. The topics of scopes share what libp2p's pubsub spreads, so gossip of a scope that is not
// public goes to the connected peers that may read the scope, and not further.
func (n *Replica) Gossip(frame []byte) {
	count(&n.measured.sent, frame)
	if !n.public() {
		sent := append([]byte{tagGossip}, n.address.on(frame)...)
		for _, id := range n.hears() {
			n.host.Send(id, sent)
		}
		return
	}
	if err := n.host.Publish(n.topic(), frame); err != nil {
		n.log.Debug("gossip not published", "error", err)
	}
}

// hears returns the peers to which gossip of the scope goes.
func (n *Replica) hears() (ids []peer.ID) {
	if n.public() {
		return n.host.Hears(n.topic())
	}
	for _, info := range n.host.Peers() {
		if n.mayRead(n.called.of(info.ID)) {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// Followed implements carrier.
func (n *Replica) Followed() bool {
	if now := time.Now(); now.Sub(n.asked) > time.Second {
		if now.Sub(n.asked) > 5*time.Second { // the last answer is too old to be relied on
			n.followed.Store(true)
		}
		n.asked = now
		n.of.tasks.start("followers", func(context.Context) {
			anchors := n.epochs.checker().Anchors
			n.followed.Store(slices.ContainsFunc(n.hears(), func(id peer.ID) bool {
				_, ok := anchors[n.called.of(id)]
				return !ok
			}))
		})
	}
	return n.followed.Load()
}
