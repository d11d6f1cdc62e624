package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Exit codes, as those of aweigh.
const (
	exitFailed      = 1 // something could not be measured
	exitUsage       = 2
	exitInterrupted = 130
)

var errUsage = errors.New("compare: wrong use")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "compare: interrupted; everything is stopped")
		os.Exit(exitInterrupted)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "%v; see scripts/compare --help\n", err)
		os.Exit(exitUsage)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitFailed)
}

// What --tool says.
const (
	toolOwn  = "own"
	toolEtcd = "etcd"
)

// options are what the command line says.
type options struct {
	duration    time.Duration
	repetitions int
	clients     []int
	connections int
	plans       []plan
	spread      bool
	tool        string // toolOwn or toolEtcd
	keep, write bool
	isolation   bool
	corners     bool
	scopes      int // 0: not that
	rate        int // of the flooded scope; 0: any
	dir, out    string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("scripts/compare", flag.ContinueOnError)
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long a cell is measured, at least 1s; a fifth is added to warm up")
	f.IntVar(&o.repetitions, "repetitions", 3, "how often everything is repeated, each time in another order")
	clients := f.String("clients", "1,100,1000", "numbers of clients, each with one request in flight")
	f.IntVar(&o.connections, "connections", 8, "connections that the clients share, at most; 8 suits etcd best")
	systems := f.String("systems", "etcd,crash,bft,cometbft", "which systems")
	f.BoolVar(&o.spread, "spread", false, "spread the clients over all members (default all on one; for etcd the leader)")
	f.StringVar(&o.tool, "tool", toolOwn, "own: each system's load generator; etcd: etcd's, through etcd's API, for transactions, leases and watches too (not for CometBFT)")
	f.StringVar(&o.dir, "dir", "", "where members keep their data while it runs: a real disk (default below the cache)")
	f.StringVar(&o.out, "out", "", "directory for compare.json, compare.md and compare.svg (default below the cache)")
	f.BoolVar(&o.isolation, "isolation", false, "measure instead what one client notices of a hundred that flood another prefix (not for CometBFT)")
	f.IntVar(&o.scopes, "scopes", 0, "measure instead what a hundred clients write to one prefix, and to so many (not for CometBFT)")
	f.BoolVar(&o.corners, "corners", false, "measure instead long lists, creates one after another, counts, watches beside reads, and memory (not for CometBFT)")
	f.IntVar(&o.rate, "rate", 0, "with --isolation: the limits.rate of the flooded scope, which etcd has not; 0 is none")
	f.BoolVar(&o.keep, "keep", false, "keep the members' data and logs")
	f.BoolVar(&o.write, "write", false, "write docs/img/compare.{json,svg}, or compare-etcd.json, and the section of docs/performance.md")
	f.SetOutput(io.Discard) // errors are told in one line
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Println("Measures Aweigh and others side by side on this machine. Options:")
			f.SetOutput(os.Stdout)
			f.PrintDefaults()
			return o, err
		}
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	var err error
	if o.clients, err = numbers(*clients); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.plans, err = choose(*systems); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%w: %q is no option", errUsage, f.Arg(0))
	case o.scopes < 0 || o.scopes == 1 || o.scopes > 256:
		return o, fmt.Errorf("%w: --scopes is 2 to 256", errUsage)
	case moreThanOne(o.scopes > 0, o.isolation, o.corners, o.tool != toolOwn):
		return o, fmt.Errorf("%w: --tool etcd, --isolation, --scopes and --corners are four measurements: choose one", errUsage)
	case o.rate > 0 && !o.isolation:
		return o, fmt.Errorf("%w: --rate goes with --isolation", errUsage)
	case o.tool != toolOwn && len(o.plans) == 1 && o.plans[0].name == "cometbft":
		return o, fmt.Errorf("%w: CometBFT has no API of etcd", errUsage)
	case o.tool != toolOwn && o.tool != toolEtcd:
		return o, fmt.Errorf("%w: --tool is %s or %s", errUsage, toolOwn, toolEtcd)
	case o.duration < time.Second:
		return o, fmt.Errorf("%w: --duration is %s, at least 1s is needed", errUsage, o.duration)
	case o.repetitions < 1 || o.connections < 1:
		return o, fmt.Errorf("%w: --repetitions and --connections are at least 1", errUsage)
	}
	return o, nil
}

func moreThanOne(all ...bool) bool {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n > 1
}

// numbers are those of a list like 1,100.
func numbers(list string) (out []int, err error) {
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 100_000 {
			return nil, fmt.Errorf("compare: --clients: %q is no number from 1 to 100000", text)
		}
		out = append(out, n)
	}
	return out, nil
}

