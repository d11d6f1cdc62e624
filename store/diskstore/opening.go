package diskstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/store"
)

// ErrNoRoom means that the disk was too full to open a store. Nothing was changed.
var ErrNoRoom = errors.New("store: no room on the disk: make room, 200 MiB at least, and start again")

const (
	probeName = "probe"
	probeSize = 1 << 20 // what opening a store writes in any case, and some more
)

// writable fails if an existing directory takes no file, or no bytes: Pebble
// would try for ever, without an error.
func writable(on vfs.FS, dir string) error {
	if _, err := on.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := on.PathJoin(dir, probeName)
	f, err := on.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return refused(err)
	}
	page := make([]byte, probeSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(page) // never fails; no disk makes less of it
	if _, err = f.Write(page); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if gone := on.Remove(name); !errors.Is(gone, fs.ErrNotExist) { // by another process that looks at the same time
		err = errors.Join(err, gone)
	}
	if err = refused(err); err != nil && !errors.Is(err, ErrNoRoom) {
		return fmt.Errorf("%w: %w", store.ErrFailed, err)
	}
	return err
}

// tighten takes access to a directory from other users, unless that is not permitted, and returns its mode before if
// they had any.
func tighten(dir string) (loose fs.FileMode, err error) {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" { // which has no such modes
		return 0, err
	}
	if err = os.Chmod(dir, 0o700); errors.Is(err, fs.ErrPermission) { // of another user, as volumes of containers may be
		err = nil
	}
	return info.Mode().Perm(), err
}

// refused names the want of room.
func refused(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}

// giveUp is how long Pebble may go on opening after something failed in it.
const giveUp = time.Second

// openDB opens the database. Pebble waits there until it has written its log out
// as tables, and when that fails it tries again without end: so the first fault
// ends the waiting, and Pebble is left to itself until the process ends.
func openDB(dir string, o *pebble.Options, f *fault) (*pebble.DB, error) {
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened)
	left := make(chan struct{})
	go func() {
		db, err := pebble.Open(dir, o)
		select {
		case <-left:
			if err == nil {
				_ = db.Close() // the fault was returned
			}
		case done <- opened{db, err}:
		}
	}()
	select {
	case d := <-done:
		return d.db, d.err
	case <-f.failed:
	}
	select {
	case d := <-done:
		return d.db, d.err
	case <-time.After(giveUp):
		close(left)
		return nil, refused(f.get())
	}
}
