// Package tiles keeps the lineage of a scope as files that any web server can serve, in the form of C2SP's tlog-tiles
// (https://c2sp.org/tlog-tiles): the hashes in tiles of 256, the entries in bundles of 256, and the newest checkpoint.
// Monitors and witnesses of transparency logs read this form.
package tiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// Errors about a directory and what is to be kept in it.
var (
	ErrBusy    = errors.New("tiles: another process works on the directory")
	ErrOther   = errors.New("tiles: the directory holds something else")
	ErrDamaged = errors.New("tiles: the directory is damaged; remove it, and make it anew")
	ErrHead    = errors.New("tiles: the entries are not those of the checkpoint")
	ErrEntry   = errors.New("tiles: an entry is too long for a bundle")
)

const (
	width    = 256 // hashes in a tile, entries in a bundle
	maxEntry = 1<<16 - 1

	named  = "checkpoint"
	staged = ".new" // files that no checkpoint has yet
	locked = ".lock"
)

// Dir is a directory with the first Size entries of a log. What Add adds shows only after Seal, and is lost without.
// It is not safe for concurrent use.
type Dir struct {
	at     *os.Root
	lock   io.Closer
	size   int64
	levels []level
	bundle []byte   // the entries after the last full bundle
	made   []string // staged files
}

// level is the hashes of the tree that are as far above the leaves: each is the root over a full tile of the level
// below.
type level struct {
	full   int64       // tiles
	hashes []tlog.Hash // after them, fewer than width
}

// Open opens a directory for the log of an origin, and makes it if there is none. Errors wrap ErrOther, ErrDamaged,
// ErrBusy or those of the file system.
func Open(dir, origin string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	at, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := vfs.Default.Lock(filepath.Join(dir, locked)) // which ends with the process
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrBusy, dir, err), at.Close())
	}
	d := &Dir{at: at, lock: lock}
	if err := d.load(dir, origin); err != nil {
		return nil, errors.Join(err, at.Close(), lock.Close())
	}
	return d, nil
}

func (d *Dir) load(dir, origin string) error {
	if err := d.at.RemoveAll(staged); err != nil {
		return err
	}
	note, err := d.at.ReadFile(named)
	if errors.Is(err, fs.ErrNotExist) {
		return d.vacant(dir)
	}
	if err != nil {
		return err
	}
	text, _, _ := bytes.Cut(note, []byte("\n\n"))
	c, err := lineage.ParseCheckpoint(string(text) + "\n")
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrOther, dir, err)
	case c.Origin != origin:
		return fmt.Errorf("%w: %s is the history of %s, and not of %s", ErrOther, dir, c.Origin, origin)
	}
	d.size = c.Head.Size
	for l, n := 0, d.size; n > 0; l, n = l+1, n/width {
		at := level{full: n / width}
		if w := int(n % width); w > 0 {
			raw, err := d.at.ReadFile(tilePath(l, at.full, w))
			if err == nil && len(raw) != w*tlog.HashSize {
				err = fmt.Errorf("tile %d of level %d has %d bytes", at.full, l, len(raw))
			}
			if err != nil {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			for h := range slices.Chunk(raw, tlog.HashSize) {
				at.hashes = append(at.hashes, tlog.Hash(h))
			}
		}
		d.levels = append(d.levels, at)
	}
	if w := int(d.size % width); w > 0 {
		if d.bundle, err = d.at.ReadFile(bundlePath(d.size/width, w)); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if n, err := entries(d.bundle); err != nil || n != w {
			return fmt.Errorf("%w: a bundle of %d entries, where there are %d", ErrDamaged, n, w)
		}
	}
	if d.Root() != c.Head.Root {
		return fmt.Errorf("%w: its tiles are not those of its checkpoint", ErrDamaged)
	}
	return nil
}

// vacant refuses a directory with anything in it.
func (d *Dir) vacant(dir string) error {
	all, err := fs.ReadDir(d.at.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name() == "tile" || e.Name() == locked || e.Name() == "lost+found" { // of an attempt that was cut off, or of a file system
			continue
		}
		return fmt.Errorf("%w: %s has %s in it; name a new or an empty one", ErrOther, dir, e.Name())
	}
	return nil
}

// Close ends the use of the directory, and drops what was added since the last Seal.
func (d *Dir) Close() error {
	return errors.Join(d.at.RemoveAll(staged), d.at.Close(), d.lock.Close())
}

