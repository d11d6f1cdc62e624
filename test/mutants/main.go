package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var errUsage = errors.New("mutants: wrong use")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mutants(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// choice states which mutants to plant.
type choice struct {
	class, name string
	share       string // "1/n"
	offset      int    // which of the n parts; below 0: that of today
	known       bool   // only those that are expected to be found
}

// of are the chosen ones.
func (c *choice) of(all []Mutant, today int) (out []Mutant, err error) {
	parts := 1
	if _, err := fmt.Sscanf(c.share, "1/%d", &parts); err != nil || parts < 1 {
		return nil, fmt.Errorf("%w: -share is 1/N, not %q", errUsage, c.share)
	}
	at := c.offset
	if at < 0 {
		at = today
	}
	for i := range all {
		m := &all[i]
		named := func(names, name string) bool { return names == "" || slices.Contains(strings.Split(names, ","), name) }
		if !named(c.class, m.Class) || !named(c.name, m.Name) || c.known && m.Within == 0 {
			continue
		}
		if i%parts == at%parts {
			out = append(out, *m)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: no mutant is chosen", errUsage)
	}
	return out, nil
}

// mutants plants what the command line says.
func mutants(ctx context.Context, args []string) error {
	var c choice
	var r runner
	var workers int
	var json, markdown, list bool
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.StringVar(&c.class, "class", "", "only those of these classes, with commas between")
	f.StringVar(&c.name, "name", "", "only these, with commas between")
	f.StringVar(&c.share, "share", "1/1", "1/N: every Nth of the list, beginning with another one each day")
	f.IntVar(&c.offset, "offset", -1, "with -share: where to begin; -1: by the date")
	f.BoolVar(&c.known, "known", false, "only those that the list calls found")
	f.IntVar(&r.least, "worlds", 100, "how many worlds at least")
	f.Uint64Var(&r.from, "from", 1, "the first seed")
	f.IntVar(&workers, "workers", 1, "how many mutants at the same time")
	f.BoolVar(&r.tests, "tests", false, "run the tests of the changed packages as well")
	f.BoolVar(&json, "json", false, "print all reports as JSON")
	f.BoolVar(&markdown, "markdown", false, "print the table of docs/simulation.md")
	f.BoolVar(&r.plain, "build", false, "build all, and sweep nothing")
	f.BoolVar(&list, "list", false, "print the list and plant nothing")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return errors.Join(errUsage, err)
	}
	all, err := load()
	if err != nil {
		return err
	}
	all, err = c.of(all, int(time.Now().Unix()/(24*60*60)))
	if err != nil {
		return err
	}
	if list {
		for i := range all {
			fmt.Printf("%-44s %s\n", all[i].Class+"/"+all[i].Name, all[i].About)
		}
		return nil
	}
	if r.root, err = os.Getwd(); err != nil {
		return err
	}
	if r.temp, err = os.MkdirTemp("", "mutants-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.temp) }()
	reports := r.all(ctx, all, workers)
	switch {
	case json:
		if err := asJSON(os.Stdout, reports); err != nil {
			return err
		}
	case markdown:
		asMarkdown(os.Stdout, reports)
	default:
		asText(os.Stdout, reports)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("mutants: stopped after %d of %d", len(reports), len(all))
	}
	missed := 0
	for i := range reports {
		if reports[i].missed() {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("mutants: %d of %d could not be planted, or are not found any more", missed, len(reports))
	}
	return nil
}

// all plants mutants, so many at the same time, and tells of each. The reports are
// in the order of the list; those that an interrupt cut short are left out.
func (r *runner) all(ctx context.Context, list []Mutant, workers int) (out []Report) {
	programs := r.build(ctx, list)
	reports := make([]*Report, len(list))
	next := make(chan int)
	var done sync.WaitGroup
	var mu sync.Mutex // of the terminal
	for range max(1, workers) {
		done.Go(func() {
			for i := range next {
				report := r.run(ctx, &list[i], programs[i])
				if ctx.Err() != nil {
					continue
				}
				mu.Lock()
				reports[i] = &report
				asLine(os.Stderr, &report)
				mu.Unlock()
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	done.Wait()
	for _, report := range reports {
		if report != nil {
			out = append(out, *report)
		}
	}
	return out
}
