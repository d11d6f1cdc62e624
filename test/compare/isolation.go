package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// How much of a flood reaches those who write little: the latency of one client that writes a key of
// one prefix every few milliseconds, alone and while a hundred clients write to another prefix as fast
// as they can. In Aweigh each prefix is a scope of its own; in etcd all keys share one pipeline.

const (
	quietPrefix, floodPrefix = "/quiet/", "/flood/"
	quietPause               = 5 * time.Millisecond
	floodClients             = 100
)

// isolation is how a system's quiet client fared, once for each repetition.
type isolation struct{ alone, elsewhere, here []beside }

// beside is how it fared beside one flood, or none.
type beside struct {
	quiet loaded
	flood float64 // puts a second
}

// isolate measures all systems that can be, in turn.
func (r *runner) isolate(ctx context.Context) ([]isolation, error) {
	all := make([]isolation, len(r.systems))
	return all, r.eachIsolated(ctx, r.report.Connections+1, []string{quietPrefix, floodPrefix}, func(at int, putters []putter) error {
		return all[at].measure(ctx, putters, r.duration)
	})
}

// measure adds a repetition.
func (x *isolation) measure(ctx context.Context, all []putter, d time.Duration) error {
	for _, part := range []struct {
		clients int
		prefix  string
		to      *[]beside
	}{{0, "", &x.alone}, {floodClients, floodPrefix, &x.elsewhere}, {floodClients, quietPrefix, &x.here}} {
		b, err := during(ctx, all, d, part.clients, part.prefix)
		if err != nil {
			return err
		}
		*part.to = append(*part.to, b)
	}
	return nil
}

// during writes with the first putter while so many clients flood a prefix with the others.
func during(ctx context.Context, all []putter, d time.Duration, clients int, prefix string) (b beside, err error) {
	ctx, cancel := context.WithCancel(ctx)
	value := make([]byte, valueSize)
	var flooding sync.WaitGroup
	var wrote atomic.Uint64
	for k := range clients {
		flooding.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if all[1+k%(len(all)-1)](ctx, fmt.Sprint(prefix, k, "-", i%100), value) == nil {
					wrote.Add(1)
				}
			}
		})
	}
	defer flooding.Wait()
	defer cancel()
	time.Sleep(work{duration: d}.warmUp())
	var took []time.Duration
	begin, before := time.Now(), wrote.Load()
	for i := 0; time.Since(begin) < d; i++ {
		start := time.Now()
		if err := all[0](ctx, fmt.Sprint(quietPrefix, i%100), value); err != nil {
			return b, err
		}
		took = append(took, time.Since(start))
		time.Sleep(quietPause)
	}
	passed := time.Since(begin)
	if b.quiet, err = summarize(took, passed); err != nil {
		return b, err
	}
	b.flood = float64(wrote.Load()-before) / passed.Seconds()
	return b, ctx.Err()
}

// isolationTable has a row for each system.
func isolationTable(w io.Writer, systems []System, all []isolation) {
	median := func(of []beside, what func(beside) float64) float64 {
		var values []float64
		for _, b := range of {
			values = append(values, what(b))
		}
		return spanOf(values).median
	}
	p50 := func(b beside) float64 { return b.quiet.p50 }
	p99 := func(b beside) float64 { return b.quiet.p99 }
	both := func(of []beside) string { return fmt.Sprintf("%.2f, %.2f", median(of, p50), median(of, p99)) }
	fmt.Fprintln(w, "| system | alone: p50, p99 ms | beside a flood of another prefix | of its own | other prefix, as multiples of alone: p50, p99 | the flood: puts/s |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for i, x := range all {
		if len(x.alone) > 0 {
			fmt.Fprintf(w, "| %s | %s | %s | %s | %.1f, %.1f | %.0f |\n", systems[i].Title, both(x.alone), both(x.elsewhere), both(x.here),
				median(x.elsewhere, p50)/median(x.alone, p50), median(x.elsewhere, p99)/median(x.alone, p99),
				median(x.elsewhere, func(b beside) float64 { return b.flood }))
		}
	}
}