// Size is how many entries there are.
func (d *Dir) Size() int64 { return d.size }

// Root is the root over the entries (RFC 6962, section 2.1).
func (d *Dir) Root() aweigh.Hash {
	var root *tlog.Hash
	for l := range d.levels { // the last hashes come first: subtrees on the right are smaller
		all := d.levels[l].hashes
		for n := 1; n < width; n *= 2 {
			if len(all)&n == 0 {
				continue
			}
			h := fold(all[len(all)-n:])
			if all = all[:len(all)-n]; root != nil {
				h = tlog.NodeHash(h, *root)
			}
			root = &h
		}
	}
	if root == nil {
		return new(lineage.Tree).Head().Root
	}
	return aweigh.Hash(*root)
}

// fold is the root over a power of two of hashes.
func fold(all []tlog.Hash) tlog.Hash {
	if len(all) == 1 {
		return all[0]
	}
	half := len(all) / 2
	return tlog.NodeHash(fold(all[:half]), fold(all[half:]))
}

// Add adds the next entry. The error wraps ErrEntry if it has more than 65,535 bytes, or is of the file system.
func (d *Dir) Add(entry []byte) error {
	if len(entry) > maxEntry {
		return fmt.Errorf("%w: entry %d has %d bytes, and %d are the most", ErrEntry, d.size, len(entry), maxEntry)
	}
	d.bundle = append(binary.BigEndian.AppendUint16(d.bundle, uint16(len(entry))), entry...)
	if d.size++; d.size%width == 0 {
		if err := d.stage(bundlePath(d.size/width-1, width), d.bundle); err != nil {
			return err
		}
		d.bundle = nil
	}
	return d.push(0, tlog.RecordHash(entry))
}

func (d *Dir) push(l int, h tlog.Hash) error {
	if l == len(d.levels) {
		d.levels = append(d.levels, level{})
	}
	at := &d.levels[l]
	if at.hashes = append(at.hashes, h); len(at.hashes) < width {
		return nil
	}
	full, hashes := at.full, at.hashes
	at.full, at.hashes = full+1, nil
	if err := d.stage(tilePath(l, full, width), joined(hashes)); err != nil {
		return err
	}
	return d.push(l+1, fold(hashes))
}

// Check returns an error that wraps ErrHead if the entries are not those that a head names.
func (d *Dir) Check(head lineage.Head) error {
	if got := d.Root(); head.Size != d.size || head.Root != got {
		return fmt.Errorf("%w: %d entries with the root %s, where it names %d with %s", ErrHead, d.size, got, head.Size, head.Root)
	}
	return nil
}

// Seal shows what was added, under a checkpoint with its signatures. The error wraps ErrHead if the entries are not
// those that the head names; then nothing is shown.
func (d *Dir) Seal(head lineage.Head, note []byte) error {
	if err := d.Check(head); err != nil {
		return err
	}
	for l := range d.levels {
		if at := &d.levels[l]; len(at.hashes) > 0 {
			if err := d.stage(tilePath(l, at.full, len(at.hashes)), joined(at.hashes)); err != nil {
				return err
			}
		}
	}
	if w := int(d.size % width); w > 0 {
		if err := d.stage(bundlePath(d.size/width, w), d.bundle); err != nil {
			return err
		}
	}
	err := d.show(d.made...)
	if err == nil {
		err = d.stage(named, note)
	}
	if err == nil {
		err = d.show(named) // the last, when all that it names is there
	}
	d.made = nil
	return err
}

// stage writes a file that show moves to its place.
func (d *Dir) stage(name string, data []byte) error {
	d.made = append(d.made, name)
	to := path.Join(staged, name)
	if err := d.at.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := d.at.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// show moves staged files to their places, for good.
func (d *Dir) show(names ...string) error {
	synced := make(map[string]bool)
	for _, name := range names {
		in := path.Dir(name)
		if err := d.at.MkdirAll(in, 0o755); err != nil {
			return err
		}
		if err := d.at.Rename(path.Join(staged, name), name); err != nil {
			return err
		}
		for ; !synced[in]; in = path.Dir(in) {
			synced[in] = true
		}
	}
	for in := range synced { // order-free: all of them
		f, err := d.at.Open(in)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
