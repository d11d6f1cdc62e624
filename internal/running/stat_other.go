//go:build !linux

package running

// ended reports whether a process is a zombie; this system is not asked.
func ended(int) bool { return false }