func compare(ctx context.Context, args []string) (err error) {
	switch {
	case len(args) > 0 && args[0] == floodCommand:
		return floodFor(ctx, os.Stdout, args[1:])
	case len(args) > 0 && args[0] == readCommand:
		return readFor(ctx, os.Stdout, args[1:])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	// scripts/compare says where it put the programs: they are not for users.
	cache := os.Getenv("AWEIGH_COMPARE_CACHE")
	programs := programs(filepath.Join(cache, "bin"))
	report := &Report{
		Command: strings.Join(append([]string{"scripts/compare"}, args...), " "), Seconds: o.duration.Seconds(),
		Repetitions: o.repetitions, Clients: o.clients, Connections: o.connections, Spread: o.spread,
	}
	r := &runner{report: report, does: []string{put, get}, duration: o.duration, keep: o.keep, screen: os.Stderr}
	if o.tool == toolEtcd {
		report.Tool, r.does = toolEtcd, nil
		for _, t := range titles {
			r.does = append(r.does, t.operation)
		}
	}
	for _, p := range o.plans {
		if o.tool == toolEtcd && p.name == "cometbft" {
			continue
		}
		s, err := p.make(programs, o.spread)
		if err != nil && p.name == "cometbft" { // of others' programs, only etcd must be there
			report.Skipped = append(report.Skipped, fmt.Sprintf("%s: %v", p.title, err))
			fmt.Fprintf(os.Stderr, "skipped: %s: %v\n", p.title, err)
			continue
		}
		if err != nil {
			return err
		}
		if o.tool == toolEtcd {
			if s, err = newThroughEtcd(programs, s, o.spread); err != nil {
				return err
			}
		}
		r.systems = append(r.systems, s)
		report.Systems = append(report.Systems, System{Name: p.name, Title: p.title})
	}
	if o.dir == "" {
		o.dir = cache
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if r.dir, err = os.MkdirTemp(o.dir, "data-"); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if !o.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	}
	report.Machine = lookAround(ctx, r.dir)
	warn(report.Machine)
	if o.isolation {
		for _, s := range r.systems {
			if a, ok := s.(*aweigh); ok {
				a.rate = o.rate
			}
		}
		all, err := r.isolate(ctx)
		if err == nil {
			isolationTable(os.Stdout, report.Systems, all)
		}
		return err
	}
	if o.corners {
		all, err := r.corners(ctx)
		if err == nil {
			fmt.Printf("Measured on %s.\n\n", report.Machine.text())
			cornersTable(os.Stdout, report.Systems, all)
		}
		return err
	}
	if o.scopes > 0 {
		all, err := r.overScopes(ctx, o.scopes)
		if err == nil {
			scopesTable(os.Stdout, o.scopes, report.Systems, all)
		}
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if err := o.save(report, cache); err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "data and logs:", r.dir)
	}
	for _, s := range report.Samples {
		if s.Failure != "" && s.System != "cometbft" {
			return errors.New("compare: not everything could be measured; see the notes below the tables")
		}
	}
	return nil
}

// warn reports what spoils the numbers.
func warn(m Machine) {
	if m.Filesystem == "tmpfs" || m.Filesystem == "ramfs" {
		fmt.Fprintf(os.Stderr, "warning: the data lies in %s, where a sync costs nothing; choose a disk with --dir\n", m.Filesystem)
	}
	if m.Load > 0.5 {
		fmt.Fprintf(os.Stderr, "warning: the machine is busy with something else (load average %.1f)\n", m.Load)
	}
	if !strings.HasPrefix(m.Kernel, "Linux") {
		fmt.Fprintln(os.Stderr, "warning: processor time is known on Linux alone")
	}
}

// save writes the results and prints the tables.
func (o options) save(r *Report, cache string) error {
	if o.out == "" {
		o.out = filepath.Join(cache, "results", time.Now().UTC().Format("20060102-150405"))
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	files := map[string]string{
		filepath.Join(o.out, "compare.json"): string(text),
		filepath.Join(o.out, "compare.md"):   r.markdown("compare.svg"),
		filepath.Join(o.out, "compare.svg"):  r.svg(),
	}
	if o.write {
		const page = "docs/performance.md"
		old, err := os.ReadFile(page)
		if err != nil {
			return fmt.Errorf("compare: --write: %w", err)
		}
		name, picture := "compare", "img/compare.svg"
		if r.Tool == toolEtcd {
			name, picture = "compare-etcd", ""
		} else {
			files["docs/img/compare.svg"] = r.svg()
		}
		files["docs/img/"+name+".json"] = string(text)
		if files[page], err = replaceSection(string(old), name, r.markdown(picture)); err != nil {
			return fmt.Errorf("compare: %s: %w", page, err)
		}
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
	}
	fmt.Print(r.markdown(""))
	fmt.Fprintln(os.Stderr, "written to", o.out)
	return nil
}

// replaceSection puts a text between two lines of a document, in place of what is there.
func replaceSection(document, name, text string) (string, error) {
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the marks %s:begin and %[1]s:end are not there", name)
	}
	return before + begin + text + end + after, nil
}
