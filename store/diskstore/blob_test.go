package diskstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aweigh/aweigh/store"
)

// TestVanishedValuesStopTheStore: a file of values goes while the store is open, and Pebble does not get to panic.
func TestVanishedValuesStopTheStore(t *testing.T) {
	dir := t.TempDir()
	worn(t, dir)
	p, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	files, err := filepath.Glob(filepath.Join(dir, "*"+blobSuffix))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	err = p.Scan(nil, nil, false, func(_, _ []byte) bool { return true })
	if err == nil || !errors.Is(p.Err(), ErrDamaged) {
		t.Errorf("reading gives %v, and the store says %v", err, p.Err())
	}
}

// TestRewritesThatFailStopTheStore: Pebble would begin a rewrite of a file of values that failed again at once, and
// reports that to its listener alone.
func TestRewritesThatFailStopTheStore(t *testing.T) {
	f := newFault("data")
	l := listener(f)
	l.BlobFileRewriteEnd(pebble.BlobFileRewriteInfo{})
	l.BlobFileRewriteEnd(pebble.BlobFileRewriteInfo{Err: pebble.ErrCancelledCompaction})
	if err := f.get(); err != nil {
		t.Errorf("a rewrite that was not needed any more: %v", err)
	}
	l.BlobFileRewriteEnd(pebble.BlobFileRewriteInfo{Err: os.ErrPermission})
	if err := f.get(); !errors.Is(err, os.ErrPermission) || !errors.Is(err, store.ErrFailed) {
		t.Error(err)
	}
}
