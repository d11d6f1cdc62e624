package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
)

// A process that dies without closing its connections is noticed by TCP at
// once, if its machine lives, but by QUIC only after half a minute, and by
// nothing at all for long if the machine or the cable went. Members are asked
// for a sign of life, so that who is reachable is known soon, and redialled.
const (
	aliveEvery  = 3 * time.Second
	aliveWithin = 5 * time.Second
)

// watchMembers disconnects members that give no sign of life.
func (h *Host) watchMembers() {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
		}
		for _, p := range h.Peers() {
			if h.dialer.isMember(p.ID) {
				h.spawn(func() { h.checkAlive(p.ID) })
			}
		}
	}
}

func (h *Host) checkAlive(id peer.ID) {
	ctx, cancel := context.WithTimeout(h.ctx, aliveWithin)
	defer cancel()
	// Ping closes its channel without a word when ctx ends.
	if r, ok := <-ping.Ping(ctx, h.host, id); (!ok || r.Error != nil) && h.ctx.Err() == nil {
		h.count.Silent.Add(1)
		h.host.Network().ClosePeer(id)
	}
}
