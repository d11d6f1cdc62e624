package p2p

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestSilentMemberIsDisconnected: a member whose host gives no sign of life is
// disconnected, and one that answers is kept.
func TestSilentMemberIsDisconnected(t *testing.T) {
	t.Parallel()
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	a.checkAlive(b.ID())
	if n := a.Stats().Silent; n != 0 || !connected(a, b) {
		t.Fatalf("a live member was let go: %d counted", n)
	}
	b.host.RemoveStreamHandler("/ipfs/ping/1.0.0") // as if stuck: no answer
	testwait.Until(t, "the silent member to be let go", func() bool {
		a.checkAlive(b.ID())
		return a.Stats().Silent > 0
	})
}

// TestBusyMemberIsKept: a member that sends frames is alive, though it answers no ping.
func TestBusyMemberIsKept(t *testing.T) {
	t.Parallel()
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	asked := make(chan struct{})
	b.host.SetStreamHandler("/ipfs/ping/1.0.0", func(s network.Stream) {
		close(asked)
		before := a.Stats().FramesReceived
		for a.Stats().FramesReceived == before { // before it gives no answer
			b.Send(a.ID(), []byte("frame"))
			time.Sleep(time.Millisecond) // the pace of a busy member
		}
		_ = s.Reset()
	})
	a.checkAlive(b.ID())
	<-asked
	if a.Stats().Silent > 0 || !connected(a, b) {
		t.Error("a member that sends frames was let go")
	}
}
