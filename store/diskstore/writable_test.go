package diskstore

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestDirectoryThatCannotBeWrittenFails: at once, and not after the many tries that
// Pebble would make.
func TestDirectoryThatCannotBeWrittenFails(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("permissions do not bind this user, or this system has none")
	}
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	done := make(chan error, 1)
	go func() {
		_, err := Open(dir, Options{})
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("it opens: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it tries for ever")
	}
}

// TestFullDiskIsRefused: where no byte can be written, and where there is room to
// begin and none for the log's content. Once there is room, all is there.
func TestFullDiskIsRefused(t *testing.T) {
	t.Parallel()
	for name, hits := range map[string]func(path string) bool{
		"no byte":  func(string) bool { return true },
		"no table": func(path string) bool { return strings.HasSuffix(path, ".sst") },
	} {
		t.Run(name, func(t *testing.T) {
			var toggle errorfs.Toggle
			toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
				if (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFilePreallocate) && hits(op.Path) {
					return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
				return nil
			})
			disk := errorfs.Wrap(vfs.NewMem(), &toggle)
			p := openMem(t, disk)
			put(t, p, "k", "v", true)
			closed(t, p)
			toggle.On()
			done := make(chan error, 1)
			go func() {
				_, err := Open("data", Options{FS: disk})
				done <- err
			}()
			select {
			case err := <-done:
				if !errors.Is(err, ErrNoRoom) || errors.Is(err, ErrDamaged) {
					t.Errorf("a full disk is refused as: %v", err)
				}
			case <-time.After(20 * time.Second):
				toggle.Off()
				t.Fatal("it tries for ever")
			}
			toggle.Off()
			for p = nil; p == nil; { // begun work ends, now that it can
				var err error
				if p, err = Open("data", Options{FS: disk}); err != nil && !errors.Is(err, ErrLocked) {
					t.Fatal(err)
				}
			}
			defer closed(t, p)
			if v, _, err := p.Get([]byte("k")); string(v) != "v" || err != nil {
				t.Errorf("with room again: %q, %v", v, err)
			}
			if _, err := disk.Stat("data/probe"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the probe is left: %v", err)
			}
		})
	}
}
