//go:build unix

package doctor

import (
	"os"
	"syscall"
)

// ownerOf is the user that a file belongs to.
func ownerOf(name string) (uid int, ok bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
