package running

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func add(t *testing.T, e Entry) func() {
	t.Helper()
	remove, err := Add(e)
	if err != nil {
		t.Fatal(err)
	}
	return remove
}

func TestNetworksThatRunAreFound(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if _, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("nothing runs: %v", err)
	}
	remove := add(t, Entry{Kind: "devnet", DataDir: "/a", Network: "n1", APIs: []string{"1", "2"}})
	add(t, Entry{Kind: "node", DataDir: "/b", Network: "n1", APIs: []string{"3"}})
	if e, err := Find(); err != nil || len(e.APIs) != 3 || e.APIs[0] != "1" || e.PID != os.Getpid() {
		t.Errorf("got %+v, %v", e, err)
	}
	add(t, Entry{Kind: "node", DataDir: "/c0", Network: "n1", APIs: []string{"an anchor"}, Anchors: true})
	if e, err := Find(); err != nil || len(e.APIs) != 4 || e.APIs[0] != "an anchor" {
		t.Errorf("anchors come first: %+v, %v", e, err)
	}
	forget := add(t, Entry{Kind: "devnet", DataDir: "/c", Network: "n2", APIs: []string{"4"}})
	if _, err := Find(); !errors.Is(err, ErrMany) {
		t.Errorf("two networks: %v", err)
	}
	forget()
	remove()
	if e, err := Find(); err != nil || len(e.APIs) != 2 {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestEntriesOfDeadProcessesDoNotCount(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"dead.json":   `{"pid": 2147483646, "apis": ["x"]}`,
		"broken.json": `{`,
		"none.json":   `{"pid": 0, "apis": ["x"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestEntriesAreForTheirOwnerAlone(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	add(t, Entry{Kind: "devnet", DataDir: "/a", Network: "n", APIs: []string{"1"}})
	dir, _ := Dir()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
