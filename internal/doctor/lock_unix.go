//go:build unix && !solaris && !illumos && !aix

package doctor

import (
	"io"
	"os"
	"syscall"
)

// lockHolder is the process that has locked a file, 0 if none is known. Do not
// ask while this process holds it: closing the file would drop the lock.
func lockHolder(name string) int {
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
