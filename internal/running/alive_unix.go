//go:build unix

package running

import (
	"errors"
	"syscall"
)

// alive reports whether a process runs: it takes a signal that does nothing, and has not ended.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return pid > 0 && (err == nil || errors.Is(err, syscall.EPERM)) && !ended(pid)
}
