package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The operations.
const (
	put = "put"
	get = "get" // linearizable
	// With etcd's load generator only:
	stale = "serializable get"
	txn   = "transaction of one put"
	alive = "lease keep-alive"
	watch = "watch latency" // of 100 watchers of a key that one client puts; counted are events
)

// titles are those of the operations' tables, in their order.
var titles = []struct{ operation, title string }{
	{put, "Puts"}, {get, "Linearizable gets"}, {stale, "Serializable gets"}, {txn, "Transactions of one put"},
	{alive, "Lease keep-alives"}, {watch, "Watches: events for 100 watchers of one key"},
}

// What every system is given alike.
const (
	valueSize = 256
	keySize   = 32
	keySpace  = 10_000 // keys that puts choose from at random
)

// system is something that can be measured.
type system interface {
	// start runs it on an empty directory, and returns when it answers.
	start(ctx context.Context, dir string) (*cluster, error)
	// load puts it under load. Systems that lack the operation return errNone.
	load(ctx context.Context, c *cluster, w work) (loaded, error)
}

// errNone means that a system has no such operation.
var errNone = errors.New("compare: it has no such operation")

// work is one cell: what a load generator is asked to do.
type work struct {
	operation   string
	clients     int // requests in flight
	connections int // that they share
	duration    time.Duration
	expected    float64 // requests per second, as a warm-up had them; 0 in the warm-up
}

// warmUp is how long load generators that take a time run before they measure.
func (w work) warmUp() time.Duration { return min(w.duration/5, time.Second) }

// loaded is what a load generator says.
type loaded struct {
	done, errors uint64
	perSecond    float64
	p50, p99     float64 // milliseconds
}

// cluster is a system that runs.
type cluster struct {
	processes []*process
	addresses []string // of clients' ports, the first is the one that all clients use, if not spread
	etcd      []string // of those that serve etcd's API, likewise
	pids      []int    // of the members
	metrics   []string // URLs, one a member; nil if there are none
	syncs     []string // names of the counters of syncs in them
	state     string   // of a devnet, by which its commands find it
}

// stop ends all processes, last started first.
func (c *cluster) stop() error {
	var err error
	for i := len(c.processes) - 1; i >= 0; i-- {
		c.processes[i].terminate()
	}
	for i := len(c.processes) - 1; i >= 0; i-- {
		err = errors.Join(err, c.processes[i].wait())
	}
	return err
}

// plan is a system with what is said of it.
type plan struct {
	name  string // that --systems knows
	title string // in tables and pictures
	make  func(programs programs, spread bool) (system, error)
}

// baseline is the system that the others are compared with.
const baseline = "etcd"

// plans are all systems, in the order of the tables.
var plans = []plan{
	{"etcd", "etcd, 3 members", func(p programs, spread bool) (system, error) { return newEtcd(p, spread) }},
	{"crash", "Aweigh crash, 3 anchors", func(p programs, spread bool) (system, error) { return newAweigh(p, spread, "crash", 3) }},
	{"bft", "Aweigh bft, 4 anchors", func(p programs, spread bool) (system, error) { return newAweigh(p, spread, "bft", 4) }},
	{"fast", "Aweigh fast, 4 anchors", func(p programs, spread bool) (system, error) { return newAweigh(p, spread, "fast", 4) }},
	{"cometbft", "CometBFT kvstore, 4 validators", func(p programs, _ bool) (system, error) { return newComet(p) }},
	{"crash-first-come", "Aweigh crash, 3 anchors, first come", func(p programs, spread bool) (system, error) { return newFirstCome(p, spread, "crash", 3) }},
	{"bft-first-come", "Aweigh bft, 4 anchors, first come", func(p programs, spread bool) (system, error) { return newFirstCome(p, spread, "bft", 4) }},
}

// choose finds the plans of a list like etcd,bft, in the order of the tables.
func choose(list string) ([]plan, error) {
	wanted := make(map[string]bool)
	for _, name := range strings.Split(list, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []plan
	var known []string
	for _, p := range plans {
		known = append(known, p.name)
		if wanted[p.name] {
			chosen = append(chosen, p)
			delete(wanted, p.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("compare: no system is called %q; there are %s", name, strings.Join(known, ", "))
	}
	return chosen, nil
}

// programs is the directory of the programs that scripts/compare built.
type programs string

// find is the path of a program. Where it is missing, NAME.skipped says why.
func (p programs) find(name string) (string, error) {
	path := filepath.Join(string(p), name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if reason, err := os.ReadFile(path + ".skipped"); err == nil {
		return "", fmt.Errorf("compare: %s: %s", name, strings.TrimSpace(string(reason)))
	}
	return "", fmt.Errorf("compare: there is no program %s; start scripts/compare, which builds it", path)
}

// until tries again and again, for at most a minute, until there is no error.
func until(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("compare: it is not ready: %w (%w)", err, ctx.Err())
		case <-tick.C:
		}
	}
}
