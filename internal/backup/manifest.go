// Package backup copies a node into a directory, and makes a node of such a
// copy again. A backup looks like a node's directory (package home) with
// backup.json beside, which names every file with its size and SHA-256, and
// backup.sig, in which the node signs that.
//
// A backup of an anchor has the record of the anchor's ballots until then, and
// of no later one. An anchor that starts from it may have to stay silent (P9).
package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
)

// The files that make a directory a backup.
const (
	manifestName  = "backup.json"
	signatureName = "backup.sig"
)

// Bounds of a manifest.
const (
	maxManifest = 64 << 20
	maxFiles    = 1 << 18
	maxSmall    = 64 << 20 // bytes of a file outside of the store
)

// Manifest describes the content of a backup.
type Manifest struct {
	Format  int             `json:"format"`
	Made    time.Time       `json:"made"`
	Version string          `json:"version"` // of the program
	Name    string          `json:"name"`    // of the node
	Node    string          `json:"node"`    // its peer ID
	Key     votes.PublicKey `json:"key"`     // its identity, which signs
	Network string          `json:"network"` // its identity in hexadecimal
	Height  uint64          `json:"height"`  // a final block of the root scope that the store holds
	Anchor  bool            `json:"anchor"`  // the node had an anchor key
	Keys    bool            `json:"keys"`    // the keys are in here
	Scopes  []Scope         `json:"scopes"`  // that the node held when the backup began
	Files   []File          `json:"files"`
}

// Scope is one that a node held.
type Scope struct {
	Prefix string `json:"prefix"`
	Scope  string `json:"scope"` // its identity in hexadecimal
	Height uint64 `json:"height"`
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"` // with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Size is the bytes of all files.
func (m Manifest) Size() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

const format = 2

var (
	// ErrThere means that something is there already, and would be overwritten.
	ErrThere = errors.New("backup: already there, and not overwritten")
	// ErrBroken means that a backup is not whole, or not what its node signed.
	ErrBroken = errors.New("backup: the backup is damaged")
	// ErrNone means that a file or directory is no backup.
	ErrNone = errors.New("backup: not a backup")
	// ErrKeys means that a node cannot start for want of keys.
	ErrKeys = errors.New("backup: there are no keys")
	// ErrName means that the name given for a backup's signer is neither a peer ID nor a
	// key.
	ErrName = errors.New("backup: not a node's name")
	// ErrSigner means that a backup is signed by a node that the caller did not name.
	ErrSigner = errors.New("backup: signed by a node that was not named")
)

// readManifest reads what a backup says of itself, and checks that its node signed it.
// Errors wrap ErrBroken, ErrNone, or fs.ErrNotExist if nothing is there.
func readManifest(dir string) (m Manifest, err error) {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return m, fmt.Errorf("backup: %w", err)
	case !info.IsDir():
		return m, fmt.Errorf("%w: %s is not a directory", ErrNone, dir)
	}
	raw, err := small(dir, manifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w: %s has no %s", ErrNone, dir, manifestName)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrBroken, manifestName, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("backup: %s has format %d, and this program reads %d: restore it with version %q", dir, m.Format, format, m.Version)
	}
	signature, err := small(dir, signatureName, 1<<10)
	if err != nil {
		return m, fmt.Errorf("%w: it is not signed: %w", ErrBroken, err)
	}
	if err := votes.Verify(m.Key, votes.ContextBackup, raw, signature); err != nil {
		return m, fmt.Errorf("%w: %s differs from the file that the node signed: %w", ErrBroken, manifestName, err)
	}
	return m, m.check()
}

// small reads a file of a directory that is no link and has at most so many bytes.
func small(dir, name string, most int64) ([]byte, error) {
	f, err := plain(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrBroken, name, most)
	}
	return raw, err
}

// plain opens a file below a directory, if neither it nor a directory on the way is a
// link.
func plain(dir, name string) (*os.File, error) {
	at := dir
	parts := strings.Split(name, "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err != nil {
			return nil, fmt.Errorf("backup: %w", err)
		}
		if last := i == len(parts)-1; last && !info.Mode().IsRegular() || !last && !info.IsDir() {
			return nil, fmt.Errorf("%w: %s is not a plain file or directory: links are not followed", ErrBroken, at)
		} else if last {
			f, err := os.Open(at)
			if err != nil {
				return nil, fmt.Errorf("backup: %w", err)
			}
			if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
				return nil, errors.Join(fmt.Errorf("%w: %s was exchanged meanwhile", ErrBroken, at), err, f.Close())
			}
			return f, nil
		}
	}
	return nil, fs.ErrNotExist
}

// inStore is what files of a store are called.
var inStore = regexp.MustCompile(`^store/[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// check makes sure that the network is an identity, and bounds what a restore writes: known names, each once, of sizes
// that add up.
func (m *Manifest) check() error {
	if _, err := aweigh.ParseHash(m.Network); err != nil {
		return fmt.Errorf("%w: %s names no network: %q", ErrBroken, manifestName, m.Network)
	}
	wrong := func(f File) error {
		return fmt.Errorf("%w: %s names a file %q of %d bytes", ErrBroken, manifestName, f.Name, f.Size)
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("%w: %s names %d files, at most %d are taken", ErrBroken, manifestName, len(m.Files), maxFiles)
	}
	seen := make(map[string]bool, len(m.Files))
	sum := int64(0)
	for _, f := range m.Files {
		small := f.Name == "genesis.cbor" || f.Name == "config.yaml" || m.Keys && (f.Name == "identity.key" || f.Name == "anchor.key")
		if !small && !inStore.MatchString(f.Name) || small && f.Size > maxSmall || f.Size < 0 || seen[f.Name] {
			return wrong(f)
		}
		if seen[f.Name] = true; sum > sum+f.Size {
			return wrong(f)
		}
		sum += f.Size
	}
	return nil
}
