// Package diskstore keeps a store in a directory: Pebble, a log-structured merge
// tree, with the promises of package store. It notices lost syncs, damage, and
// a directory that another process has open.
package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/store"
)

// Errors of directories. The caller must stop.
var (
	// ErrLocked means that another process, or another part of this one, has
	// the directory open.
	ErrLocked = errors.New("store: directory is in use")
	// ErrFormat means that the directory holds something that this version of
	// the program cannot read.
	ErrFormat = errors.New("store: unknown format")
)

// formatKey has the format's version; it is one of the reserved keys.
var formatKey = []byte{0}

// Options tune a Store. The zero value works.
type Options struct {
	// FS is the file system; nil means the operating system's. Tests give one
	// that crashes or fails.
	FS vfs.FS
	// CacheBytes bounds the cache of uncompressed blocks together with two tables in
	// memory, which Pebble takes out of it; 0 means 160 MiB. A store without reads
	// uses none of it.
	CacheBytes int64
	// MemTableBytes is how much is gathered in memory before it is written out
	// as a table; 0 means 20 to 32 MiB. Small stores take less: it starts at 256 KiB.
	// At most four times as much can be waiting, then commits wait too.
	MemTableBytes uint64
	// ReadOnly changes nothing in the directory: no log is replayed onto the
	// disk, commits fail, and a store that is not there is an error. It takes
	// the lock all the same.
	ReadOnly bool
}

// Store is a store.Store in a directory. Safe for concurrent use: commits are
// ordered one after another, and those that wait for the disk at the same time
// share one fsync.
type Store struct {
	db     *pebble.DB
	fs     *diskFS
	dir    string
	fault  *fault
	closed atomic.Bool

	loose   os.FileMode
	copying atomic.Bool
	synced  *synced // nil if it is read only

	early               uint64 // once so many bytes were committed, a table is written out before it is full
	commits, ops, bytes atomic.Uint64
}

// Open opens the store in dir, and creates it if there is none. Errors:
// ErrLocked, ErrFormat, ErrNoRoom, store.ErrFailed, ErrDamaged if it lacks anything that was synced, as far as
// its files show, and errors of the disk.
func Open(dir string, o Options) (*Store, error) {
	fs := &diskFS{FS: o.FS, fault: newFault(dir)}
	if o.FS == nil {
		abs, err := filepath.Abs(dir) // locks know paths by their spelling
		if err != nil {
			return nil, fmt.Errorf("store: open %s: %w", dir, err)
		}
		dir, fs.FS, fs.real = abs, vfs.Default, true
	}
	if !o.ReadOnly {
		if err := writable(fs.FS, dir); err != nil {
			return nil, fmt.Errorf("store: open %s: %w", dir, err)
		}
		if fs.real {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("store: open %s: %w", dir, err)
			}
		}
	}
	_, err := fs.Stat(fs.PathJoin(dir, syncedName))
	known := err == nil
	db, err := openDB(dir, tuned(o, fs), fs.fault)
	if errors.Is(err, ErrNoRoom) || errors.Is(err, store.ErrFailed) {
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", dir, damaged(err, known))
	}
	s := &Store{db: db, fs: fs, dir: dir, fault: fs.fault}
	if o.MemTableBytes == 0 {
		s.early = 1 + rand.Uint64N(mostEarly)
	}
	err = checkBlobs(fs, db, dir)
	switch {
	case err != nil:
	case !o.ReadOnly:
		err = s.check(known)
	case known:
		err = compare(fs, db, dir)
	}
	if err == nil && o.ReadOnly {
		err = checkFormat(db, dir, known)
	}
	if err == nil && !o.ReadOnly && fs.real { // the files in it are as the umask makes them
		s.loose, err = tighten(dir)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Loose returns the mode that the directory had when it was opened, if other users had access to it, which they have no
// more; 0 if they had none.
func (s *Store) Loose() os.FileMode { return s.loose }

// check makes sure that what Pebble opened is what this program left there. It
// leaves nothing in the directory of another program.
func (s *Store) check(known bool) (err error) {
	if !known {
		if err := checkFormat(s.db, s.dir, known); err != nil {
			return err
		}
		s.synced, err = openSynced(s.fs, s.dir)
		return err
	}
	if s.synced, err = openSynced(s.fs, s.dir); err != nil {
		return err
	}
	if err = s.synced.check(s.db, s.dir); err == nil {
		err = checkFormat(s.db, s.dir, known)
	}
	if err != nil {
		return errors.Join(err, s.synced.file.Close())
	}
	return nil
}

// tableBytes is the most that a table in memory takes unless its user says otherwise. How much less it takes is
// random: anchors that take the same writes would write their tables out at the same moment for ever, and every write
// that waits for a quorum would wait for that. Pebble's first tables grow by doubling, from the same size in every
// store that was just opened; when the first is written out is random as well.
const tableBytes = 32 << 20

// mostEarly is after how many bytes, at most, a store writes its first table out. Pebble itself does so when its first
// tables, from 256 KiB to 8 MiB, are full.
const mostEarly = 15 << 20

// fileBytes is how long the files are that tables and merges are written to, at most. Each file costs a sync
// and later a removal, either of which the log's syncs wait for in the journal of the file system.
const fileBytes = 32 << 20

// tuned is made for many small writes and point reads on a machine that also
// does other work, with several stores in one process.
func tuned(o Options, fs *diskFS) *pebble.Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 160 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = tableBytes - rand.Uint64N(tableBytes*3/8)
	}
	p := &pebble.Options{
		FS:                          fs,
		ReadOnly:                    o.ReadOnly,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		FlushSplitBytes:             2 * fileBytes,
		L0CompactionThreshold:       8, // twice what Pebble takes: merges of more at a time are fewer
		L0StopWritesThreshold:       24,
		MaxOpenFiles:                256,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		// Fixed, not "newest": an upgrade of the library must not by itself
		// make directories unreadable to the version before.
		FormatMajorVersion: pebble.FormatValueSeparation,
		Logger:             logger{fs.fault},
		EventListener:      listener(fs.fault),
	}
	p.Experimental.FileCacheShards = 1
	// Blocks are long and stand under hashes, and so are most versions longer than
	// their keys: kept apart from them, they are not written again by every compaction.
	p.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled: true, MinimumSize: 256, MaxBlobReferenceDepth: 10,
			RewriteMinimumAge: 5 * time.Minute, TargetGarbageRatio: 0.3,
		}
	}
	for i := range p.Levels {
		p.TargetFileSizes[i] = fileBytes
		p.Levels[i].IndexBlockSize = 256 << 10            // one step leads to a block, not two, where a table's index is no longer
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // 1 % of reads of absent keys touch a block
	}
	return p
}

