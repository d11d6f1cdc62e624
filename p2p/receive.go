package p2p

import (
	"bufio"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// receiveFrames reads a peer's frame stream. A peer has one: a second one takes
// the place of the first, once the first one's reader has returned.
func (h *Host) receiveFrames(s network.Stream) {
	defer s.Reset()
	if !h.enter() {
		return
	}
	defer h.leave()
	r := h.opener(s)
	if r == nil || !h.maySend(r) {
		return
	}
	r.inMu.Lock()
	if r.in != nil {
		_ = r.in.Reset()
	}
	r.in = s
	r.inMu.Unlock()

	r.reading.Lock()
	defer r.reading.Unlock()
	if err := h.readFrames(r, s); errors.Is(err, ErrFrame) {
		h.count.BadFrames.Add(1)
		h.cfg.Log.Warn("cut a peer's stream", "peer", r.id, "error", err)
		h.Blame(r.id)
	}
}

// readFrames hands over frames until the stream ends.
func (h *Host) readFrames(r *remote, s network.Stream) error {
	br := bufio.NewReaderSize(s, ioBuffer)
	for {
		n, err := readLength(br, h.cfg.MaxFrame)
		if err != nil {
			return err
		}
		if err := h.readOne(r, s, br, n); err != nil {
			return err
		}
	}
}

// readOne reads the rest of a frame and hands it over, slowly if its peer is
// above its rates.
func (h *Host) readOne(r *remote, s network.Stream, br *bufio.Reader, n int) error {
	free, err := h.room(r.ctx, r, n)
	if err != nil {
		return err
	}
	defer free()
	frame, err := h.readTimed(s, br, n)
	if err != nil {
		return err
	}
	r.heard.Store(int64(time.Since(r.since)))
	h.count.FramesReceived.Add(1)
	h.count.FrameBytesReceived.Add(uint64(n))
	if err := h.slow(r, n); err != nil {
		return err
	}
	if h.cfg.Handler.Frame != nil {
		h.cfg.Handler.Frame(r.id, frame)
	}
	return nil
}

// readTimed reads the rest of a frame whose length is n. A frame that was begun
// must end in time; most have arrived whole and need no deadline.
func (h *Host) readTimed(s network.Stream, br *bufio.Reader, n int) ([]byte, error) {
	if br.Buffered() >= n {
		return readBody(br, n)
	}
	if err := s.SetReadDeadline(time.Now().Add(h.cfg.PullTimeout)); err != nil {
		return nil, err
	}
	frame, err := readBody(br, n)
	if err == nil {
		err = s.SetReadDeadline(time.Time{})
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		h.count.BadFrames.Add(1)
	}
	return frame, err
}
