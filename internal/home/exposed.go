package home

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Exposed reports that users of this machine other than the owner can read or write a file of a secret, with what to do
// about it; "" if they cannot, it is no regular file, or this system does not tell. Others may read a file in a volume
// of Kubernetes: its container alone sees it, and its mode is the volume's.
func Exposed(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return ""
	}
	mode, may := info.Mode().Perm(), ""
	switch {
	case mode&0o022 != 0:
		may = "replace"
	case mode&0o044 != 0 && !projected(name):
		may = "read"
	default:
		return ""
	}
	return fmt.Sprintf("other users can %s %s (%04o): chmod go-rwx, and make another secret if one of them may have read it", may, name, mode)
}

// projected reports whether a file is in a volume of Kubernetes of a secret or of projected sources: a link ..data
// leads to a folder with all files, and changes with them.
func projected(name string) bool {
	file, err := filepath.EvalSymlinks(name)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return false
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		link := filepath.Join(filepath.Dir(dir), "..data")
		if to, err := filepath.EvalSymlinks(link); err == nil && to == dir && dir != link && strings.HasPrefix(filepath.Base(dir), "..") {
			return true
		}
	}
	return false
}
