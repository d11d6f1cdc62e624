package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// reserved is a file that can be written, found out before there is anything to
// write.
type reserved struct {
	*os.File
	fresh, written bool
}

// reserve opens a file to write. Its content stays until write.
func reserve(path string) (*reserved, error) {
	_, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &reserved{File: f, fresh: fresh}, nil
}

// reserveNew opens a file for output that cannot be made again, like a proof: it refuses an existing file. Other
// kinds, like /dev/stdout, may exist.
func reserveNew(path string) (*reserved, error) {
	if path == "-" {
		return nil, fmt.Errorf("%w: - is not a file: name one, or /dev/stdout", errUsage)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return nil, occupied(path)
	}
	return reserve(path)
}

// reserveSecret opens a new file that its owner alone can read.
func reserveSecret(path string) (*reserved, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, occupied(path)
	}
	if err != nil {
		return nil, err
	}
	return &reserved{File: f, fresh: true}, nil
}

// occupied is the error of a file that is there and must not be.
func occupied(path string) error {
	return fmt.Errorf("%s is there already, and not overwritten: name another file", path)
}

// apart refuses a file that is named for two purposes: one would overwrite the
// other. An empty name, and -, name no file.
func apart(names ...string) error {
	for i, a := range names {
		for _, b := range names[:i] {
			if a == "" || a == "-" {
				continue
			}
			x, errX := os.Stat(a)
			y, errY := os.Stat(b)
			if a == b || errX == nil && errY == nil && os.SameFile(x, y) {
				return fmt.Errorf("%w: %s and %s are one file, and one would overwrite the other", errUsage, b, a)
			}
		}
	}
	return nil
}

// write replaces the content of the file.
func (r *reserved) write(data []byte) error {
	if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
		if err := r.Truncate(0); err != nil {
			return err
		}
	}
	_, err := r.Write(data)
	r.written = err == nil
	return errors.Join(err, r.Close())
}

// release closes the file, and removes it if it was made for nothing.
func (r *reserved) release() {
	_ = r.Close()
	if r.fresh && !r.written {
		_ = os.Remove(r.Name())
	}
}
