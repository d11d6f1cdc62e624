package p2p

import "testing"

// TestSilentMemberIsLetGo: a member whose host gives no sign of life is
// disconnected, and one that answers is kept.
func TestSilentMemberIsLetGo(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	a.checkAlive(b.ID())
	if n := a.Stats().Silent; n != 0 || !connected(a, b) {
		t.Fatalf("a live member was let go: %d counted", n)
	}
	b.host.RemoveStreamHandler("/ipfs/ping/1.0.0") // as if stuck: no answer
	eventually(t, "the silent member to be let go", func() bool {
		a.checkAlive(b.ID())
		return a.Stats().Silent > 0
	})
}

// TestBusyMemberIsKept: a member that sends frames is alive, though it answers no ping.
func TestBusyMemberIsKept(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	join(t, a, b)
	b.host.RemoveStreamHandler("/ipfs/ping/1.0.0")
	before := a.Stats().FramesReceived
	b.Send(a.ID(), []byte("frame"))
	eventually(t, "a frame", func() bool { return a.Stats().FramesReceived > before })
	if a.checkAlive(b.ID()); a.Stats().Silent > 0 || !connected(a, b) {
		t.Error("a member that sends frames was let go")
	}
}
