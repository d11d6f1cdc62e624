package p2p

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// maxBlocked bounds how many peers are blocked at once. An attacker can mint
// identities; blocking is a courtesy to the processor, not a defence.
const maxBlocked = 4096

// gate refuses connections with blocked peers. It is libp2p's ConnectionGater.
type gate struct {
	refusals *atomic.Uint64

	mu    sync.Mutex
	until map[peer.ID]time.Time
}

func newGate(refusals *atomic.Uint64) *gate {
	return &gate{refusals: refusals, until: make(map[peer.ID]time.Time)}
}

// block refuses id for d.
func (g *gate) block(id peer.ID, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.until) >= maxBlocked {
		for other, t := range g.until {
			if t.Before(now) || len(g.until) >= maxBlocked {
				delete(g.until, other)
			}
		}
	}
	g.until[id] = now.Add(d)
}

// allows reports whether id is not blocked.
func (g *gate) allows(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.until[id]
	if ok && time.Now().After(t) {
		delete(g.until, id)
		ok = false
	}
	return !ok
}

// admit is allows, counted.
func (g *gate) admit(id peer.ID) bool {
	ok := g.allows(id)
	if !ok {
		g.refusals.Add(1)
	}
	return ok
}

func (g *gate) InterceptPeerDial(id peer.ID) bool                               { return g.admit(id) }
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool                    { return true }
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool                     { return true }
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
func (g *gate) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.admit(id)
}
