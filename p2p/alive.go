package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
)

// A process that dies without closing its connections is noticed by TCP at
// once, if its machine lives, but by QUIC only after half a minute, and for a long
// time by neither if the machine or the cable failed. This host asks members for a
// sign of life and redials, so that node.Replica.Reach soon reports an anchor that is away.
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

// checkAlive asks a member for a sign of life. On a busy machine an answer may take longer than it should,
// while frames come.
func (h *Host) checkAlive(id peer.ID) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(h.ctx, aliveWithin)
	defer cancel()
	// Ping closes its channel without a word when ctx ends.
	if r, ok := <-ping.Ping(ctx, h.host, id); (!ok || r.Error != nil) && h.ctx.Err() == nil && !h.heardSince(id, begin) {
		h.count.Silent.Add(1)
		h.host.Network().ClosePeer(id)
	}
}

// heardSince reports whether a frame of a peer came since then.
func (h *Host) heardSince(id peer.ID, then time.Time) bool {
	r := h.peers.find(id)
	return r != nil && r.heard.Load() > int64(then.Sub(r.since))
}
