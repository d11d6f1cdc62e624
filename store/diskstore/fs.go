package diskstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskFS is the file system under Pebble, watched. It explains a lock, times the
// syncs of the log, and keeps the errors of the log from Pebble.
//
// Pebble panics on these, sometimes with its own mutexes in a state that ends
// the process past any recover (rotateWAL, v2.1.7). So diskFS notes the fault
// and returns no error. Callers still get it: Commit looks at the fault after
// each sync. From then on writes to the log are discarded: the content of the
// disk stays a prefix, as after a crash, and no newer file makes its torn end
// look like corruption.
type diskFS struct {
	vfs.FS
	real  bool // the operating system's
	fault *fault
	dead  atomic.Bool // the log has failed; fault is set

	mu    sync.Mutex
	syncs syncs
}

// Unwrap implements vfs.FS.
func (d *diskFS) Unwrap() vfs.FS { return d.FS }

// Create implements vfs.FS.
func (d *diskFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.Create(name, c) })
}

// ReuseForWrite implements vfs.FS.
func (d *diskFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(name, func() (vfs.File, error) { return d.FS.ReuseForWrite(old, name, c) })
}

// OpenDir implements vfs.FS. Pebble syncs the directory to create a log.
func (d *diskFS) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return dirFile{f, d}, nil
}

// Lock implements vfs.FS.
func (d *diskFS) Lock(name string) (io.Closer, error) {
	l, err := d.FS.Lock(name)
	var path *os.PathError
	if err == nil || errors.As(err, &path) { // the file cannot even be made
		return l, err
	}
	who := "this process, or another"
	var no syscall.Errno
	if d.real && errors.As(err, &no) { // never ask about a lock of our own: see holder
		if pid := holder(name); pid != 0 {
			who = fmt.Sprintf("process %d", pid)
		}
	}
	return nil, fmt.Errorf("%w: held by %s; stop it or choose another directory (%w)", ErrLocked, who, err)
}

// Holder is the process that has the store of a directory open, 0 if none is known. Never ask about a store that this
// process has open: see holder.
func Holder(dir string) int { return holder(filepath.Join(dir, "LOCK")) }

// open opens a file for writing, watched if it belongs to the log.
func (d *diskFS) open(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return open()
	}
	if !d.dead.Load() {
		f, err := open()
		if err == nil {
			return &logFile{f, d}, nil
		}
		d.note(err)
	}
	return &logFile{vfs.NewMemFile(nil), d}, nil
}

// note remembers err, if it is one, and buries the log. The fault comes first:
// a caller whose write is discarded must find it.
func (d *diskFS) note(err error) {
	if err != nil {
		d.fault.set(fmt.Errorf("write to the log: %w", err))
		d.dead.Store(true)
	}
}

func (d *diskFS) synced(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs.add(took)
}

// dirFile is a directory. Its syncs go on after the log is dead, because tables
// that are still being written depend on them.
type dirFile struct {
	vfs.File
	disk *diskFS
}

func (f dirFile) Sync() error {
	f.disk.note(f.File.Sync())
	return nil
}

// logFile is one file of the log.
type logFile struct {
	vfs.File
	disk *diskFS
}

func (f *logFile) Write(b []byte) (int, error) {
	if !f.disk.dead.Load() {
		_, err := f.File.Write(b)
		f.disk.note(err)
	}
	return len(b), nil
}

func (f *logFile) Preallocate(offset, length int64) error {
	return f.try(func() error { return f.File.Preallocate(offset, length) })
}

func (f *logFile) Sync() error     { return f.try(f.timed(f.File.Sync)) }
func (f *logFile) SyncData() error { return f.try(f.timed(f.File.SyncData)) }

// Close closes the file even if the log is dead.
func (f *logFile) Close() error {
	f.disk.note(f.File.Close())
	return nil
}

func (f *logFile) try(do func() error) error {
	if !f.disk.dead.Load() {
		f.disk.note(do())
	}
	return nil
}

func (f *logFile) timed(sync func() error) func() error {
	return func() error {
		start := time.Now()
		err := sync()
		if err == nil {
			f.disk.synced(time.Since(start))
		}
		return err
	}
}
