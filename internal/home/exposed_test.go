package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExposedFilesAreNoticed: a secret that others can read, and a file that is for its owner alone.
func TestExposedFilesAreNoticed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "anchor.key")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o700: "", 0o640: "can read ", 0o604: "can read ", 0o620: "can replace ", 0o666: "can replace ",
	} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if got := Exposed(name); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%04o: %q", mode, got)
		}
	}
	for _, other := range []string{filepath.Dir(name), name + ".none", os.DevNull} {
		if got := Exposed(other); got != "" {
			t.Errorf("%s: %q", other, got)
		}
	}
}
