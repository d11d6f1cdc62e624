package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

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
	}{{"alone", 0, ""}, {"flood=elsewhere", 100, "/flood/"}, {"flood=here", 100, "/quiet/"}} {
		b.Run(run.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(ctx)
			var flooding sync.WaitGroup
			for k := range run.clients {
				flooding.Go(func() {
					for ctx.Err() == nil {
						_, _ = c.nodes[k%4].Txn(ctx, putTxn(fmt.Sprint(run.prefix, k), value), Once{})
					}
				})
			}
			time.Sleep(300 * time.Millisecond)
			var took []time.Duration
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				if _, err := c.nodes[i%4].Txn(ctx, putTxn(fmt.Sprint("/quiet/q", i%10), value), Once{}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				time.Sleep(2 * time.Millisecond)
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
