package diskstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/aweigh/aweigh/kv"
)

// TestReadOnlyChangesNothing opens a store whose log was not replayed yet.
func TestReadOnlyChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Open(dir, Options{ReadOnly: true}); err == nil {
		t.Fatal("a store that is not there was opened")
	}
	p := open(t, dir)
	put(t, p, "k", "v", true)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	p, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := p.Get([]byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("%q, %v, %v", v, ok, err)
	}
	if err := p.Commit([]kv.Op{kv.Set([]byte("k"), []byte("w"))}, true); err == nil {
		t.Error("a commit was taken")
	}
	_ = p.Close() // repeats the failed commit
	if after := listing(t, dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// listing is the files of a directory with their sizes and times, but for the
// lock, which is taken.
func listing(t *testing.T, dir string) (text string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "LOCK" {
			continue
		}
		text += fmt.Sprintln(e.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return text
}
