package diskstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// synced remembers beside the log how far the log was synced. A log that ends
// early, after a flipped bit or with a file cut off or missing, looks to Pebble
// like one that a crash tore, and the commits behind the damage would be lost
// without an error. For unsynced commits that is right; for synced ones it
// breaks a promise, and more so for a guard's record (P8).
//
// The number is written after each sync and not synced itself, so it is never
// ahead of the log. After a crash of the program it is exact; after one of the
// machine it may be older, and detect less.
type synced struct {
	mu   sync.Mutex
	file vfs.File
	next uint64 // sequence number after the last commit known to be durable
}

const (
	syncedName = "SYNCED"
	syncedSize = 16 // the number, the known flag, and a checksum
	syncedLost = 1  // commits were found missing
)

// ErrDamaged means that a directory lacks data that was made durable in it:
// more may be wrong there.
var ErrDamaged = errors.New("store: the directory is damaged; move it away, and read \"A damaged store\" in the operations manual before the node starts again")

// openSynced reads the number, 0 if there is none, and opens it for writing.
func openSynced(on vfs.FS, dir string) (s *synced, err error) {
	s = &synced{}
	name := on.PathJoin(dir, syncedName)
	if s.file, err = on.OpenReadWrite(name, vfs.WriteCategoryUnspecified); err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	if err := s.read(name, dir); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// read reads the number; 0 is one that is new, or was being written when the
// machine died.
func (s *synced) read(name, dir string) error {
	var b [syncedSize]byte
	n, err := s.file.ReadAt(b[:], 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("store: read %s: %w", name, err)
	case n < len(b) || crc32.ChecksumIEEE(b[:12]) != binary.BigEndian.Uint32(b[12:]):
		return nil
	case b[11] == syncedLost:
		return fmt.Errorf("%w: %s: synced commits were missing when it was opened before", ErrDamaged, dir)
	}
	s.next = binary.BigEndian.Uint64(b[:])
	return nil
}

// compare is what check is, for a database that was opened read-only: it notes
// nothing.
func compare(on vfs.FS, db *pebble.DB, dir string) error {
	name := on.PathJoin(dir, syncedName)
	f, err := on.Open(name)
	if err != nil {
		return fmt.Errorf("store: open %s: %w", name, err)
	}
	s := &synced{file: f}
	if err := errors.Join(s.read(name, dir), f.Close()); err != nil {
		return err
	}
	moment := db.NewSnapshot() // shows the next number, where nothing can be written
	next := uint64(db.Metrics().Snapshots.EarliestSeqNum)
	return errors.Join(s.short(next, dir), moment.Close())
}

// short is ErrDamaged if the log ends before the synced number.
func (s *synced) short(next uint64, dir string) error {
	if next >= s.next {
		return nil
	}
	return fmt.Errorf("%w: %s: its log ends at commit %d, and was synced up to %d", ErrDamaged, dir, next, s.next)
}

// reach notes that everything before next is durable.
func (s *synced) reach(next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next <= s.next {
		return nil
	}
	s.next = next
	return s.write(0)
}

func (s *synced) write(what byte) error {
	var b [syncedSize]byte
	binary.BigEndian.PutUint64(b[:], s.next)
	b[11] = what
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[:12]))
	if _, err := s.file.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("store: write %s: %w", syncedName, err)
	}
	return nil
}

// check is ErrDamaged if a database that was just opened lacks commits that were
// synced. The store stays refused: new commits would take the place of the missing ones.
func (s *synced) check(db *pebble.DB, dir string) error {
	b := db.NewBatch()
	defer b.Close()
	if err := b.LogData(nil, nil); err != nil { // takes no number, and shows the next one
		return err
	}
	if err := db.Apply(b, pebble.NoSync); err != nil {
		return fmt.Errorf("store: open %s: %w", dir, err)
	}
	if err := s.short(uint64(b.SeqNum()), dir); err != nil {
		return errors.Join(err, s.write(syncedLost), s.file.Sync())
	}
	return nil
}

// damaged wraps Pebble's errors about corrupt or missing files in ErrDamaged,
// but no errors of the system. known reports whether there was a store.
func damaged(err error, known bool) error {
	var no syscall.Errno
	system := errors.As(err, &no) && !errors.Is(err, fs.ErrNotExist)
	if strings.Contains(err.Error(), "written in unknown format major version") { // pebble has no value for it
		return fmt.Errorf("%w: a newer version of this program wrote it; run that: %w", ErrFormat, err)
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, pebble.ErrDBNotPristine) || known && !system && !errors.Is(err, ErrLocked) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
