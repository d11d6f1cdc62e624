package home

import (
	"fmt"
	"os"
	"runtime"
)

// Exposed reports that users of this machine other than the owner can read or write a file of a secret, with what to do
// about it; "" if they cannot, it is no regular file, or this system does not tell.
func Exposed(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return ""
	}
	mode, may := info.Mode().Perm(), ""
	switch {
	case mode&0o022 != 0:
		may = "replace"
	case mode&0o044 != 0:
		may = "read"
	default:
		return ""
	}
	return fmt.Sprintf("other users can %s %s (%04o): chmod go-rwx, and make another secret if one of them may have read it", may, name, mode)
}
