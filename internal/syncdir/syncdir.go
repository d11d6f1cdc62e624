// Package syncdir makes the names in a directory durable: a file that was created, linked or renamed is there after a
// crash only once its directory is synced.
package syncdir

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// Sync syncs a directory. Where the system or the file system cannot, and need not, it does nothing.
func Sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = d.Sync(); errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
