//go:build unix && !solaris && !illumos && !aix

package diskstore

import (
	"io"
	"os"
	"syscall"
)

// holder is the process that has locked the file, 0 if that cannot be known (as
// across containers). Never ask about a file that this process has locked:
// closing any descriptor of a file drops the process's own locks on it (POSIX,
// fcntl).
func holder(name string) int {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil || l.Type == syscall.F_UNLCK {
		return 0
	}
	return int(l.Pid)
}
