package p2p

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/aweigh/aweigh"
)

// Anybody can speak the names of a host's protocols, so they show nothing. When two hosts have connected, each opens
// a stream of the proof protocol to the other and writes its Proof; the other checks it and answers with its own.
// Before that a peer is no remote, and gets nothing else: this host opens no other stream to it, and the streams of
// frames, requests and gossip that the peer opens wait unread. It has Config.Grace.

// waitingMax is how many streams of one peer wait for the peer's proof. An honest peer's are those that overtook it.
const waitingMax = 32

// errProof says that a peer gave a proof that is none.
var errProof = errors.New("p2p: wrong proof of knowing the network")

// claim is a peer that has not proved yet, while something waits for it.
type claim struct {
	waiting int
	asking  bool
	settled chan struct{} // closed when the peer proved, or went
}

// claim is the remote of a peer that has proved, or the claim of one that has not, which the caller must give back.
// It is neither if too many wait for the peer.
func (t *table) claim(id peer.ID) (*remote, *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.remotes[id]; r != nil {
		return r, nil
	}
	c := t.claims[id]
	if c == nil {
		c = &claim{settled: make(chan struct{})}
		t.claims[id] = c
	}
	if c.waiting >= waitingMax {
		return nil, nil
	}
	c.waiting++
	return nil, c
}

// giveBack ends what claim began.
func (t *table) giveBack(id peer.ID, c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.waiting--; c.waiting == 0 && t.claims[id] == c {
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

// await is the remote of a peer as soon as the peer has proved, or nil if it goes: judge sees to it that one of them
// happens.
func (t *table) await(id peer.ID) *remote {
	if r := t.find(id); r != nil {
		return r
	}
	for t.h.host.Network().Connectedness(id) == network.Connected {
		r, c := t.claim(id)
		if c == nil {
			return r
		}
		t.wait(id, c)
		if t.h.ctx.Err() != nil {
			break
		}
	}
	return nil
}

// wait returns when a claim is settled, or the host closes, and gives it back.
func (t *table) wait(id peer.ID, c *claim) {
	defer t.giveBack(id, c)
	if t.h.host.Network().Connectedness(id) != network.Connected { // it went before the claim
		return
	}
	select {
	case <-c.settled:
	case <-t.h.ctx.Done():
	}
}

// opener is the remote that opened a stream, once it has proved. Nil is counted.
func (h *Host) opener(s network.Stream) *remote {
	r := h.peers.await(s.Conn().RemotePeer())
	if r == nil {
		h.count.Unproven.Add(1)
	}
	return r
}

// askProof asks a peer for its proof until it has given it or goes.
func (h *Host) askProof(id peer.ID) {
	_, c := h.peers.claim(id)
	if c == nil {
		return
	}
	defer h.peers.giveBack(id, c)
	if !h.peers.firstToAsk(c) {
		return
	}
	for pause := reopenMin; ; pause = min(2*pause, reopenMax) {
		err := h.exchangeProofs(id)
		if err == nil {
			return
		}
		h.cfg.Log.Debug("no proof of a peer", "peer", id, "error", err)
		select {
		case <-time.After(pause):
		case <-c.settled:
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// firstToAsk reports whether nothing asks the peer yet, and notes that the caller does.
func (t *table) firstToAsk(c *claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !c.asking
	c.asking = true
	return first
}

// exchangeProofs gives a peer this host's proof, and takes the peer's.
func (h *Host) exchangeProofs(id peer.ID) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(h.ctx, "the peer is connected or gone"), openTime)
	defer cancel()
	s, err := h.host.NewStream(ctx, id, h.proofID)
	if err != nil {
		return err
	}
	defer s.Reset()
	if err := s.SetDeadline(time.Now().Add(openTime)); err != nil {
		return err
	}
	if err := h.giveProof(s); err != nil {
		return err
	}
	return h.takeProof(s)
}

// answerProof takes the proof of a peer that asks for this host's, and gives it.
func (h *Host) answerProof(s network.Stream) {
	if err := h.answerProofOf(s); err != nil {
		if !h.knows(s.Conn().RemotePeer()) {
			h.count.Unproven.Add(1)
		}
		h.cfg.Log.Debug("a peer did not prove", "peer", s.Conn().RemotePeer(), "error", err)
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

func (h *Host) answerProofOf(s network.Stream) error {
	if !h.enter() {
		return ErrClosed
	}
	defer h.leave()
	done := h.mayAsk(s.Conn().RemotePeer())
	if done == nil {
		return ErrBusy
	}
	defer done()
	if err := s.SetDeadline(time.Now().Add(h.cfg.Grace)); err != nil {
		return err
	}
	if err := h.takeProof(s); err != nil {
		return err
	}
	return h.giveProof(s)
}

// mayAsk lets a peer ask for this host's proof, unless it asks too often: it is nil then, and what ends it otherwise.
// A peer that has proved asks again when it alone saw the connection break.
func (h *Host) mayAsk(id peer.ID) (done func()) {
	r, c := h.peers.claim(id)
	switch {
	case c != nil:
		return func() { h.peers.giveBack(id, c) }
	case r == nil || !h.maySend(r):
		return nil
	}
	select {
	case r.pulls <- struct{}{}:
		return func() { <-r.pulls }
	default:
		return nil
	}
}

// giveProof writes this host's proof.
func (h *Host) giveProof(s network.Stream) error {
	proof := Proof(h.cfg.Network, h.ID(), s.Conn().RemotePeer())
	_, err := s.Write(proof[:])
	return err
}

// takeProof reads and checks a peer's proof, which makes the peer a remote.
func (h *Host) takeProof(s network.Stream) error {
	id := s.Conn().RemotePeer()
	var got aweigh.Hash
	if _, err := io.ReadFull(s, got[:]); err != nil {
		return err
	}
	if want := Proof(h.cfg.Network, id, h.ID()); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		h.Blame(id)
		return errProof
	}
	if h.peers.proved(id) == nil {
		return ErrNotConnected
	}
	return nil
}

// provenOnly is what pubsub sees of libp2p: it meets the peers that have proved, when they have.
type provenOnly struct {
	host.Host
	h *Host
}

// NewStream implements host.Host. pubsub opens one stream to each peer that speaks its protocol, and does not try
// again with one that it could not open.
func (p provenOnly) NewStream(ctx context.Context, to peer.ID, names ...protocol.ID) (network.Stream, error) {
	if p.h.peers.await(to) == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, to)
	}
	return p.Host.NewStream(ctx, to, names...)
}

// SetStreamHandler implements host.Host.
func (p provenOnly) SetStreamHandler(name protocol.ID, handle network.StreamHandler) {
	p.Host.SetStreamHandler(name, func(s network.Stream) {
		if p.h.opener(s) == nil {
			_ = s.Reset()
			return
		}
		handle(s)
	})
}
