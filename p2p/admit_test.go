package p2p

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestGossipDoesNotWaitForAdmission: what is published before a peer is admitted is not kept for it, and it is not
// among those that hear gossip; what is published later reaches it.
func TestGossipDoesNotWaitForAdmission(t *testing.T) {
	var open atomic.Bool
	var asked atomic.Int64
	var ears listener
	var early atomic.Int64
	h := start(t, func(c *Config) {
		c.Admit = func(peer.ID) bool { asked.Add(1); return open.Load() }
	})
	stranger := start(t, func(c *Config) {
		c.Handler.Gossip = func(from peer.ID, topic Topic, data []byte) Verdict {
			if string(data[:5]) == "early" {
				early.Add(1)
			}
			return ears.gossip(from, topic, data)
		}
	})
	join(t, h, stranger)
	for _, x := range []*Host{h, stranger} {
		if err := x.Join("t"); err != nil {
			t.Fatal(err)
		}
	}
	subscribed := func() bool { return slices.Contains(h.gossip.topics[bucket("t")].ListPeers(), stranger.ID()) }
	testwait.Until(t, "the host knows what the stranger joined", subscribed)
	testwait.Until(t, "it opened its stream", func() bool { return asked.Load() > 0 })
	if slices.Contains(h.Hears("t"), stranger.ID()) {
		t.Error("a stranger is among those that hear gossip")
	}
	for i := range 50 {
		if err := h.Publish("t", fmt.Appendf(nil, "early %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * heartbeat) // in which pubsub would pass on more
	if ears.heard.Load() > 0 {
		t.Error("a stranger got gossip")
	}
	open.Store(true)
	later := func() bool { return ears.heard.Load() > early.Load() }
	publish(t, h, "t", "late", "a peer that is admitted hears gossip", later)
	if early.Load() > 0 {
		t.Errorf("%d messages waited for the peer to be admitted", early.Load())
	}
	if h.host.ConnManager().GetTagInfo(stranger.ID()).Tags[admittedTag] == 0 {
		t.Error("a peer that is admitted goes like any other where room is short")
	}
	r := h.peers.find(stranger.ID())
	open.Store(false)
	if h.Disconnect(stranger.ID()); r.admitted.Load() { // another connection may outlive this one
		t.Error("a peer that is disconnected stays admitted")
	}
	open.Store(true)
	hears := func() bool { return slices.Contains(h.Hears("t"), stranger.ID()) }
	testwait.Until(t, "it comes again, and is among those that hear gossip", hears)
}
