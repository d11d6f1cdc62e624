package diskstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkBlobs refuses a directory that lacks files of values. Pebble asks for them only when they are
// read, and panics then, see Open. Surplus files may hide a missing one; they
// are removed when the directory is opened again.
func checkBlobs(disk vfs.FS, db *pebble.DB, dir string) error {
	have := make(map[string]bool)
	list := func() error {
		names, err := disk.List(dir)
		if err != nil {
			return fmt.Errorf("store: list %s: %w", dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, blobSuffix) {
				have[name] = true
			}
		}
		return nil
	}
	err := list()
	want := db.Metrics().BlobFiles.LiveCount
	if err == nil {
		err = list() // merges that run already may have made some in between, and removed others
	}
	if err == nil && uint64(len(have)) < want {
		err = fmt.Errorf("%w: %s holds %d files of values (*%s) and needs %d", ErrDamaged, dir, len(have), blobSuffix, want)
	}
	return err
}

const blobSuffix = ".blob"

// Open implements vfs.FS. It looks at the end of a file of values before Pebble does, which
// panics if the file is missing or its end is damaged (DB.reportCorruption, v2.1.7), also in the background.
func (d *diskFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if !strings.HasSuffix(name, blobSuffix) {
		return f, err
	}
	if err == nil {
		var r objstorage.Readable
		if r, err = sstable.NewSimpleReadable(f); err == nil {
			_, err = blob.NewFileReader(context.Background(), r, blob.FileReaderOptions{}) // it holds nothing but f
		}
		if err == nil {
			return f, nil
		}
		_ = f.Close()
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: file of values %s: %v", ErrDamaged, name, err) // not as Pebble knows it, see above
		d.fault.set(err)
	}
	return nil, err
}
