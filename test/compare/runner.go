package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// runner measures all cells of all systems, one after the other.
type runner struct {
	report   *Report
	systems  []system // as in the report
	does     []string // operations
	duration time.Duration
	dir      string // for the members' directories
	keep     bool   // those directories
	screen   io.Writer

	began       time.Time
	done, total int // cells
}

// run measures until all is done or ctx ends. What failed stands in the samples.
func (r *runner) run(ctx context.Context) error {
	r.began, r.total = time.Now(), r.report.Repetitions*len(r.systems)*r.each()
	return r.turns(func(repetition, at int) error {
		return r.with(ctx, repetition, at, func(c *cluster, err error) error { return r.cells(ctx, repetition, at, c, err) })
	})
}

// each is the number of cells of one system in one repetition.
func (r *runner) each() (n int) {
	for _, operation := range r.does {
		n += len(r.report.crowds(operation))
	}
	return n
}

// turns has each system take its turn in every repetition.
func (r *runner) turns(do func(repetition, at int) error) error {
	for repetition := range r.report.Repetitions {
		for i := range r.systems {
			if err := do(repetition+1, (i+repetition)%len(r.systems)); err != nil {
				return err
			}
		}
	}
	return nil
}

// with starts a system alone, does something with it, or with the reason why it did not start, and stops it.
func (r *runner) with(ctx context.Context, repetition, at int, do func(*cluster, error) error) (err error) {
	system := r.report.Systems[at]
	dir := filepath.Join(r.dir, fmt.Sprintf("%d-%s", repetition, system.Name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	fmt.Fprintf(r.screen, "repetition %d of %d: starting %s\n", repetition, r.report.Repetitions, system.Title)
	c, err := r.systems[at].start(ctx, dir)
	defer func() {
		if c != nil {
			err = errors.Join(err, c.stop())
		}
		if !r.keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err = do(c, err); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", system.Title, err)
	}
	return err
}

// cells measures a system that runs, or that failed to start.
func (r *runner) cells(ctx context.Context, repetition, at int, c *cluster, failed error) error {
	name := r.report.Systems[at].Name
	for _, operation := range r.does {
		for _, clients := range r.report.crowds(operation) {
			w := work{operation: operation, clients: clients, connections: min(clients, r.report.Connections), duration: r.duration}
			sample := Sample{System: name, Repetition: repetition, Operation: operation, Clients: clients}
			r.done++
			fmt.Fprintf(r.screen, "[%d/%d] %-8s %s, %4d clients: ", r.done, r.total, name, operation, clients)
			cellErr := failed
			if cellErr == nil {
				cellErr = r.cell(ctx, r.systems[at], c, w, &sample)
			}
			if ctx.Err() != nil {
				fmt.Fprintln(r.screen, "interrupted")
				return ctx.Err()
			}
			if errors.Is(cellErr, errNone) {
				fmt.Fprintln(r.screen, "not offered")
				continue
			}
			if cellErr != nil {
				sample.Failure = cellErr.Error()
				fmt.Fprintf(r.screen, "failed: %v\n", cellErr)
			} else {
				fmt.Fprintf(r.screen, "%8.0f/s, p50 %.2f ms, p99 %.2f ms; about %s left\n", *sample.PerSecond, *sample.P50, *sample.P99, r.left())
			}
			r.report.Samples = append(r.report.Samples, sample)
		}
	}
	return nil
}

// left is the time for the cells that are not done, if they take as long as the others.
func (r *runner) left() time.Duration {
	return (time.Since(r.began) / time.Duration(r.done) * time.Duration(r.total-r.done)).Round(time.Second)
}

// cell warms up, and measures.
func (r *runner) cell(ctx context.Context, s system, c *cluster, w work, sample *Sample) error {
	ctx, cancel := context.WithTimeout(ctx, 6*w.duration+time.Minute)
	defer cancel()
	warm, err := s.load(ctx, c, w)
	if err != nil {
		return err
	}
	w.expected = warm.perSecond
	syncsBefore, known := countSyncs(ctx, c)
	before, beforeErr := measureUse(c.pids)
	l, err := s.load(ctx, c, w)
	if err != nil {
		return err
	}
	sample.Done, sample.Errors = l.done, l.errors
	sample.PerSecond, sample.P50, sample.P99 = &l.perSecond, &l.p50, &l.p99
	if after, err := measureUse(c.pids); err == nil && beforeErr == nil && len(c.pids) > 0 {
		each := float64((after.members - before.members).Microseconds()) / float64(l.done)
		others := after.others(before, runtime.NumCPU())
		sample.CPU, sample.Others = &each, &others
	}
	if syncsAfter, still := countSyncs(ctx, c); known && still {
		each := (syncsAfter - syncsBefore) / float64(l.done)
		sample.Syncs = &each
	}
	return nil
}

// countSyncs adds up the counters of syncs of all members. It is not known if
// any of them has none.
func countSyncs(ctx context.Context, c *cluster) (sum float64, known bool) {
	for _, url := range c.metrics {
		text, err := fetch(ctx, url)
		if err != nil {
			return 0, false
		}
		for _, name := range c.syncs {
			n, found := counter(text, name)
			if !found {
				return 0, false
			}
			sum += n
		}
	}
	return sum, len(c.metrics) > 0
}
