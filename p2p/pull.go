package p2p

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

var (
	// ErrRefused is returned by Request when the peer answers with an error, which it wraps as text.
	ErrRefused = errors.New("p2p: peer refused the request")
	// ErrBusy is returned by Request when the peer works on too many requests of this host.
	ErrBusy = errors.New("p2p: peer is busy")
)

// The first byte of an answer is its kind.
const (
	answerOK     = 0 // the answer, as a frame
	answerFailed = 1 // the reason, as a frame of at most maxReason bytes
	answerBusy   = 2 // nothing
)

const maxReason = 256

// Request asks a connected peer and waits for an answer of at most max bytes.
// It waits its turn when MaxRequests are in progress, and takes PullTimeout at
// most. Errors: ErrNotConnected, ErrRefused, ErrBusy, ErrFrame for an answer
// that is too long, or of the transport and ctx.
func (h *Host) Request(ctx context.Context, to peer.ID, req []byte, max int) ([]byte, error) {
	return h.ask(ctx, h.pullID, to, req, max)
}

// ask sends one request over a stream of its own.
func (h *Host) ask(ctx context.Context, proto protocol.ID, to peer.ID, req []byte, limit int) (answer []byte, err error) {
	if !h.enter() {
		return nil, ErrClosed
	}
	defer h.leave()
	h.count.RequestsSent.Add(1)
	defer func() {
		if err != nil {
			h.count.RequestsFailed.Add(1)
		}
	}()
	r := h.peers.find(to)
	if r == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, to)
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.PullTimeout)
	defer cancel()
	select {
	case r.asks <- struct{}{}:
		defer func() { <-r.asks }()
	case <-ctx.Done():
		return nil, fmt.Errorf("p2p: wait for a turn with %s: %w", to, ctx.Err())
	case <-r.ctx.Done():
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, to)
	}
	s, err := h.host.NewStream(network.WithNoDial(ctx, "the peer is connected or gone"), to, proto)
	if err != nil {
		return nil, fmt.Errorf("p2p: open a request to %s: %w", to, err)
	}
	defer s.Reset()
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() }) // the only way to interrupt a read
	defer stop()
	if answer, err = exchangeOn(s, req, limit); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("p2p: request to %s: %w", to, err)
	}
	return answer, nil
}

// exchangeOn writes a request and reads its answer.
func exchangeOn(s network.Stream, req []byte, limit int) ([]byte, error) {
	w := bufio.NewWriter(s)
	if err := writeFrame(w, req); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	// The write side stays open, so that the peer learns of it when this side gives up.
	br := bufio.NewReader(s)
	status, err := br.ReadByte()
	if err != nil {
		return nil, err
	}
	switch status {
	case answerOK:
		return readFrame(br, limit)
	case answerFailed:
		reason, err := readFrame(br, maxReason)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %q", ErrRefused, reason)
	case answerBusy:
		return nil, ErrBusy
	}
	return nil, fmt.Errorf("%w: answer of kind %d", ErrFrame, status)
}

// answer makes a stream handler that reads one request of at most limit bytes, from a peer that has proved, and writes
// what f answers. A nil f refuses.
func (h *Host) answer(limit int, f func(context.Context, peer.ID, []byte) ([]byte, error)) network.StreamHandler {
	return func(s network.Stream) {
		defer s.Close()
		if !h.enter() {
			_ = s.Reset()
			return
		}
		defer h.leave()
		r := h.opener(s)
		if r == nil || !h.maySend(r) {
			_ = s.Reset()
			return
		}
		if err := h.serve(r, s, limit, f); err != nil {
			h.count.RequestsRefused.Add(1)
			h.cfg.Log.Debug("request not served", "peer", r.id, "error", err)
			_ = s.Reset()
		}
	}
}

// serve answers one request. It returns an error if no answer could be written.
func (h *Host) serve(r *remote, s network.Stream, limit int, f func(context.Context, peer.ID, []byte) ([]byte, error)) error {
	if err := s.SetDeadline(time.Now().Add(h.cfg.PullTimeout)); err != nil {
		return err
	}
	w := bufio.NewWriter(s)
	select {
	case r.pulls <- struct{}{}:
		defer func() { <-r.pulls }()
	default:
		h.count.RequestsRefused.Add(1)
		return errors.Join(w.WriteByte(answerBusy), w.Flush())
	}
	br := bufio.NewReader(s)
	n, err := readLength(br, limit)
	if err != nil {
		if errors.Is(err, ErrFrame) {
			h.Blame(r.id)
		}
		return err
	}
	late, stop := context.WithTimeout(r.ctx, h.cfg.PullTimeout)
	defer stop()
	free, err := h.room(late, r, n)
	if err != nil {
		return err
	}
	defer free()
	req, err := readBody(br, n)
	if err != nil {
		return err
	}
	if err := h.slow(r, len(req)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, h.cfg.PullTimeout)
	defer cancel()
	go func() { // the requester writes nothing more: this returns when it gives up
		_, _ = s.Read(make([]byte, 1))
		cancel()
	}()
	answer, err := []byte(nil), error(ErrRefused)
	if f != nil {
		answer, err = f(ctx, r.id, req)
	}
	if err == nil && len(answer) > h.cfg.MaxFrame {
		err = fmt.Errorf("%w: answer of %d bytes", ErrFrame, len(answer))
	}
	if err != nil {
		h.count.RequestsRefused.Add(1)
		reason := err.Error()
		return errors.Join(w.WriteByte(answerFailed), writeFrame(w, []byte(reason[:min(len(reason), maxReason)])), w.Flush())
	}
	h.count.RequestsServed.Add(1)
	return errors.Join(w.WriteByte(answerOK), writeFrame(w, answer), w.Flush())
}
