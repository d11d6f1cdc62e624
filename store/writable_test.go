package store

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// TestDirectoryThatCannotBeWrittenFails: at once, and not after the many tries that
// Pebble would make.
func TestDirectoryThatCannotBeWrittenFails(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("permissions do not bind this user, or this system has none")
	}
	dir := t.TempDir()
	s, err := OpenPebble(dir, Options{})
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
		_, err := OpenPebble(dir, Options{})
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
