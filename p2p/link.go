package p2p

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	reopenMin = 10 * time.Millisecond // pause before a broken stream is opened again
	reopenMax = time.Second
	openTime  = 10 * time.Second // longest time for opening a stream
	ioBuffer  = 64 << 10         // bytes that frames are gathered in, and read ahead
)

// Send queues one frame for a peer and never blocks. It reports false, and
// counts, if the frame is too long, the peer is not connected or its queue is
// full. True is no promise that the frame arrives. The frame must not be changed
// afterwards; it may be sent to many peers.
func (h *Host) Send(to peer.ID, frame []byte) bool {
	if len(frame) > h.cfg.MaxFrame {
		h.count.DroppedTooLong.Add(1)
		return false
	}
	r := h.peers.find(to)
	if r == nil {
		h.count.DroppedNoPeer.Add(1)
		return false
	}
	return r.link.send(frame)
}

// link carries frames to one peer: a bounded queue, and a goroutine that
// drains it into a stream and opens the stream again when it breaks.
type link struct {
	h    *Host
	to   peer.ID
	ctx  context.Context
	wake chan struct{} // holds a token while the writer has something to see

	mu     sync.Mutex
	queue  [][]byte // queue[head:] waits
	head   int
	bytes  int
	owed   int // of bytes, what counts as non-members'
	closed bool
}

func newLink(h *Host, to peer.ID, ctx context.Context) *link {
	return &link{h: h, to: to, ctx: ctx, wake: make(chan struct{}, 1)}
}

// send queues a frame, or counts it as dropped.
func (l *link) send(frame []byte) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.h.count.DroppedNoPeer.Add(1)
		return false
	}
	if len(l.queue)-l.head >= l.h.cfg.QueueFrames || l.bytes+len(frame) > l.h.cfg.QueueBytes || !l.lend(len(frame)) {
		l.mu.Unlock()
		l.h.count.DroppedFull.Add(1)
		return false
	}
	l.queue = append(l.queue, frame)
	l.bytes += len(frame)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// lend charges a frame to the memory that all non-members share: a peer that does
// not read must not make this host keep much. Members are not counted, nor is a
// peer that has become a member, so a link keeps its own debt. Its mutex is
// held.
func (l *link) lend(n int) bool {
	if l.h.dialer.isMember(l.to) {
		return true
	}
	s := l.h.nonMembers
	if s.queued.Add(int64(n)) > s.memory {
		s.queued.Add(-int64(n))
		return false
	}
	l.owed += n
	return true
}

// repay gives back what n bytes took, of which members may have taken nothing.
func (l *link) repay(n int) {
	n = min(n, l.owed)
	l.owed -= n
	l.h.nonMembers.queued.Add(-int64(n))
}

// next takes the oldest frame off the queue.
func (l *link) next() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
		if cap(l.queue) > 1024 {
			l.queue = nil
		}
		return nil, false
	}
	frame := l.queue[l.head]
	l.queue[l.head] = nil
	l.head++
	l.bytes -= len(frame)
	l.repay(len(frame))
	if l.head >= 1024 && 2*l.head >= len(l.queue) { // never drained: slide down, so that the array does not creep
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	return frame, true
}

// waiting is the length of the queue in frames and bytes.
func (l *link) waiting() (frames, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) - l.head, l.bytes
}

// close refuses further frames and counts those that wait as lost.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.h.count.FramesLost.Add(uint64(len(l.queue) - l.head))
	l.repay(l.owed)
	l.queue, l.head, l.bytes, l.closed = nil, 0, 0, true
}

// run sends until the peer goes.
func (l *link) run() {
	pause := reopenMin
	for l.ctx.Err() == nil {
		began := time.Now()
		err := l.stream()
		if l.ctx.Err() != nil {
			return
		}
		l.h.count.StreamsBroken.Add(1)
		l.h.cfg.Log.Debug("frame stream broke", "peer", l.to, "error", err)
		if time.Since(began) > reopenMax {
			pause = reopenMin
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
		pause = min(2*pause, reopenMax)
	}
}

// stream opens one stream and sends over it until it breaks.
func (l *link) stream() error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(l.ctx, "the peer is connected or gone"), openTime)
	defer cancel()
	s, err := l.h.host.NewStream(ctx, l.to, l.h.framesID)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Reset()

	// The peer never writes: a read returns when the stream, or the agreement
	// on its protocol, fails. Without it an idle sender would not notice.
	broken := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		broken <- err
	}()
	return l.drain(s, broken)
}

// drain writes queued frames, many at a time, and flushes when no frame waits
// or a buffer is full.
func (l *link) drain(s network.Stream, broken <-chan error) error {
	w := bufio.NewWriterSize(deadlineWriter{s, l.h.cfg.WriteTimeout}, ioBuffer)
	frames, bytes := uint64(0), uint64(0) // in w or written since the last flush
	sent := func(err error) error {
		if err != nil {
			l.h.count.FramesLost.Add(frames)
			return fmt.Errorf("write: %w", err)
		}
		l.h.count.FramesSent.Add(frames)
		l.h.count.FrameBytesSent.Add(bytes)
		frames, bytes = 0, 0
		return nil
	}
	for {
		if frame, ok := l.next(); ok {
			frames, bytes = frames+1, bytes+uint64(len(frame))
			if err := writeFrame(w, frame); err != nil {
				return sent(err)
			}
			if bytes >= ioBuffer { // w is about to write in any case; this keeps count
				if err := sent(w.Flush()); err != nil {
					return err
				}
			}
			continue
		}
		if err := sent(w.Flush()); err != nil {
			return err
		}
		select {
		case <-l.wake:
		case err := <-broken:
			return fmt.Errorf("closed by the peer: %w", err)
		case <-l.ctx.Done():
			return l.ctx.Err()
		}
	}
}

// deadlineWriter gives each ioBuffer bytes written to a stream the same time.
type deadlineWriter struct {
	s       network.Stream
	timeout time.Duration
}

func (w deadlineWriter) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		if err = w.s.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
			break
		}
		var n int
		n, err = w.s.Write(p[written:min(written+ioBuffer, len(p))])
		written += n
	}
	return written, err
}
