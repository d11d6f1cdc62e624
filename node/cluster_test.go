package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testheap"
	"github.com/aweigh/aweigh/internal/testparallel"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

func TestMain(m *testing.M) {
	testheap.Roomy()
	testparallel.Waiting()
	m.Run()
}

// cluster is real nodes on loopback, each with its own Pebble directory.
type cluster struct {
	t     testing.TB
	nodes []*Node
	stop  []context.CancelFunc
	done  sync.WaitGroup
}

func startCluster(t testing.TB, n int, mode quorum.Mode) *cluster {
	t.Helper()
	return startClusterWith(t, n, mode, func(int, *Node) {})
}

// startClusterWith has each node changed before it starts.
func startClusterWith(t testing.TB, n int, mode quorum.Mode, change func(int, *Node)) *cluster {
	t.Helper()
	return startClusterUnder(t, n, scope.OpenPolicy(mode), change)
}

func startClusterUnder(t testing.TB, n int, policy scope.Policy, change func(int, *Node)) *cluster {
	t.Helper()
	c := &cluster{t: t}
	dir := t.TempDir()
	keys := make([]votes.PrivateKey, 2*n)
	var founders []machine.Founder
	for i := range keys {
		var err error
		if keys[i], err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		peer, err := machine.PeerOf(keys[2*i])
		if err != nil {
			t.Fatal(err)
		}
		founders = append(founders, machine.Founder{Name: fmt.Sprintf("n%d", i), Key: keys[2*i+1].Public(), Peer: peer})
	}
	g, err := machine.NewGenesis("test", aweigh.InstantOf(time.Now()), policy, founders...)
	if err != nil {
		t.Fatal(err)
	}
	var bootstrap []string
	for i := range n {
		s, err := diskstore.Open(filepath.Join(dir, fmt.Sprint(i)), diskstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		node, err := New(Config{
			Name: fmt.Sprintf("n%d", i), Genesis: g, Identity: keys[2*i], Anchor: &keys[2*i+1], Store: s,
			Listen:    []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"},
			Bootstrap: bootstrap,
		})
		if err != nil {
			t.Fatal(err)
		}
		change(i, node)
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		bootstrap = append(bootstrap, node.Addrs()...)
		ctx, cancel := context.WithCancel(context.Background())
		c.nodes, c.stop = append(c.nodes, node), append(c.stop, cancel)
		c.done.Add(1)
		go func() {
			defer c.done.Done()
			if err := node.Run(ctx); err != nil {
				t.Errorf("node %d: %v", i, err)
			} else if _, err := fsck.Store(s, g, nil); err != nil && !t.Failed() {
				t.Errorf("node %d: its store ends as one of which the audit says: %v", i, err)
			}
			s.Close()
		}()
	}
	t.Cleanup(func() {
		for _, cancel := range c.stop {
			cancel()
		}
		c.done.Wait()
	})
	return c
}

func putTxn(key, value string) scope.Txn {
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
}

func TestClusterCommitsAndReadsEverywhere(t *testing.T) {
	c := startCluster(t, 4, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i, n := range c.nodes {
		r, err := n.Txn(ctx, putTxn(fmt.Sprintf("/k%d", i), "v"), Once{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.nodes {
			v, err := o.root.Read(ctx, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.Head().Revision; got < r.Revision {
				t.Errorf("a linearizable read at revision %d after a write at %d", got, r.Revision)
			}
			v.Close()
		}
	}
}

// BenchmarkLinearizableRead is of one client.
func BenchmarkLinearizableRead(b *testing.B) {
	for _, mode := range []quorum.Mode{quorum.Crash, quorum.BFT} {
		b.Run(mode.String(), func(b *testing.B) {
			c := startCluster(b, 4, mode)
			if _, err := c.nodes[0].Txn(b.Context(), putTxn("/warm", "v"), Once{}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				v, err := c.nodes[0].root.Read(b.Context(), true)
				if err != nil {
					b.Fatal(err)
				}
				if err := v.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, clients := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			c := startCluster(b, 4, quorum.BFT)
			ctx := context.Background()
			if _, err := c.nodes[0].Txn(ctx, putTxn("/warm", "v"), Once{}); err != nil {
				b.Fatal(err)
			}
			value := string(make([]byte, 256))
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range clients {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for {
						k := next.Add(1)
						if k > int64(b.N) {
							return
						}
						if _, err := c.nodes[i%4].Txn(ctx, putTxn(fmt.Sprintf("/k%08d", k%100_000), value), Once{}); err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
			for _, n := range c.nodes {
				x := n.root.runner
				if p, ok := n.cfg.Store.(*diskstore.Store); ok {
					x := p.Metrics()
					b.Logf("%s: commits %d, %d bytes, syncs %d, sync time %v", n.Name(), x.Commits, x.Bytes, x.Syncs, x.SyncTotal)
				}
				b.Logf("%s: height %d view %d steps %d events %d bundles %d mutations %d dropped %d", n.Name(), x.stand.Load().State.Height(), x.stand.Load().View,
					x.counts.steps.Load(), x.counts.events.Load(), x.counts.bundles.Load(), x.counts.mutations.Load(), n.Dropped())
			}
		})
	}
}
