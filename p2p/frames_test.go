package p2p

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/testwait"
)

func TestFramesArriveInOrder(t *testing.T) {
	t.Parallel()
	const total = 10_000
	for _, transport := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		var got [2]inbox
		a := start(t, func(c *Config) { c.Handler.Frame = got[0].receive; c.Listen = []string{transport} })
		b := start(t, func(c *Config) { c.Handler.Frame = got[1].receive; c.Listen = []string{transport} })
		join(t, a, b)
		for i := range total {
			frame := binary.BigEndian.AppendUint32(nil, uint32(i))
			frame = append(frame, make([]byte, i%700)...)
			if !a.Send(b.ID(), frame) || !b.Send(a.ID(), frame) {
				t.Fatalf("%s: frame %d was refused", transport, i)
			}
		}
		for side := range got {
			in := &got[side]
			testwait.Until(t, "all frames arrive", func() bool { return in.len() == total })
			for i, frame := range in.all() {
				if len(frame) != 4+i%700 || binary.BigEndian.Uint32(frame) != uint32(i) {
					t.Fatalf("%s: frame %d is %d bytes, number %d", transport, i, len(frame), binary.BigEndian.Uint32(frame))
				}
			}
		}
		testwait.Until(t, "sent frames are counted", func() bool { return a.Stats().FramesSent == total })
		if s := a.Stats(); s.FramesReceived != total || s.FramesLost+s.DroppedFull != 0 {
			t.Errorf("%s: %+v", transport, s)
		}
	}
}

func TestSendRefusesAndCounts(t *testing.T) {
	t.Parallel()
	a := start(t, func(c *Config) { c.MaxFrame = 1000 })
	b := start(t, nil)
	if a.Send(b.ID(), []byte("hello")) {
		t.Error("a frame for a non-member was accepted")
	}
	join(t, a, b)
	if a.Send(b.ID(), make([]byte, 1001)) {
		t.Error("a frame above the limit was accepted")
	}
	if !a.Send(b.ID(), make([]byte, 1000)) {
		t.Error("a frame at the limit was refused")
	}
	if s := a.Stats(); s.DroppedNoPeer != 1 || s.DroppedTooLong != 1 {
		t.Errorf("drops not counted: %+v", s)
	}
}

func TestOversizeFrameFromPeerCutsItsStream(t *testing.T) {
	t.Parallel()
	var in inbox
	a := start(t, nil)
	b := start(t, func(c *Config) { c.MaxFrame = 1000; c.Handler.Frame = in.receive })
	join(t, a, b)
	a.Send(b.ID(), make([]byte, 1001))
	testwait.Until(t, "the frame is refused", func() bool { return b.Stats().BadFrames == 1 })
	testwait.Until(t, "the sender opens another stream", func() bool {
		a.Send(b.ID(), []byte("small"))
		return in.len() > 0
	})
	if string(in.all()[0]) != "small" {
		t.Error("an oversize frame was delivered")
	}
}

func TestSlowReaderSlowsNoOtherPeer(t *testing.T) {
	t.Parallel()
	const frameSize, limit = 64 << 10, 2 << 20
	stuck := make(chan struct{})
	var quick atomic.Int64
	a := start(t, func(c *Config) { c.QueueBytes = limit; c.WriteTimeout = time.Minute })
	slow := start(t, func(c *Config) { c.Handler.Frame = func(peer.ID, []byte) { <-stuck } })
	defer close(stuck)
	fast := start(t, func(c *Config) { c.Handler.Frame = func(peer.ID, []byte) { quick.Add(1) } })
	join(t, a, slow)
	join(t, a, fast)

	// Fill all that lies between: the queue, the buffers and the stream's window.
	testwait.Until(t, "the slow peer's queue is full", func() bool {
		for a.Send(slow.ID(), make([]byte, frameSize)) {
		}
		_, queued := a.peers.find(slow.ID()).link.waiting()
		if queued > limit {
			t.Fatalf("%d bytes wait, the limit is %d", queued, limit)
		}
		return a.Stats().DroppedFull > 10 && queued+frameSize > limit
	})
	for i := range 100 {
		if !a.Send(fast.ID(), make([]byte, 100)) {
			t.Fatalf("frame %d for the fast peer was refused", i)
		}
	}
	testwait.Until(t, "the fast peer gets its frames", func() bool { return quick.Load() == 100 })
}

func TestPeerThatReadsNothingLosesItsStream(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	a := start(t, func(c *Config) { c.WriteTimeout = 50 * time.Millisecond })
	b := start(t, func(c *Config) { c.Handler.Frame = func(peer.ID, []byte) { <-stuck } })
	defer close(stuck)
	join(t, a, b)
	testwait.Until(t, "the stream is given up", func() bool {
		a.Send(b.ID(), make([]byte, 1<<20))
		return a.Stats().StreamsBroken > 0 && a.Stats().FramesLost > 0
	})
}

func TestPeerAboveItsRateIsSlowed(t *testing.T) {
	t.Parallel()
	var in inbox
	a := start(t, nil)
	b := start(t, func(c *Config) { c.PeerMessages = 100; c.Handler.Frame = in.receive })
	join(t, a, b)
	began := time.Now()
	for range 250 { // a burst of 200, then 100 a second
		a.Send(b.ID(), []byte("x"))
	}
	testwait.Until(t, "all arrive", func() bool { return in.len() == 250 })
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("250 frames took %v", took)
	}
	if b.Stats().Slowed == 0 {
		t.Error("slowing is not counted")
	}
}

func TestSecondStreamTakesThePlaceOfTheFirst(t *testing.T) {
	t.Parallel()
	var in inbox
	a := start(t, nil)
	b := start(t, func(c *Config) { c.Handler.Frame = in.receive })
	join(t, a, b)
	a.Send(b.ID(), []byte("one"))
	testwait.Until(t, "the first arrives", func() bool { return in.len() == 1 })
	s, err := a.host.NewStream(network.WithNoDial(t.Context(), "test"), b.ID(), b.framesID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("\x03two")); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the second arrives", func() bool { return in.len() >= 2 })
	testwait.Until(t, "the first stream is closed", func() bool { return a.Stats().StreamsBroken > 0 })
	a.Send(b.ID(), []byte("three"))
	testwait.Until(t, "the link recovers", func() bool { return in.len() == 3 })
	if !bytes.Equal(bytes.Join(in.all(), []byte(" ")), []byte("one two three")) {
		t.Errorf("%q", in.all())
	}
}
