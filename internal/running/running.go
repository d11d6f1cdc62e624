// Package running keeps a list of the networks and nodes that run on this
// machine for this user, so that commands find them without an address. Each
// has a small file, readable by the user alone; one whose process is gone does
// not count.
package running

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/aweigh/aweigh"
)

// Entry is one network of nodes, or one node, that runs.
type Entry struct {
	PID     int      `json:"pid"`
	Kind    string   `json:"kind"` // devnet or node
	DataDir string   `json:"data_dir"`
	Network string   `json:"network"` // its ID in hexadecimal
	APIs    []string `json:"apis"`    // addresses
	Anchors bool     `json:"anchors"` // they held the keys of anchors when they started
}

// ErrNone means that nothing runs here.
var ErrNone = errors.New("running: no node runs here; start one with \"aweigh devnet\", or name one with --api unix:///DATA-DIR/run/api.sock, or HOST:PORT")

// ErrMany means that it is not clear which is meant.
var ErrMany = errors.New("running: more than one network runs here; choose with --api")

// Dir is where the entries stand: below XDG_RUNTIME_DIR, or in the user's
// state directory.
func Dir() (string, error) {
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return filepath.Join(d, "aweigh"), nil
	}
	d, err := StateDir()
	return filepath.Join(d, "run"), err
}

// StateDir is where data of this user is kept by default: below XDG_STATE_HOME,
// or in ~/.local/state.
func StateDir() (string, error) {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "aweigh"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("running: %w; set XDG_STATE_HOME, or name a --data-dir", err)
	}
	return filepath.Join(home, ".local", "state", "aweigh"), nil
}

// Add enters e, for this process, until remove is called.
func Add(e Entry) (remove func(), err error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("running: %w", err)
	}
	e.PID = os.Getpid()
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, e.Kind+"-"+aweigh.Sum([]byte(e.DataDir)).Short()+".json")
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("running: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return nil, fmt.Errorf("running: %w", err)
	}
	return func() { _ = os.Remove(name) }, nil
}

// List is the entries whose process is alive, by data directory. It removes those
// of processes that are gone.
func List() ([]Entry, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("running: %w", err)
	}
	var entries []Entry
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it ended just now
		}
		var e Entry
		if json.Unmarshal(data, &e) == nil && alive(e.PID) && len(e.APIs) > 0 {
			entries = append(entries, e)
			continue
		}
		_ = os.Remove(f)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].DataDir < entries[j].DataDir })
	return entries, nil
}

// Find is the one network that runs, with the addresses of all its nodes: those of anchors first, since the first
// that answers signs, governs and takes writes.
func Find() (Entry, error) {
	entries, err := List()
	if err != nil {
		return Entry{}, err
	}
	if len(entries) == 0 {
		return Entry{}, ErrNone
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Anchors && !entries[j].Anchors })
	found := entries[0]
	for _, e := range entries[1:] {
		if e.Network != found.Network {
			text := ErrMany
			for _, e := range entries {
				text = fmt.Errorf("%w\n  %s in %s: %s", text, e.Kind, e.DataDir, e.APIs[0])
			}
			return Entry{}, text
		}
		found.APIs = append(found.APIs, e.APIs...)
	}
	return found, nil
}
