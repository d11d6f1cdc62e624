package p2p

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/internal/testwait"
)

func TestMain(m *testing.M) {
	testparallel.Waiting()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen. Only failures take it.
const patience = testwait.Patience

var testNetwork = aweigh.Sum([]byte("p2p test"))

// newKey makes an identity.
func newKey(t testing.TB) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// start runs a host on the loopback interface until the test ends. change, if
// any, is applied to its Config first.
func start(t testing.TB, change func(*Config)) *Host {
	t.Helper()
	cfg := Config{Network: testNetwork, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	if change != nil {
		change(&cfg)
	}
	if cfg.Key == nil {
		cfg.Key = newKey(t)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestMembersThatWereNamedBeforeTheStartCount: a host stays connected with them, and asks them for signs of life.
func TestMembersThatWereNamedBeforeTheStartCount(t *testing.T) {
	t.Parallel()
	other := start(t, nil)
	h, err := New(Config{Network: testNetwork, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Key: newKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.SetMembers([]peer.ID{other.ID()})
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	if !h.dialer.isMember(other.ID()) {
		t.Error("the member was forgotten")
	}
}

// within returns the next value of c.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("never happened: %s", what)
		panic("unreachable")
	}
}

// connected reports whether a and b see each other.
func connected(a, b *Host) bool {
	return a.peers.find(b.ID()) != nil && b.peers.find(a.ID()) != nil
}

// join connects a to b and waits until both know.
func join(t testing.TB, a, b *Host) {
	t.Helper()
	a.Hint(b.info())
	testwait.Until(t, "hosts connect", func() bool { return connected(a, b) })
}

// inbox collects frames.
type inbox struct {
	mu     sync.Mutex
	frames [][]byte
}

func (in *inbox) receive(_ peer.ID, frame []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.frames = append(in.frames, frame)
}

// all is a copy of what has arrived.
func (in *inbox) all() [][]byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.frames)
}

func (in *inbox) len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.frames)
}

// echo answers a request with itself.
func echo(_ context.Context, _ peer.ID, req []byte) ([]byte, error) { return req, nil }
