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

// Every peer can copy the names of a host's protocols, so they prove nothing. When two hosts have connected, each
// opens a stream of the proof protocol to the other and writes its Proof; the other checks it and answers with its
// own. Before that a peer is no remote, and gets nothing else: this host opens no other stream to it, and the
// streams of frames, requests and gossip that the peer opens wait unread. It has Config.Grace.

// errProof means that a peer gave an invalid proof.
var errProof = errors.New("p2p: wrong proof of knowing the network")

// askProof asks a peer for its proof until it has given it or goes.
func (h *Host) askProof(id peer.ID) {
	_, c := h.peers.claim(id)
	if c == nil {
		return
	}
	defer h.peers.giveBack(id, c)
	if !h.peers.beginAsking(c) {
		return
	}
	for pause := reopenMin; h.peers.goOnAsking(id, c); pause = min(2*pause, reopenMax) {
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

// beginAsking reports whether nothing asks the peer yet, and notes that the caller does.
func (t *table) beginAsking(c *claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !c.asking
	c.asking = true
	return first
}

// goOnAsking reports whether the peer is still connected, and otherwise notes that nothing asks it any more: if the
// peer comes again, the next one does.
func (t *table) goOnAsking(id peer.ID, c *claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.asking = t.connected(id)
	return c.asking
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

// mayAsk allows a peer to ask for this host's proof, unless it asks too often: it returns nil then, and otherwise the
// function that ends the request. A peer that has proved asks again when it alone saw the connection break.
func (h *Host) mayAsk(id peer.ID) (done func()) {
	r, c := h.peers.claim(id)
	if c == nil {
		if !h.maySend(r) {
			return nil
		}
		return take(r.pulls)
	}
	var taken func()
	if h.mayOpen(id, c.streams) {
		taken = take(c.answers)
	}
	if taken == nil {
		h.peers.giveBack(id, c)
		return nil
	}
	return func() {
		taken()
		h.peers.giveBack(id, c)
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

// Disconnect closes the connections of a peer. It may connect again.
func (h *Host) Disconnect(id peer.ID) {
	if r := h.peers.find(id); r != nil {
		r.admitted.Store(false) // its next connection may overlap this one
	}
	h.spawn(func() { _ = h.host.Network().ClosePeer(id) })
}

// provenOnly is what pubsub sees of libp2p: it meets the peers that have proved, when they have.
type provenOnly struct {
	host.Host
	h *Host
}

// NewStream implements host.Host. pubsub opens one stream to each peer that speaks its protocol, and does not try
// again with one that it could not open. So it waits until the peer has proved, and what is written, until it is
// admitted.
func (p provenOnly) NewStream(ctx context.Context, to peer.ID, names ...protocol.ID) (network.Stream, error) {
	r := p.h.peers.await(to, nil)
	if r == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, to)
	}
	s, err := p.Host.NewStream(ctx, to, names...)
	if err != nil {
		return nil, err
	}
	return newAdmittedOnly(s, p.h, r), nil
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
