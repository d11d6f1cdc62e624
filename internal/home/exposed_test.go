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

// TestFilesOfVolumesOfKubernetesAreNotExposed: their modes are those of the volume, which its links show.
func TestFilesOfVolumesOfKubernetesAreNotExposed(t *testing.T) {
	volume, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{volume}, parts...)...) }
	data := "..2026_01_02_03_04_05.67"
	for _, err := range []error{
		os.MkdirAll(at(data, "in"), 0o755), os.Mkdir(at("other"), 0o755),
		os.WriteFile(at(data, "token"), []byte("x"), 0o644), os.WriteFile(at(data, "in", "key"), []byte("x"), 0o644),
		os.WriteFile(at("own"), []byte("x"), 0o644), os.WriteFile(at("other", "key"), []byte("x"), 0o644),
		os.Symlink(data, at("..data")), os.Symlink("..data/token", at("token")), os.Symlink("..data/in", at("in")),
		os.Symlink("..data/token", at("other", "..data")), os.WriteFile(at(data, "open"), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(at(data, "open"), 0o666); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	for name, exposed := range map[string]bool{
		"token": false, "in/key": false, "..data/token": false, "own": true, "other/key": true, "..data/open": true,
	} {
		if got := Exposed(at(filepath.FromSlash(name))); (got != "") != exposed {
			t.Errorf("%s: %q", name, got)
		}
	}
}
