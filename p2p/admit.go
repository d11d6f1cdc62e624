package p2p

import (
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A peer of the network that Config.Admit does not admit gets no gossip. pubsub meets it all the same, since its own
// gossip is taken: so a low score keeps messages out of its queue, and its stream waits with what pubsub says of
// itself.

// admitAgain is how often Config.Admit is asked about a peer that is not admitted.
const admitAgain = 250 * time.Millisecond

// admittedTag marks admitted peers in libp2p's connection manager, so that others go first where room is short.
const admittedTag = "aweigh-admitted"

// admits reports whether a peer is admitted, and remembers that it is.
func (h *Host) admits(r *remote) bool {
	if !r.admitted.Load() && h.cfg.Admit(r.id) {
		r.admitted.Store(true)
		h.host.ConnManager().TagPeer(r.id, admittedTag, 100)
	}
	return r.admitted.Load()
}

// awaitAdmission waits until a peer is admitted. It is false if the peer goes before that.
func (h *Host) awaitAdmission(r *remote) bool {
	if h.admits(r) {
		return true
	}
	ticker := time.NewTicker(admitAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if h.admits(r) {
				return true
			}
		case <-r.ctx.Done():
			return false
		}
	}
}

// admittedOnly is a stream of pubsub to a peer. The first write waits until the peer is admitted.
type admittedOnly struct {
	network.Stream
	h *Host
	r *remote
}

// gossipWrite is how long a write to a peer that was admitted meanwhile may take, as pubsub has it.
const gossipWrite = 30 * time.Second

// Write implements network.Stream.
func (s admittedOnly) Write(b []byte) (int, error) {
	if !s.r.admitted.Load() {
		if !s.h.awaitAdmission(s.r) {
			return 0, fmt.Errorf("%w: %s", ErrNotConnected, s.r.id)
		}
		if err := s.SetWriteDeadline(time.Now().Add(gossipWrite)); err != nil { // pubsub's may have passed
			return 0, err
		}
	}
	return s.Stream.Write(b)
}
