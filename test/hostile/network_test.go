package hostile

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

func TestMain(m *testing.M) {
	if plan := os.Getenv(attackerEnv); plan != "" {
		os.Exit(attack(plan))
	}
	if path := os.Getenv(localEnv); path != "" {
		os.Exit(intrude(path))
	}
	testparallel.Waiting()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen. Only failures take it.
const patience = testwait.Patience

// net is a network of four anchors, each a daemon as "aweigh node" runs it.
type net4 struct {
	*devnet.Network
	daemons []*daemon.Daemon
	policy  scope.Policy // in force
	written atomic.Int64
}

// newNetwork starts the first n of four anchors. The others' keys are free for an
// attacker to take.
func newNetwork(t testing.TB, n int) *net4 {
	t.Helper()
	return newNetworkOf(t, n, devnet.MakeOpen)
}

// newNetworkOf is newNetwork of a devnet that is made so. In most, anyone may write: so an attacker's mutations get as
// far as they can.
func newNetworkOf(t testing.TB, n int, of func(dir string, nodes int, mode quorum.Mode) (*devnet.Network, error)) *net4 {
	t.Helper()
	x := newNetworkOpened(t, n, of, func(_ int, a devnet.Node, log *slog.Logger) (*daemon.Daemon, error) {
		return daemon.Open(a.Home, a.Settings, "test", log)
	})
	x.commits(t)
	return x
}

// newNetworkOpened is newNetworkOf of nodes that open in their own ways.
func newNetworkOpened(
	t testing.TB, n int, of func(dir string, nodes int, mode quorum.Mode) (*devnet.Network, error),
	open func(i int, a devnet.Node, log *slog.Logger) (*daemon.Daemon, error),
) *net4 {
	t.Helper()
	made, err := of(t.TempDir(), 4, quorum.BFT)
	if err != nil {
		t.Fatal(err)
	}
	x := &net4{Network: made, policy: made.Genesis.Policy}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for i, a := range made.Nodes[:n] {
		d, err := open(i, a, log)
		if err != nil {
			t.Fatal(err)
		}
		x.daemons = append(x.daemons, d)
		running.Add(1)
		go func() {
			defer running.Done()
			if err := d.Run(ctx); err != nil {
				t.Errorf("%s stopped: %v", a.Name, err)
			}
		}()
	}
	return x
}

func (x *net4) node(i int) *node.Node { return x.daemons[i].Node }

// addr is where a node listens, over TCP.
func (x *net4) addr(t testing.TB, i int) string {
	t.Helper()
	for _, a := range x.node(i).Addrs() {
		if strings.Contains(a, "/tcp/") {
			return a
		}
	}
	t.Fatal("a node listens nowhere")
	return ""
}

// put is a transaction that sets one key.
func put(key, value string) scope.Txn {
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
}

// commits holds every node to committing a write, and to agreeing on it.
func (x *net4) commits(t testing.TB) {
	t.Helper()
	x.commitsAt(t, len(x.daemons))
}

// commitsAt holds the first nodes to that.
func (x *net4) commitsAt(t testing.TB, nodes int) {
	t.Helper()
	for i := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		key := fmt.Sprintf("/honest/%d", x.written.Add(1))
		_, err := x.node(i).Txn(ctx, put(key, "v"), node.Once{})
		cancel()
		if err != nil {
			t.Fatalf("node %d does not commit: %v", i, err)
		}
	}
}

// stats adds up a counter of all nodes.
func (x *net4) stats(f func(p2p.Stats) uint64) (sum uint64) {
	for _, d := range x.daemons {
		sum += f(d.Node.NetworkStats())
	}
	return sum
}

// attacker is a hostile peer connected with node i.
func (x *net4) attacker(t testing.TB, i int) (*Peer, peer.ID) {
	t.Helper()
	p, err := NewPeer(x.Genesis.Hash(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, x.join(t, p, i)
}

// join connects a hostile peer with node i.
func (x *net4) join(t testing.TB, p *Peer, i int) peer.ID {
	t.Helper()
	to, err := p.Connect(t.Context(), x.addr(t, i))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// inUse is the heap in use after a collection, in bytes.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
