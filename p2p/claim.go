package p2p

import (
	"errors"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// What one peer may have waiting before it proves. An honest peer's streams are those that overtook its proof, and it
// asks for one proof at a time; the others are those that it gave up a moment ago.
const (
	waitingMax = 32 // streams of frames, requests and gossip
	answersMax = 4  // proofs that are being taken
)

// lookAtWaiting is how often a stream that waits is looked at, as its peer may have given it up.
const lookAtWaiting = 100 * time.Millisecond

// claim is a connected peer that has not proved yet. One that has gone has a claim while something holds it.
type claim struct {
	since   time.Time // the peer connected; zero: libp2p has not told so, or has told that the peer went
	holders int
	asking  bool
	settled chan struct{} // closed when the peer proved, or went

	streams *rate.Limiter // that the peer opens
	waiting chan struct{} // a token per stream that waits
	answers chan struct{} // a token per proof that is being taken
}

// claimOf is the claim of a peer that is no remote. t.mu is held.
func (t *table) claimOf(id peer.ID) *claim {
	c := t.claims[id]
	if c == nil {
		c = &claim{
			settled: make(chan struct{}), streams: newStreams(),
			waiting: make(chan struct{}, waitingMax), answers: make(chan struct{}, answersMax),
		}
		t.claims[id] = c
	}
	return c
}

// claim is the remote of a peer that has proved, or the claim of one that has not, which the caller must give back.
func (t *table) claim(id peer.ID) (*remote, *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.remotes[id]; r != nil {
		return r, nil
	}
	c := t.claimOf(id)
	c.holders++
	return nil, c
}

// giveBack ends what claim began.
func (t *table) giveBack(id peer.ID, c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.holders--; c.holders == 0 && c.since.IsZero() && t.claims[id] == c {
		delete(t.claims, id)
	}
}

// settle wakes all that wait for a peer. t.mu is held.
func (t *table) settle(id peer.ID) {
	if c := t.claims[id]; c != nil {
		close(c.settled)
		delete(t.claims, id)
	}
}

// connected reports whether there is a connection with a peer that streams can use.
func (t *table) connected(id peer.ID) bool {
	return t.h.host.Network().Connectedness(id) == network.Connected
}

// await is the remote of a peer as soon as the peer has proved, or nil if it goes: judge sees to it that one of them
// happens. It is nil also if the peer gives up the stream that waits, if one does.
func (t *table) await(id peer.ID, s network.Stream) *remote {
	if r := t.find(id); r != nil {
		return r
	}
	for t.connected(id) {
		r, c := t.claim(id)
		if c == nil {
			return r
		}
		if !t.wait(id, c, s) {
			break
		}
	}
	return nil
}

// wait waits until a claim is settled, and gives it back. It is false if the stream or the host ends first.
func (t *table) wait(id peer.ID, c *claim, s network.Stream) bool {
	defer t.giveBack(id, c)
	if !t.connected(id) { // it went before the claim
		return true
	}
	var look <-chan time.Time
	if s != nil {
		ticker := time.NewTicker(lookAtWaiting)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-c.settled:
			return true
		case <-look:
			if givenUp(s) {
				return false
			}
		case <-t.h.ctx.Done():
			return false
		}
	}
}

// givenUp reports whether a stream has ended at the peer, and reads nothing of it.
func givenUp(s network.Stream) bool {
	if s.SetReadDeadline(time.Now()) != nil {
		return true
	}
	_, err := s.Read(nil)
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || s.SetReadDeadline(time.Time{}) != nil
}

// opener is the remote that opened a stream, once it has proved. Nil is counted.
func (h *Host) opener(s network.Stream) *remote {
	id := s.Conn().RemotePeer()
	r, c := h.peers.claim(id)
	if c != nil {
		r = h.early(id, c, s)
		h.peers.giveBack(id, c)
	}
	if r == nil {
		h.count.Unproven.Add(1)
	}
	return r
}

// early is the remote for which an early stream waits, if the peer may have one more.
func (h *Host) early(id peer.ID, c *claim, s network.Stream) *remote {
	if !h.mayOpen(id, c.streams) {
		return nil
	}
	done := take(c.waiting)
	if done == nil {
		return nil
	}
	defer done()
	return h.peers.await(id, s)
}

// take takes a token, and returns the function that gives it back; nil if there is none.
func take(tokens chan struct{}) (done func()) {
	select {
	case tokens <- struct{}{}:
		return func() { <-tokens }
	default:
		return nil
	}
}
