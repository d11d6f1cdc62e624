//go:build !unix

package running

import "os"

// alive reports whether a process runs.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Release()
	}
	return pid > 0 && err == nil && !ended(pid)
}