// Get implements kv.Reader. It also works after the store has failed.
func (s *Store) Get(key []byte) (value []byte, ok bool, err error) {
	if s.closed.Load() {
		return nil, false, store.ErrClosed
	}
	return get(s.db, s.fault, key)
}

// Scan implements kv.Reader. It sees one moment, whatever is committed meanwhile.
func (s *Store) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return scan(s.db, s.fault, from, to, reverse, nil, visit)
}

// Sift implements kv.Sifter.
func (s *Store) Sift(from, to []byte, want func(key []byte, size int) bool,
	visit func(key, value []byte) bool) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return scan(s.db, s.fault, from, to, false, want, visit)
}

// Snapshot implements store.Store.
func (s *Store) Snapshot() store.Snapshot { return pebbleSnapshot{s.db.NewSnapshot(), s.fault} }

// Close implements store.Store. Closing twice is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.db.Close()
	if s.synced != nil {
		err = errors.Join(err, s.synced.file.Close())
	}
	if err != nil {
		return fmt.Errorf("store: close %s: %w", s.dir, err)
	}
	return s.fault.get() // then unsynced commits may be lost
}

type pebbleSnapshot struct {
	s     *pebble.Snapshot
	fault *fault
}

func (s pebbleSnapshot) Get(key []byte) ([]byte, bool, error) { return get(s.s, s.fault, key) }

func (s pebbleSnapshot) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	return scan(s.s, s.fault, from, to, reverse, nil, visit)
}

func (s pebbleSnapshot) Sift(from, to []byte, want func(key []byte, size int) bool,
	visit func(key, value []byte) bool) error {
	return scan(s.s, s.fault, from, to, false, want, visit)
}

func (s pebbleSnapshot) Close() error { return s.s.Close() }

func get(r pebble.Reader, f *fault, key []byte) ([]byte, bool, error) {
	if store.Reserved(key) {
		return nil, false, nil
	}
	v, release, err := r.Get(key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("store: get %q: %w", key, f.read(err))
	}
	value := bytes.Clone(v)
	if err := release.Close(); err != nil {
		return nil, false, fmt.Errorf("store: get %q: %w", key, err)
	}
	return value, true, nil
}

// scan visits the wanted pairs; a nil want wants all.
func scan(r pebble.Reader, f *fault, from, to []byte, reverse bool, want func(key []byte, size int) bool,
	visit func(key, value []byte) bool) (err error) {
	lower, some := store.Bounds(from, to)
	if !some {
		return nil
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: to})
	if err != nil {
		return fmt.Errorf("store: scan from %q: %w", from, err)
	}
	defer func() { // also when visit panics, or the tables it read could never be deleted
		if e := it.Close(); e != nil && err == nil { // repeats what stopped the iteration
			err = fmt.Errorf("store: scan from %q: %w", from, e)
		}
	}()
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		if want != nil {
			value := it.LazyValue()
			if !want(it.Key(), value.Len()) {
				continue
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("store: scan from %q: %w", from, f.read(err))
		}
		if !visit(it.Key(), value) {
			return nil
		}
	}
	return nil
}
