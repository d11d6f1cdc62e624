package diskstore

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestTheStoreIsForItsUserAlone: other users have no access to a store, neither to a new one nor to one that was open
// to them.
func TestTheStoreIsForItsUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no such modes")
	}
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "store")
	for _, loose := range []os.FileMode{0, 0o755, 0} {
		if loose != 0 {
			if err := os.Chmod(dir, loose); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 || s.Loose() != loose {
			t.Errorf("the directory has the mode %v, %v; it had %v, want %v", info.Mode(), err, s.Loose(), loose)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
