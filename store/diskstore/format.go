package diskstore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// format is the version of a directory's content: its keys, and the encoding of
// their values. It changes whenever an older program would misread what a newer
// one wrote.
const format = "2"

// checkFormat writes the format into a new store and compares it in an old one.
// known reports that the directory was a store of this program.
func checkFormat(db *pebble.DB, dir string, known bool) error {
	v, release, err := db.Get(formatKey)
	switch {
	case err == nil:
		found := string(v)
		if err := release.Close(); err != nil {
			return fmt.Errorf("store: read format of %s: %w", dir, err)
		}
		if found != format {
			return fmt.Errorf("%w: %s has format %q and this program reads %q: run the version that wrote it, or start from a backup of this version", ErrFormat, dir, found, format)
		}
		return nil
	case !errors.Is(err, pebble.ErrNotFound):
		return fmt.Errorf("store: read format of %s: %w", dir, damaged(err, known))
	}
	if known {
		return fmt.Errorf("%w: %s holds no format, and once did", ErrDamaged, dir)
	}
	empty := true
	err = scan(db, newFault(dir), nil, nil, false, nil, func(_, _ []byte) bool { empty = false; return false })
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: %s is a database of another program: choose another directory", ErrFormat, dir)
	}
	if err := db.Set(formatKey, []byte(format), pebble.Sync); err != nil && !errors.Is(err, pebble.ErrReadOnly) {
		return fmt.Errorf("store: write format of %s: %w", dir, err)
	}
	return nil
}
