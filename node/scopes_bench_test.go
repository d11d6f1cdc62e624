package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
)

// spent is the processor time that this process has taken.
func spent(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkQuietBesideFlood is how long a write to a quiet scope takes, alone and while
// so many clients write to another scope, or to the same one, as fast as they can.
func BenchmarkQuietBesideFlood(b *testing.B) {
	c := startCluster(b, 4, quorum.BFT)
	ctx := context.Background()
	c.delegate(ctx, "", "/quiet/", quorum.BFT, 0, 1, 2, 3)
	c.delegate(ctx, "", "/flood/", quorum.BFT, 0, 1, 2, 3)
	value := string(make([]byte, 256))
	for _, run := range []struct {
		name    string
		clients int
		prefix  string
		rate    rate.Limit // of all of them
	}{
		{"alone", 0, "", 0}, {"steady=elsewhere", 100, "/flood/", 1000},
		{"flood=elsewhere", 100, "/flood/", rate.Inf}, {"flood=here", 100, "/quiet/", rate.Inf},
	} {
		b.Run(run.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(ctx)
			var flooding sync.WaitGroup
			pace := rate.NewLimiter(run.rate, 10)
			for k := range run.clients {
				flooding.Go(func() {
					for pace.Wait(ctx) == nil {
						_, _ = c.nodes[k%4].Txn(ctx, putTxn(fmt.Sprint(run.prefix, k), value), Once{})
					}
				})
			}
			time.Sleep(300 * time.Millisecond) // the flood reaches its rate
			var took []time.Duration
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				if _, err := c.nodes[i%4].Txn(ctx, putTxn(fmt.Sprint("/quiet/q", i%10), value), Once{}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				time.Sleep(2 * time.Millisecond) // the pace of a quiet client
			}
			b.StopTimer()
			cancel()
			flooding.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// BenchmarkPutOverScopes is what a put costs, in processor time and syncs of all four
// nodes, with more and more scopes: so many clients write to each, or one writes to all in turn.
func BenchmarkPutOverScopes(b *testing.B) {
	c := startCluster(b, 4, quorum.BFT)
	ctx := context.Background()
	value := string(make([]byte, 256))
	made := 0
	const inTurn = 0
	for _, run := range []struct{ scopes, clients int }{
		{1, inTurn}, {1, 1}, {1, 10}, {1, 100}, {16, inTurn}, {16, 1}, {16, 10}, {16, 100}, {256, inTurn}, {256, 1}, {1, inTurn},
	} {
		for ; made < run.scopes; made++ {
			c.delegate(ctx, "", fmt.Sprintf("/s%d/", made), quorum.BFT, 0, 1, 2, 3)
		}
		name := fmt.Sprintf("scopes=%d/clients=%d", run.scopes, run.clients)
		if run.clients == inTurn {
			name = fmt.Sprintf("scopes=%d/in turn", run.scopes)
		}
		b.Run(name, func(b *testing.B) {
			syncs := func() (n uint64) {
				for _, x := range c.nodes {
					n += x.cfg.Store.(*diskstore.Store).Metrics().Syncs
				}
				return n
			}
			cpu, synced := spent(b), syncs()
			var next atomic.Int64
			var writing sync.WaitGroup
			for i := range max(run.scopes*run.clients, 1) {
				writing.Go(func() {
					for k := next.Add(1); k <= int64(b.N); k = next.Add(1) {
						to := i
						if run.clients == inTurn {
							to = int(k)
						}
						key := fmt.Sprintf("/s%d/%d", to%run.scopes, k%10_000)
						if _, err := c.nodes[i/run.scopes%4].Txn(ctx, putTxn(key, value), Once{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			writing.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
			b.ReportMetric(float64((spent(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/put")
			b.ReportMetric(float64(syncs()-synced)/float64(b.N), "syncs/put")
		})
	}
}

// BenchmarkResolve is how many of a million names a node resolves in a second, each from
// the root scope on, through three scopes, with what it has: one caller at a time, two, and
// one where an object of each scope has an alias.
func BenchmarkResolve(b *testing.B) {
	c := startCluster(b, 1, quorum.Crash)
	ctx := context.Background()
	c.delegate(ctx, "", "/org/", quorum.Crash, 0)
	c.delegate(ctx, "/org/", "/org/wiki/", quorum.Crash, 0)
	const names, atOnce = 1_000_000, 100
	name := func(k int) []byte {
		prefix := []string{"/", "/org/", "/org/wiki/"}[k%3]
		return fmt.Appendf(nil, "%s%03d/%d/leaf-%d", prefix, k%1000, k%97, k)
	}
	var filling sync.WaitGroup
	for from := range 16 {
		filling.Go(func() {
			for k := from * atOnce; k < names; k += 16 * atOnce {
				var in [3]scope.Txn
				for j := range atOnce {
					in[(k+j)%3].Success = append(in[(k+j)%3].Success, scope.Op{Kind: scope.OpPut, Key: name(k + j), Value: []byte("v")})
				}
				for i := range in {
					if r, err := c.nodes[0].Txn(ctx, in[i], Once{}); err != nil || r.Code != scope.Applied {
						b.Error(r, err)
						return
					}
				}
			}
		})
	}
	filling.Wait()
	resolve := func(key []byte) error {
		v, err := c.nodes[0].ReadOf(ctx, referral.Keys(key), false)
		if err != nil {
			return err
		}
		r, ok, err := v.Resolve(key)
		if err != nil || !ok || string(r.Kv.Key) != string(key) {
			return fmt.Errorf("%s: %+v, %w", key, r, errors.Join(err, v.Close()))
		}
		return v.Close()
	}
	run := func(what string, callers int) {
		b.Run(what, func(b *testing.B) {
			cpu := spent(b)
			var resolving sync.WaitGroup
			for i := range callers {
				resolving.Go(func() {
					k := i * names / callers
					for range b.N / callers {
						k = (k + 7_919_993) % names
						if err := resolve(name(k)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			resolving.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "names/s")
			b.ReportMetric(float64((spent(b)-cpu).Nanoseconds())/float64(b.N)/1000, "cpu-µs/name")
		})
	}
	run("callers=1", 1)
	run("callers=2", 2)
	for k := range 3 {
		n := scope.Naming{Kind: scope.Bind, Key: name(k), To: append(name(k), "-too"...)}
		if r, err := c.nodes[0].Naming(ctx, n, Once{}); err != nil || r.Code != scope.Applied {
			b.Fatal(r, err)
		}
	}
	run("aliases", 1)
}
