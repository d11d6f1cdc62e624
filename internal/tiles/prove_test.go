package tiles_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh/internal/tiles"
)

// TestTilesProveConsistency: from each size, with tiles in the directory, staged and of the last entries, the proof
// leads to the head.
func TestTilesProveConsistency(t *testing.T) {
	var l log
	dir := t.TempDir()
	for _, n := range []int{1, 299, 1, 211, 0, 800} {
		l.add(t, n)
		d := l.added(t, dir)
		h := l.head(t)
		for old := int64(1); old <= h.Size; old++ {
			then, err := tlog.TreeHash(old, &l)
			if err != nil {
				t.Fatal(err)
			}
			p, err := d.Prove(old)
			if err == nil {
				err = tlog.CheckTree(p, h.Size, tlog.Hash(h.Root), old, then)
			}
			if err != nil {
				t.Fatalf("%d of %d: %v", old, h.Size, err)
			}
		}
		if err := d.Seal(h, note(h)); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFalseProofsAreNotMade: a bent tile is the fault of the directory, and no witness is asked about its hashes.
func TestFalseProofsAreNotMade(t *testing.T) {
	var l log
	dir := t.TempDir()
	l.add(t, 600)
	l.keep(t, dir)
	d, err := tiles.Open(dir, origin)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	name := filepath.Join(dir, "tile", "0", "000")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bent := bytes.Clone(raw)
	bent[100]++
	for what, now := range map[string][]byte{"bent": bent, "cut off": raw[:256*32-1], "empty": nil} {
		if err := os.WriteFile(name, now, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Prove(7); !errors.Is(err, tiles.ErrDamaged) {
			t.Errorf("a tile is %s: %v", what, err)
		}
	}
}
