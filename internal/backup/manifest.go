// Package backup copies a node into a directory, and makes a node of such a
// copy again. A backup looks like a node's directory (package home) with
// backup.json beside, which names every file with its size and SHA-256.
//
// A backup of an anchor remembers what the anchor signed until then, and no
// later ballot. What starts from it must expect to stay silent (P9).
package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// manifestName is the file that makes a directory a backup.
const manifestName = "backup.json"

// Manifest says what a backup holds.
type Manifest struct {
	Format  int       `json:"format"`
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of the program
	Name    string    `json:"name"`    // of the node
	Network string    `json:"network"` // its identity in hexadecimal
	Height  uint64    `json:"height"`  // a final block that the store holds
	Anchor  bool      `json:"anchor"`  // the node had an anchor key
	Keys    bool      `json:"keys"`    // the keys are in here
	Files   []File    `json:"files"`
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

const format = 1

var (
	// ErrThere means that something is there already, and would be overwritten.
	ErrThere = errors.New("backup: already there, and not overwritten")
	// ErrBroken means that a backup is not whole.
	ErrBroken = errors.New("backup: the backup is damaged")
	// ErrKeys means that a node cannot start for want of keys.
	ErrKeys = errors.New("backup: there are no keys")
)

// ReadManifest reads what a backup says of itself.
func ReadManifest(dir string) (m Manifest, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("backup: %s is no backup: it has no %s", dir, manifestName)
	}
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrBroken, manifestName, err)
	}
	if m.Format != format {
		return m, fmt.Errorf("backup: %s has format %d, and this program reads %d: restore it with version %s", dir, m.Format, format, m.Version)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Name) || strings.Contains(f.Name, `\`) {
			return m, fmt.Errorf("%w: %s names a file %q", ErrBroken, manifestName, f.Name)
		}
	}
	return m, nil
}
