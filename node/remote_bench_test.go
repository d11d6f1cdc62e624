package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// countingTransport counts the bytes of answers.
type countingTransport struct {
	Transport
	answers atomic.Int64
}

func (c *countingTransport) Request(ctx context.Context, p peer.ID, req []byte, most int) ([]byte, error) {
	raw, err := c.Transport.Request(ctx, p, req, most)
	c.answers.Add(int64(len(raw)))
	return raw, err
}

// BenchmarkForeignAnswers reads lists of a scope that the node does not hold, with four anchors: as enough anchors give
// them, and as one proves them. It reports the time and the bytes of all answers.
func BenchmarkForeignAnswers(b *testing.B) {
	c, _, o := newRegions(b, quorum.BFT)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	wire := &countingTransport{Transport: o.host}
	o.host = wire // which nothing else uses meanwhile
	for _, keys := range []int{1, 10, 100, 1000} {
		prefix := fmt.Sprintf("/b/%d/", keys)
		for at := 0; at < keys; at += 100 {
			var t scope.Txn
			for i := range min(keys-at, 100) {
				one := putTxn(fmt.Sprintf("%s%04d", prefix, at+i), strings.Repeat("v", 100))
				t.Success = append(t.Success, one.Success...)
			}
			if r, err := c.nodes[0].Txn(ctx, t, Once{}); err != nil || r.Code != scope.Applied {
				b.Fatal(r, err)
			}
		}
		key, end := []byte(prefix), scope.PrefixEnd([]byte(prefix))
		for _, x := range []struct {
			name string
			read func() (int, error)
		}{
			{"agreed", func() (int, error) {
				r, _, err := o.Range(ctx, key, end, scope.Range{}, true)
				return len(r.Kvs), err
			}},
			{"proven", func() (int, error) {
				p, _, err := o.ProveRange(ctx, key, end, 0)
				if err != nil {
					return 0, err
				}
				return len(p.Parts[0].Kvs), nil
			}},
		} {
			b.Run(fmt.Sprintf("%d/%s", keys, x.name), func(b *testing.B) {
				var took []time.Duration
				before, reads := wire.answers.Load(), 0
				for b.Loop() {
					time.Sleep(100 * time.Millisecond) // within what anchors do for non-members
					begin := time.Now()
					if got, err := x.read(); err != nil || got != keys {
						b.Fatal(got, err)
					}
					took = append(took, time.Since(begin))
					reads++
				}
				slices.Sort(took)
				b.ReportMetric(float64(wire.answers.Load()-before)/float64(reads), "B/answers")
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
			})
		}
	}
}

// BenchmarkForeignReadsWhileOthersWrite reads keys of six paths of a scope that the node does not hold, fifty times a
// second, for answers that may be old, while a client writes to the scope fifty times a second, and another watches it:
// with copies and without. It reports the time of a read and the requests to anchors.
func BenchmarkForeignReadsWhileOthersWrite(b *testing.B) {
	c, _, o := newRegions(b, quorum.BFT)
	o.copies.often = 10
	var asked atomic.Int64
	wire := &countingRequests{Transport: o.host, requests: &asked}
	o.host = wire // which nothing else uses meanwhile
	const keys = 100
	key := func(i int) string { return fmt.Sprintf("/b/x%d/%02d", i%6, i%keys) }
	var all scope.Txn
	for i := range keys {
		all.Success = append(all.Success, putTxn(key(i), strings.Repeat("v", 100)).Success...)
	}
	if r, err := c.nodes[0].Txn(b.Context(), all, Once{}); err != nil || r.Code != scope.Applied {
		b.Fatal(r, err)
	}
	got(b, o, key(0), true)
	o.tasks.start("watching", func(ctx context.Context) {
		_ = o.Watch(ctx, []byte("/b/x0/"), []byte("/b/x00"), 0, func(Changes) error { return nil })
	})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	o.tasks.start("writing", func(context.Context) {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = c.nodes[0].Txn(ctx, putTxn(key(i), fmt.Sprint(i)), Once{})
			time.Sleep(20 * time.Millisecond) // between writes
		}
	})
	for _, name := range []string{"without copies", "with copies"} {
		o.copies.mu.Lock()
		o.copies.limit = 0
		if name == "with copies" {
			o.copies.limit = defaultCopyMemory
		}
		o.copies.mu.Unlock()
		for begin := time.Now(); name == "with copies" && o.Copies().Copies < 6 && time.Since(begin) < time.Minute; {
			got(b, o, key(int(time.Since(begin).Milliseconds())), false)
			time.Sleep(20 * time.Millisecond) // within what anchors do for non-members
		}
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			before := asked.Load()
			for i := 0; b.Loop(); i++ {
				time.Sleep(20 * time.Millisecond) // within what anchors do for non-members
				begin := time.Now()
				got(b, o, key(i), false)
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(asked.Load()-before)/float64(len(took)), "requests/read")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
		})
	}
}

// countingRequests counts requests.
type countingRequests struct {
	Transport
	requests *atomic.Int64
}

func (c *countingRequests) Request(ctx context.Context, p peer.ID, req []byte, most int) ([]byte, error) {
	c.requests.Add(1)
	return c.Transport.Request(ctx, p, req, most)
}
