package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// What many regions cost that govern themselves: a hundred clients write to one prefix, and then the same clients
// to several. In Aweigh each prefix is a scope with anchors' votes of its own; in etcd they are names.

const scopedClients = 100

// scoped is how a system fared, once for each repetition.
type scoped struct{ one, several []loaded }

// overScopes measures all systems that can be, in turn.
func (r *runner) overScopes(ctx context.Context, n int) ([]scoped, error) {
	prefixes := make([]string, n)
	for i := range prefixes {
		prefixes[i] = fmt.Sprintf("/s%d/", i)
	}
	all := make([]scoped, len(r.systems))
	return all, r.eachIsolated(ctx, prefixes, func(at int, to member) error {
		putters, hangUp, err := to.dial(r.report.Connections)
		if err != nil {
			return err
		}
		defer hangUp()
		x := &all[at]
		for _, part := range []struct {
			prefixes []string
			to       *[]loaded
		}{{prefixes[:1], &x.one}, {prefixes, &x.several}} {
			l, err := writeTo(ctx, putters, part.prefixes, r.duration)
			if err != nil {
				return err
			}
			*part.to = append(*part.to, l)
		}
		return nil
	})
}

// writeTo has clients put as fast as they can, each to one of the prefixes.
func writeTo(ctx context.Context, all []putter, prefixes []string, d time.Duration) (loaded, error) {
	var mu sync.Mutex
	var took []time.Duration
	var failed atomic.Uint64
	var clients sync.WaitGroup
	from := time.Now().Add(work{duration: d}.warmUp())
	until := from.Add(d)
	value := make([]byte, valueSize)
	for k := range scopedClients {
		clients.Go(func() {
			var mine []time.Duration
			for i := 0; ctx.Err() == nil && time.Now().Before(until); i++ {
				start := time.Now()
				err := all[k%len(all)](ctx, fmt.Sprint(prefixes[k%len(prefixes)], k, "-", i%100), value)
				switch {
				case err != nil:
					failed.Add(1)
				case err == nil && start.After(from):
					mine = append(mine, time.Since(start))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	clients.Wait()
	l, err := summarize(took, d)
	l.errors = failed.Load()
	return l, cmp.Or(err, ctx.Err())
}

// scopesTable has a row for each system.
func scopesTable(w io.Writer, n int, systems []System, all []scoped) {
	of := func(values []loaded, what func(loaded) float64) float64 {
		var list []float64
		for _, l := range values {
			list = append(list, what(l))
		}
		return spanOf(list).median
	}
	rate := func(l loaded) float64 { return l.perSecond }
	p99 := func(l loaded) float64 { return l.p99 }
	fmt.Fprintf(w, "| system | one prefix: puts/s, p99 ms | %d prefixes | the second as multiples of the first |\n|---|---|---|---|\n", n)
	for i, x := range all {
		if len(x.one) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %.0f, %.1f | %.0f, %.1f | %.2f, %.2f |\n", systems[i].Title, of(x.one, rate), of(x.one, p99),
			of(x.several, rate), of(x.several, p99), of(x.several, rate)/of(x.one, rate), of(x.several, p99)/of(x.one, p99))
		for _, l := range append(x.one, x.several...) {
			if l.errors > 0 {
				fmt.Fprintf(w, "\n%s: %d errors, besides %d done\n", systems[i].Title, l.errors, l.done)
			}
		}
	}
}
