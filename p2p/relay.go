package p2p

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
)

const (
	maxRelayed       = 64        // hosts that one relay keeps a slot for
	maxCircuits      = 64        // relayed connections of one such host
	relayBufferBytes = 8 << 10   // of one direction of one connection
	slotTime         = time.Hour // after which a slot lapses, if it was not renewed
	slotEvery        = time.Second
)

// relayOptions are libp2p's for circuits through other hosts (Circuit Relay
// v2). Every host can dial through a relay.
func relayOptions(cfg Config, known func(peer.ID) bool) []libp2p.Option {
	options := []libp2p.Option{libp2p.EnableRelay()}
	if len(cfg.Relays) > 0 {
		options = append(options, libp2p.ForceReachabilityPrivate())
	} else {
		options = append(options, libp2p.ForceReachabilityPublic()) // no AutoNAT probes
	}
	if !cfg.Relay {
		return options
	}
	limits := relay.DefaultResources()
	limits.Limit = nil // votes need a connection that lasts: the limits are on peers and their number
	limits.ReservationTTL = slotTime
	limits.MaxReservations, limits.MaxReservationsPerIP, limits.MaxReservationsPerASN = maxRelayed, maxRelayed, maxRelayed
	limits.MaxCircuits = maxCircuits
	limits.BufferSize = relayBufferBytes
	return append(options, libp2p.EnableRelayService(
		relay.WithResources(limits),
		relay.WithACL(ownNetwork(known)),
		relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }), // private networks have relays too
	))
}

// ownNetwork restricts a relay to the peers of its network. It reports whether
// a peer has proven to be of it.
type ownNetwork func(peer.ID) bool

// AllowReserve implements relay.ACLFilter.
func (known ownNetwork) AllowReserve(id peer.ID, _ ma.Multiaddr) bool { return known(id) }

// AllowConnect implements relay.ACLFilter.
func (known ownNetwork) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	return known(from) && known(to)
}

// refuseCircuits accepts no relayed connection unless this host can only be reached
// through relays: they have no address of their own that could be counted.
func (h *Host) refuseCircuits() {
	if len(h.cfg.Relays) == 0 {
		h.host.RemoveStreamHandler(proto.ProtoIDv2Stop)
	}
}

// slot is the way to this host through one relay.
type slot struct {
	through *remote // the connection that the relay uses; a new one needs a new slot
	renew   time.Time
	addrs   []ma.Multiaddr
}

// keepSlots holds a slot at each of Config.Relays that is connected, and
// announces the addresses through them. libp2p's own AutoRelay would announce
// public addresses only, and search for relays among non-members.
func (h *Host) keepSlots() {
	if len(h.cfg.Relays) == 0 {
		return
	}
	announce, err := h.host.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated))
	if err != nil {
		h.cfg.Log.Error("cannot announce relays", "error", err)
		return
	}
	defer announce.Close()
	tick := time.NewTicker(slotEvery)
	defer tick.Stop()
	slots := make(map[peer.ID]slot)
	for {
		changed := false
		for _, r := range h.cfg.Relays {
			changed = h.keepSlot(slots, r.ID) || changed
		}
		if changed {
			var all []ma.Multiaddr
			for _, s := range slots {
				all = append(all, s.addrs...)
			}
			slices.SortFunc(all, ma.Multiaddr.Compare)
			_ = announce.Emit(event.EvtAutoRelayAddrsUpdated{RelayAddrs: all})
		}
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
	}
}

// keepSlot gets or renews one slot if that is due, and reports whether the way
// through it has changed.
func (h *Host) keepSlot(slots map[peer.ID]slot, id peer.ID) (changed bool) {
	r, now := h.peers.find(id), time.Now()
	old, had := slots[id]
	if r == nil {
		delete(slots, id)
		return had
	}
	if had && old.through == r && now.Before(old.renew) {
		return false
	}
	ctx, cancel := context.WithTimeout(h.ctx, dialTime)
	defer cancel()
	got, err := client.Reserve(ctx, h.host, peer.AddrInfo{ID: id})
	if err != nil {
		h.cfg.Log.Debug("no slot at the relay", "relay", id, "error", err)
		delete(slots, id)
		return had
	}
	fresh := slot{through: r, renew: now.Add(slotTime / 2)}
	for _, a := range got.Addrs {
		if via, err := ma.NewMultiaddr(fmt.Sprintf("%s/p2p-circuit", a)); err == nil {
			fresh.addrs = append(fresh.addrs, via)
		}
	}
	slots[id] = fresh
	return !had || !slices.EqualFunc(old.addrs, fresh.addrs, ma.Multiaddr.Equal)
}
