package p2p

import (
	"fmt"
	"sync"
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

// awaitAdmission waits until a peer is admitted. It is false if the peer goes before that, or gone is closed.
func (h *Host) awaitAdmission(r *remote, gone <-chan struct{}) bool {
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
		case <-gone:
			return false
		}
	}
}

// admittedOnly is a stream of pubsub to a peer. The first write waits until the peer is admitted. pubsub reads from the
// stream all the time, and resets it if the peer does: that ends the wait, or a peer that resets the streams that it
// gets would make one write after another wait.
type admittedOnly struct {
	network.Stream
	h    *Host
	r    *remote
	gone chan struct{} // closed when the stream is reset or closed
	once *sync.Once
}

func newAdmittedOnly(s network.Stream, h *Host, r *remote) admittedOnly {
	return admittedOnly{s, h, r, make(chan struct{}), new(sync.Once)}
}

// Reset implements network.Stream.
func (s admittedOnly) Reset() error {
	s.once.Do(func() { close(s.gone) })
	return s.Stream.Reset()
}

// ResetWithError implements network.Stream.
func (s admittedOnly) ResetWithError(code network.StreamErrorCode) error {
	s.once.Do(func() { close(s.gone) })
	return s.Stream.ResetWithError(code)
}

// Close implements network.Stream.
func (s admittedOnly) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.Stream.Close()
}

// gossipWrite is how long a write to a peer that was admitted meanwhile may take, as pubsub has it.
const gossipWrite = 30 * time.Second

// Write implements network.Stream.
func (s admittedOnly) Write(b []byte) (int, error) {
	if !s.r.admitted.Load() {
		if !s.h.awaitAdmission(s.r, s.gone) {
			return 0, fmt.Errorf("%w: %s", ErrNotConnected, s.r.id)
		}
		if err := s.SetWriteDeadline(time.Now().Add(gossipWrite)); err != nil { // pubsub's may have passed
			return 0, err
		}
	}
	return s.Stream.Write(b)
}
