package node

import (
	"context"
	"slices"
	"time"

	"github.com/aweigh/aweigh/node/machine"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Send implements carrier.
func (n *Replica) Send(to machine.Peer, frame []byte) {
	n.budgets.Sent(to, frame)
	if id, err := n.called.id(to); err == nil {
		count(&n.measured.sent, frame)
		n.host.Send(id, n.address.on(frame))
	}
}

// Gossip implements carrier.
func (n *Replica) Gossip(frame []byte) {
	count(&n.measured.sent, frame)
	if err := n.host.Publish(n.topic(), frame); err != nil {
		n.log.Debug("gossip not published", "error", err)
	}
}

// Followed implements carrier.
func (n *Replica) Followed() bool {
	if now := time.Now(); now.Sub(n.asked) > time.Second {
		if now.Sub(n.asked) > 5*time.Second { // the last answer is too old to be relied on
			n.followed.Store(true)
		}
		n.asked = now
		n.of.tasks.Go("who follows", func(context.Context) {
			anchors := n.epochs.checker().Anchors
			n.followed.Store(slices.ContainsFunc(n.host.Hears(n.topic()), func(id peer.ID) bool {
				_, ok := anchors[n.called.of(id)]
				return !ok
			}))
		})
	}
	return n.followed.Load()
}
