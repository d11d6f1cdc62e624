package p2p

import (
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// BenchmarkFrameLatency sends a frame of 200 bytes there and back, and reports half of that.
func BenchmarkFrameLatency(b *testing.B) {
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		b.Run(name, func(b *testing.B) {
			back := make(chan struct{}, 1)
			var far *Host
			unlimited := func(c *Config) {
				c.Listen = []string{listen}
				c.PeerMessages, c.NonMemberMessages = 1<<30, 1<<30
			}
			near := start(b, func(c *Config) {
				unlimited(c)
				c.Handler.Frame = func(peer.ID, []byte) { back <- struct{}{} }
			})
			far = start(b, func(c *Config) {
				unlimited(c)
				c.Handler.Frame = func(from peer.ID, frame []byte) { far.Send(from, frame) }
			})
			join(b, near, far)
			frame := make([]byte, 200)
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				near.Send(far.ID(), frame)
				<-back
				took = append(took, time.Since(began)/2)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "µs-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "µs-p99")
		})
	}
}

// BenchmarkFrameThroughput sends frames as fast as they are taken, one way.
func BenchmarkFrameThroughput(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "64KiB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			unlimited := func(c *Config) { c.PeerMessages, c.PeerBytes = 1<<30, 1<<40 }
			done := make(chan struct{})
			count := 0
			far := start(b, func(c *Config) {
				unlimited(c)
				c.Handler.Frame = func(peer.ID, []byte) {
					if count++; count == b.N {
						close(done)
					}
				}
			})
			near := start(b, unlimited)
			join(b, near, far)
			frame := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for !near.Send(far.ID(), frame) {
					time.Sleep(50 * time.Microsecond) // the queue is full
				}
			}
			<-done
		})
	}
}
