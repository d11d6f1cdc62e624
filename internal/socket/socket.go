// Package socket opens Unix sockets that the owner of a process alone reaches, and finds the user at the other end of a
// connection.
package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Longest bounds the path of a socket, in bytes: sun_path has 104 of them on macOS and the BSDs, 108 on Linux, and the
// last is zero.
const Longest = 103

var (
	// ErrLong means that a path is too long for a socket.
	ErrLong = errors.New("socket: the path is too long")
	// ErrServed means that another process serves at a path.
	ErrServed = errors.New("socket: another process serves here")
	// ErrOccupied means that a path holds something else than a socket.
	ErrOccupied = errors.New("socket: there is a file that is not a socket")
)

// Listen opens a socket of mode 0600 in a directory of mode 0700, which it makes. It replaces the socket that a process
// left there which ended without closing it. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	if len(path) > Longest {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are taken", ErrLong, path, len(path), Longest)
	}
	// Only the owner reaches the socket before its own mode is set: the mode of the directory comes first.
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := vacate(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return l, nil
}

// patience bounds how long a process may take to accept a connection.
const patience = time.Second

// vacate removes a socket at which no process listens.
func vacate(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%w: %s", ErrOccupied, path)
	}
	c, err := net.DialTimeout("unix", path, patience)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("%w: %s", ErrServed, path)
	}
	if !refused(err) { // it may be busy
		return fmt.Errorf("%w: %s: %w", ErrServed, path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	return nil
}
