package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLeastLimitOfAllGroupsCounts(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/memory.max", "1000\n")
	write("a/b/memory.max", "max\n")
	write("a/b/memory.events", "low 0\noom 3\noom_kill 2\n")
	m := memory{limit: 5000}
	m.climb(root, "/a/b", "memory.max", "memory.events")
	if m.limit != 1000 || m.killed != 2 {
		t.Errorf("%+v", m)
	}
	m = memory{limit: 500}
	m.climb(root, "/a/b/none", "memory.max", "memory.events")
	if m.limit != 500 {
		t.Errorf("more than the machine has: %+v", m)
	}
}

func TestOwnLimitsAreKnown(t *testing.T) {
	limit, used, err := openFiles(os.Getpid())
	if err != nil || limit < 3 || used < 3 || used > limit {
		t.Errorf("%d of %d open files, %v", used, limit, err)
	}
	if own, _, err := openFiles(0); err != nil || own != limit {
		t.Errorf("%d, not %d: %v", own, limit, err)
	}
	for _, pid := range []int{0, os.Getpid()} {
		if m, err := memoryOf(pid); err != nil || m.limit < 16<<20 {
			t.Errorf("%+v, %v", m, err)
		}
	}
}
