package diskstore

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CopyFile is one file of a copy.
type CopyFile struct {
	Name string // without folders
	Size int64  // bytes

	path string
	fs   vfs.FS
}

// Open opens the file for reading.
func (f CopyFile) Open() (io.ReadCloser, error) { return f.fs.Open(f.path) }

// ErrCopying means that another Copy is under way.
var ErrCopying = errors.New("store: a copy is being made already; try again when it is done")

// Copy calls give with a consistent copy of the store as of now, which with all
// its files makes a directory for Open, while commits go on. The copy is
// in the directory's name + ".copy", mostly as hard links, and is removed when
// give returns; the next Copy removes one that a crash left there.
func (s *Store) Copy(give func([]CopyFile) error) (err error) {
	if !s.copying.CompareAndSwap(false, true) {
		return ErrCopying
	}
	defer s.copying.Store(false)
	dir := s.dir + ".copy"
	if err := s.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	if err := s.Checkpoint(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.fs.RemoveAll(dir)) }()
	names, err := s.fs.List(dir)
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	slices.Sort(names)
	files := make([]CopyFile, len(names))
	for i, name := range names {
		path := s.fs.PathJoin(dir, name)
		info, err := s.fs.Stat(path)
		if err != nil {
			return fmt.Errorf("store: copy: %w", err)
		}
		files[i] = CopyFile{Name: name, Size: info.Size(), path: path, fs: s.fs}
	}
	return give(files)
}
