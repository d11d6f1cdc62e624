// Package home is a node's directory:
//
//	config.yaml    settings, as the flags of "aweigh node" name them
//	identity.key   the node's Ed25519 key: its libp2p identity, and the author of what it admits
//	anchor.key     signs ballots; only anchors have one
//	genesis.cbor   the network's genesis
//	store/         the node's state
//	run/api.sock   where the node's API listens, while it runs
//
// Keys are readable by their owner alone. Nothing here is ever overwritten.
package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aweigh/aweigh/internal/syncdir"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Dir is the path of a node's directory.
type Dir string

// Paths of the files in it.
func (d Dir) Config() string   { return filepath.Join(string(d), "config.yaml") }
func (d Dir) Identity() string { return filepath.Join(string(d), "identity.key") }
func (d Dir) Anchor() string   { return filepath.Join(string(d), "anchor.key") }
func (d Dir) Genesis() string  { return filepath.Join(string(d), "genesis.cbor") }
func (d Dir) Store() string    { return filepath.Join(string(d), "store") }
func (d Dir) TLS() string      { return filepath.Join(string(d), "tls") }     // certificates that the node makes
func (d Dir) Scratch() string  { return filepath.Join(string(d), "scratch") } // files of a moment

var (
	// ErrThere means that a file is there already.
	ErrThere = errors.New("home: already there, and not overwritten")
	// ErrNone means that a directory holds no node.
	ErrNone = errors.New("home: no node")
)

// Exists reports whether there is a node in the directory.
func (d Dir) Exists() bool {
	_, err := os.Stat(d.Genesis())
	return err == nil
}

// write makes a file that was not there. It gets its name once it is whole; if that fails, nothing is left.
func (d Dir) write(name string, data []byte, mode fs.FileMode) (err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("home: %w", err)
	}
	f, err := os.CreateTemp(string(d), filepath.Base(name)+".new*")
	if err != nil {
		return fmt.Errorf("home: %w", err)
	}
	defer func() {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("home: %w", err)
	}
	err = os.Link(f.Name(), name) // a rename would overwrite an existing file
	if _, there := os.Lstat(name); errors.Is(err, fs.ErrExist) || err != nil && there == nil {
		return fmt.Errorf("%w: %s", ErrThere, name)
	}
	if err != nil { // a file system without links
		err = os.Rename(f.Name(), name)
	}
	if err == nil {
		err = syncdir.Sync(string(d))
	}
	if err != nil {
		return fmt.Errorf("home: %w", err)
	}
	return nil
}

// NewKey makes a key file, or reads the one that is there.
func (d Dir) NewKey(name string) (votes.PrivateKey, error) {
	if k, ok, err := readKey(name); ok || err != nil {
		return k, err
	}
	k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		return k, err
	}
	return k, d.write(name, []byte(k.Encode()+"\n"), 0o600)
}

func readKey(name string) (k votes.PrivateKey, ok bool, err error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	if err != nil {
		return k, false, fmt.Errorf("home: %w", err)
	}
	if len(text) == 0 {
		return k, false, fmt.Errorf("home: %s is empty: bring it back from a backup of the node, or remove it if no node ran here", name)
	}
	if k, err = votes.ParsePrivateKey(string(text)); err != nil {
		return k, false, fmt.Errorf("%s: %w", name, err)
	}
	return k, true, nil
}

// Keys are the node's keys; anchor is nil if it has none.
func (d Dir) Keys() (identity votes.PrivateKey, anchor *votes.PrivateKey, err error) {
	identity, ok, err := readKey(d.Identity())
	if err != nil {
		return identity, nil, err
	}
	if !ok {
		if _, err := os.Stat(d.Genesis()); err == nil {
			return identity, nil, fmt.Errorf("%w that is whole in %s: %s is missing; bring it back from a backup of the node", ErrNone, d, d.Identity())
		}
		return identity, nil, fmt.Errorf("%w in %s; make one with \"aweigh init\" or \"aweigh join\"", ErrNone, d)
	}
	k, ok, err := readKey(d.Anchor())
	if err != nil || !ok {
		return identity, nil, err
	}
	return identity, &k, nil
}

// SaveGenesis writes the genesis. One that is there must be the same.
func (d Dir) SaveGenesis(g scope.Genesis) error {
	err := d.write(d.Genesis(), g.Encode(), 0o600)
	if errors.Is(err, ErrThere) {
		if old, readErr := d.ReadGenesis(); readErr == nil && old.Hash() == g.Hash() {
			return nil
		}
	}
	return err
}

// ReadGenesis reads the genesis.
func (d Dir) ReadGenesis() (scope.Genesis, error) {
	raw, err := os.ReadFile(d.Genesis())
	if errors.Is(err, fs.ErrNotExist) {
		return scope.Genesis{}, fmt.Errorf("%w in %s, as it has no genesis; make one with \"aweigh init\" or \"aweigh join\"", ErrNone, d)
	}
	if err != nil {
		return scope.Genesis{}, fmt.Errorf("home: %w", err)
	}
	g, err := scope.DecodeGenesis(raw)
	if err != nil {
		return g, fmt.Errorf("%s is damaged or cut off; all nodes of the network have the same file: %w", d.Genesis(), err)
	}
	return g, nil
}
