package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkBlobs refuses a directory that lacks files of values. Pebble asks for them only when they are
// read, and panics then, as Open says. Files that are left over may hide one that is
// missing; they are gone when the directory is opened again.
func checkBlobs(fs vfs.FS, db *pebble.DB, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("store: list %s: %w", dir, err)
	}
	have := uint64(0)
	for _, name := range names {
		if strings.HasSuffix(name, ".blob") {
			have++
		}
	}
	if want := db.Metrics().BlobFiles.LiveCount; have < want {
		return fmt.Errorf("%w: %s holds %d files of values (*.blob) and needs %d", ErrDamaged, dir, have, want)
	}
	return nil
}

// Open implements vfs.FS. It looks at the end of a file of values before Pebble does, which
// panics if it finds damage there (DB.reportCorruption, v2.1.7), also in the background.
func (d *diskFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".blob") {
		return f, err
	}
	r, err := sstable.NewSimpleReadable(f)
	if err == nil {
		_, err = blob.NewFileReader(context.Background(), r, blob.FileReaderOptions{}) // it holds nothing but f
	}
	if err == nil {
		return f, nil
	}
	if pebble.IsCorruptionError(err) {
		err = fmt.Errorf("%w: corrupt file %s: %v", ErrDamaged, name, err) // not as Pebble's error, see above
		d.fault.set(err)
	}
	_ = f.Close()
	return nil, err
}
