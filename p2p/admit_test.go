package p2p

import (
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestStreamsThatAreResetDoNotWait: a peer that is not admitted, resets each stream of gossip and offers gossip anew
// makes at most one write wait for its admission.
func TestStreamsThatAreResetDoNotWait(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Admit = func(peer.ID) bool { return false } })
	if err := h.Join("t"); err != nil { // so there is something to write
		t.Fatal(err)
	}
	nonMember := start(t, nil)
	spoken := []protocol.ID{pubsub.GossipSubID_v13, pubsub.GossipSubID_v12, pubsub.GossipSubID_v11, pubsub.GossipSubID_v10}
	var resets atomic.Int64
	for _, name := range spoken {
		nonMember.host.SetStreamHandler(name, func(s network.Stream) {
			_ = s.Reset()
			resets.Add(1)
		})
	}
	join(t, h, nonMember)
	testwait.Until(t, "the host opened a stream", func() bool { return resets.Load() > 0 })
	offer := func(offered bool) {
		names := []protocol.ID{h.proofID}
		if offered {
			names = append(names, spoken...)
		}
		testwait.Until(t, "the host knows what the non-member offers", func() bool {
			pushesIdentify(t, nonMember.host, h.ID(), names...) // libp2p pushes as well, and less
			some, err := h.host.Peerstore().SupportsProtocols(nonMember.ID(), spoken...)
			return err == nil && len(some) > 0 == offered
		})
	}
	for range 12 { // pubsub itself opens four streams again
		before := resets.Load()
		testwait.Until(t, "the host opens another stream", func() bool {
			offer(false)
			offer(true)
			return resets.Load() > before
		})
	}
	testwait.Until(t, "few writes wait", func() bool {
		var all strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
			t.Fatal(err)
		}
		return strings.Count(all.String(), ".(*Host).awaitAdmission(") <= 1
	})
}

// TestGossipDoesNotWaitForAdmission: what is published before a peer is admitted is not kept for it, and it is not
// among those that hear gossip; what is published later reaches it.
func TestGossipDoesNotWaitForAdmission(t *testing.T) {
	t.Parallel()
	var open atomic.Bool
	var asked atomic.Int64
	var ears listener
	var early atomic.Int64
	h := start(t, func(c *Config) {
		c.Admit = func(peer.ID) bool { asked.Add(1); return open.Load() }
	})
	nonMember := start(t, func(c *Config) {
		c.Handler.Gossip = func(from peer.ID, topic Topic, data []byte) Verdict {
			if string(data[:5]) == "early" {
				early.Add(1)
			}
			return ears.gossip(from, topic, data)
		}
	})
	join(t, h, nonMember)
	for _, x := range []*Host{h, nonMember} {
		if err := x.Join("t"); err != nil {
			t.Fatal(err)
		}
	}
	subscribed := func() bool { return slices.Contains(h.gossip.topics[bucket("t")].ListPeers(), nonMember.ID()) }
	testwait.Until(t, "the host knows what the non-member joined", subscribed)
	testwait.Until(t, "it opened its stream", func() bool { return asked.Load() > 0 })
	if slices.Contains(h.Hears("t"), nonMember.ID()) {
		t.Error("a non-member is among those that hear gossip")
	}
	for i := range 50 {
		if err := h.Publish("t", fmt.Appendf(nil, "early %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * heartbeat) // in which pubsub would pass on more
	if ears.heard.Load() > 0 {
		t.Error("a non-member got gossip")
	}
	open.Store(true)
	later := func() bool { return ears.heard.Load() > early.Load() }
	publish(t, h, "t", "late", "a peer that is admitted hears gossip", later)
	if early.Load() > 0 {
		t.Errorf("%d messages waited for the peer to be admitted", early.Load())
	}
	if h.host.ConnManager().GetTagInfo(nonMember.ID()).Tags[admittedTag] == 0 {
		t.Error("a peer that is admitted goes like any other where room is short")
	}
	r := h.peers.find(nonMember.ID())
	open.Store(false)
	if h.Disconnect(nonMember.ID()); r.admitted.Load() { // another connection may outlive this one
		t.Error("a peer that is disconnected stays admitted")
	}
	open.Store(true)
	hears := func() bool { return slices.Contains(h.Hears("t"), nonMember.ID()) }
	testwait.Until(t, "it comes again, and is among those that hear gossip", hears)
}
