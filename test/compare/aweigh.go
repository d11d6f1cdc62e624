package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/internal/ports"
)

// aweigh is a devnet, every anchor a process. Clients talk to one node, unless
// spread.
type aweigh struct {
	program, mode string
	anchors       int
	spread        bool
	rate          int      // of the scope that is flooded, see isolation
	settings      []string // of nodes, as environment variables
}

func newAweigh(p programs, spread bool, mode string, anchors int) (*aweigh, error) {
	program, err := p.find("aweigh")
	return &aweigh{program: program, mode: mode, anchors: anchors, spread: spread}, err
}

// newFirstCome is Aweigh where no scope gives way to another.
func newFirstCome(p programs, spread bool, mode string, anchors int) (*aweigh, error) {
	a, err := newAweigh(p, spread, mode, anchors)
	a.settings = []string{"AWEIGH_FIRST_COME=true"}
	return a, err
}

func (a *aweigh) start(ctx context.Context, dir string) (*cluster, error) {
	state, data := filepath.Join(dir, "state"), filepath.Join(dir, "data")
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	etcd := "127.0.0.1:" + strconv.Itoa(free[0])
	p, err := launch(filepath.Join(dir, "devnet.log"), append(a.settings, "XDG_RUNTIME_DIR="+state), a.program,
		"devnet", "--processes", "--data-dir", data, "--mode", a.mode, "--nodes", strconv.Itoa(a.anchors), "--etcd-listen", etcd)
	if err != nil {
		return nil, err
	}
	c := &cluster{processes: []*process{p}, syncs: []string{"aweigh_store_syncs_total"}, state: state, etcd: []string{etcd}}
	err = until(ctx, func(context.Context) error {
		if err := p.alive(); err != nil {
			return err
		}
		// The entry by which other commands find a network, made when it decides.
		entries, err := filepath.Glob(filepath.Join(state, "aweigh", "devnet-*.json"))
		if err != nil || len(entries) == 0 {
			return errors.Join(err, errors.New("compare: the devnet has no address yet"))
		}
		text, err := os.ReadFile(entries[0])
		if err != nil {
			return err
		}
		var entry struct {
			APIs []string `json:"apis"`
		}
		if err := json.Unmarshal(text, &entry); err != nil {
			return err
		}
		if len(entry.APIs) != a.anchors {
			return fmt.Errorf("%w: %d addresses of %d anchors", errOutput, len(entry.APIs), a.anchors)
		}
		c.addresses = entry.APIs
		return nil
	})
	if err != nil {
		return c, err
	}
	files, err := filepath.Glob(filepath.Join(data, "*", "node.pid"))
	if err != nil || len(files) != a.anchors {
		return c, errors.Join(err, fmt.Errorf("%w: %d processes of %d anchors", errOutput, len(files), a.anchors))
	}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return c, fmt.Errorf("%w: %s: %w", errOutput, file, err)
		}
		c.pids = append(c.pids, pid)
		c.metrics = append(c.metrics, "http://"+c.addresses[i]+"/metrics")
	}
	return c, nil
}

func (a *aweigh) load(ctx context.Context, c *cluster, w work) (loaded, error) {
	duration := w.duration
	if w.expected == 0 {
		duration = w.warmUp()
	}
	if w.operation != put && w.operation != get {
		return loaded{}, errNone
	}
	addresses, keys := c.addresses, keySpace
	if !a.spread {
		addresses = addresses[:1]
	}
	if w.operation == get {
		keys = 1 // as etcd's load generator reads one
	}
	text, err := output(ctx, nil, a.program, "bench", w.operation, "-o", "json", "--api", strings.Join(addresses, ","),
		"--clients", strconv.Itoa(w.clients), "--connections", strconv.Itoa(w.connections), "--duration", duration.String(),
		"--key-size", strconv.Itoa(keySize), "--value-size", strconv.Itoa(valueSize), "--keys", strconv.Itoa(keys))
	if err != nil {
		return loaded{}, err
	}
	return parseAweigh(text)
}
