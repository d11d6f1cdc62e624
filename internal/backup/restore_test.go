package backup

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/aweigh/aweigh/internal/home"
)

// TestBackupsThatNameFilesElsewhereAreRefused: a backup is data from somewhere.
func TestBackupsThatNameFilesElsewhereAreRefused(t *testing.T) {
	for _, name := range []string{"../evil", "/etc/evil", "store/../../evil", "", `store\..\evil`} {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "node")
		raw, err := json.Marshal(Manifest{Format: format, Keys: true, Files: []File{{Name: name}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, manifestName), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(from, home.Dir(to), false, nil); !errors.Is(err, ErrBroken) {
			t.Errorf("a file called %q: %v", name, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("a file called %q: something was written", name)
		}
	}
}

// TestRestoreThatFailsLeavesNothing: not even the keys that it had copied.
func TestRestoreThatFailsLeavesNothing(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	raw, err := json.Marshal(Manifest{Format: format, Keys: true, Files: []File{
		{Name: "anchor.key", Size: 1, SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}, // x
		{Name: "store/000001.log", Size: 1, SHA256: "00"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{manifestName: string(raw), "anchor.key": "x"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Restore(from, home.Dir(to), false, nil); !errors.Is(err, ErrBroken) {
		t.Errorf("restored what is not there: %v", err)
	}
	left, err := os.ReadDir(to)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
