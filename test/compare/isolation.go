package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How much a flood affects clients that write little: the latency of one client that writes a key of
// one prefix every few milliseconds, alone and while a hundred clients write to another prefix as fast
// as they can. In Aweigh each prefix is a scope of its own; in etcd all keys share one pipeline.

const (
	quietPrefix, floodPrefix = "/quiet/", "/flood/"
	quietPause               = 5 * time.Millisecond
	floodClients             = 100
	floodSlack               = 200 * time.Millisecond // it floods longer than the quiet client writes, who starts first
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
	return all, r.eachIsolated(ctx, []string{quietPrefix, floodPrefix}, func(at int, to member) error {
		putters, hangUp, err := to.dial(1)
		if err != nil {
			return err
		}
		defer hangUp()
		return all[at].measure(ctx, putters[0], flood{to, r.report.Connections, r.duration})
	})
}

// measure adds a repetition.
func (x *isolation) measure(ctx context.Context, put putter, f flood) error {
	for _, part := range []struct {
		prefix string // that is flooded; empty: none
		to     *[]beside
	}{{"", &x.alone}, {floodPrefix, &x.elsewhere}, {quietPrefix, &x.here}} {
		b, err := f.beside(ctx, put, part.prefix)
		if err != nil {
			return err
		}
		*part.to = append(*part.to, b)
	}
	return nil
}

// flood is a hundred clients that write as fast as they can.
type flood struct {
	to          member
	connections int
	duration    time.Duration // that is measured
}

// floodCommand is how this program is called to flood, in a process of its own: what keeps a hundred clients waiting
// must not keep the quiet one waiting too, which has nothing to do with them.
const floodCommand = "flood"

// warmUp is how long it floods before it is measured.
func (f flood) warmUp() time.Duration { return work{duration: f.duration}.warmUp() }

// beside writes with the quiet client, while a prefix is flooded.
func (f flood) beside(ctx context.Context, put putter, prefix string) (b beside, err error) {
	flooding := make(chan error, 1)
	if prefix == "" {
		flooding <- nil
	} else {
		self, err := os.Executable()
		if err != nil {
			return b, err
		}
		go func() {
			text, err := output(ctx, nil, self, floodCommand, f.to.api, f.to.address, strconv.Itoa(f.connections), prefix, f.duration.String())
			if err == nil {
				b.flood, err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			}
			flooding <- err
		}()
	}
	select {
	case <-time.After(f.warmUp()):
	case <-ctx.Done():
	}
	quiet, err := quietly(ctx, put, f.duration)
	if flooded := <-flooding; flooded != nil {
		return b, flooded
	}
	b.quiet = quiet
	return b, err
}

// quietly is how long the writes take of a client that makes one every few milliseconds.
func quietly(ctx context.Context, put putter, d time.Duration) (loaded, error) {
	var took []time.Duration
	begin, value := time.Now(), make([]byte, valueSize)
	for i := 0; time.Since(begin) < d; i++ {
		start := time.Now()
		if err := put(ctx, fmt.Sprint(quietPrefix, i%100), value); err != nil {
			return loaded{}, err
		}
		took = append(took, time.Since(start))
		time.Sleep(quietPause)
	}
	return summarize(took, time.Since(begin))
}

// floodFor carries out floodCommand with its arguments: it prints how many writes a second were answered, once warm.
func floodFor(ctx context.Context, w io.Writer, args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("%w: %s API ADDRESS CONNECTIONS PREFIX DURATION", errUsage, floodCommand)
	}
	connections, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	d, err := time.ParseDuration(args[4])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	f := flood{member{args[0], args[1]}, connections, d}
	putters, hangUp, err := f.to.dial(f.connections)
	if err != nil {
		return err
	}
	defer hangUp()
	writing, stop := context.WithCancel(ctx)
	var flooding sync.WaitGroup
	defer flooding.Wait()
	defer stop()
	value := make([]byte, valueSize)
	var wrote atomic.Uint64
	for k := range floodClients {
		flooding.Go(func() {
			for i := 0; writing.Err() == nil; i++ {
				if putters[k%len(putters)](writing, fmt.Sprint(args[3], k, "-", i%100), value) == nil {
					wrote.Add(1)
				}
			}
		})
	}
	time.Sleep(f.warmUp())
	begin, before := time.Now(), wrote.Load()
	time.Sleep(f.duration + floodSlack)
	_, err = fmt.Fprintln(w, float64(wrote.Load()-before)/time.Since(begin).Seconds())
	return errors.Join(err, ctx.Err())
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
