package tiles_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/tiles"
	"github.com/aweigh/aweigh/lineage"
)

const origin = "aweigh/test"

// log is entries with their tree, made apart by package tlog.
type log struct {
	entries [][]byte
	hashes  []tlog.Hash // as tlog stores them
}

func (l *log) ReadHashes(indexes []int64) (all []tlog.Hash, err error) {
	for _, i := range indexes {
		all = append(all, l.hashes[i])
	}
	return all, nil
}

func (l *log) add(t fataler, n int) {
	for range n {
		e := bytes.Repeat([]byte(fmt.Sprintf("entry %d ", len(l.entries))), 1+len(l.entries)%7)
		more, err := tlog.StoredHashes(int64(len(l.entries)), e, l)
		if err != nil {
			t.Fatal(err)
		}
		l.entries, l.hashes = append(l.entries, e), append(l.hashes, more...)
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func (l *log) head(t fataler) lineage.Head {
	if len(l.entries) == 0 {
		return new(lineage.Tree).Head()
	}
	root, err := tlog.TreeHash(int64(len(l.entries)), l)
	if err != nil {
		t.Fatal(err)
	}
	return lineage.Head{Size: int64(len(l.entries)), Root: aweigh.Hash(root)}
}

func note(h lineage.Head) []byte {
	return []byte(lineage.Checkpoint{Origin: origin, Head: h}.Text() + "\n— anchor signature\n")
}

// added opens a directory and adds what it lacks of the log.
func (l *log) added(t fataler, dir string) *tiles.Dir {
	t.Helper()
	d, err := tiles.Open(dir, origin)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.entries[d.Size():] {
		if err := d.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// keep brings a directory up to the log.
func (l *log) keep(t fataler, dir string) {
	t.Helper()
	d := l.added(t, dir)
	h := l.head(t)
	if err := d.Seal(h, note(h)); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// reader reads tiles of a directory for package tlog, whose paths name the height of tiles.
type reader string

func (r reader) Height() int                     { return 8 }
func (r reader) SaveTiles([]tlog.Tile, [][]byte) {}
func (r reader) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, x := range all {
		raw, err := os.ReadFile(filepath.Join(string(r), strings.Replace(x.Path(), "tile/8/", "tile/", 1)))
		if err != nil {
			return nil, err
		}
		data = append(data, raw)
	}
	return data, nil
}

// check reads a directory as a monitor does: by its checkpoint alone, with the reader of package tlog.
func (l *log) check(t fataler, dir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(raw), "\n\n")
	c, err := lineage.ParseCheckpoint(text + "\n")
	if err != nil || c.Head != l.head(t) {
		t.Fatalf("%v, %v", c, err)
	}
	from := tlog.TileHashReader(tlog.Tree{N: c.Head.Size, Hash: tlog.Hash(c.Head.Root)}, reader(dir))
	for n := int64(0); n < c.Head.Size; n += 256 {
		w := min(256, c.Head.Size-n)
		name := fmt.Sprintf("tile/entries/%03d", n/256%1000)
		if n/256 >= 1000 {
			name = fmt.Sprintf("tile/entries/x%03d/%03d", n/256/1000, n/256%1000)
		}
		if w < 256 {
			name += fmt.Sprintf(".p/%d", w)
		}
		bundle, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		places := make([]int64, w)
		for i := range w {
			places[i] = tlog.StoredHashIndex(0, n+i)
		}
		hashes, err := from.ReadHashes(places)
		if err != nil {
			t.Fatal(err)
		}
		for i := range w {
			size := int(binary.BigEndian.Uint16(bundle))
			e := bundle[2 : 2+size]
			bundle = bundle[2+size:]
			if hashes[i] != tlog.RecordHash(e) || !bytes.Equal(e, l.entries[n+i]) {
				t.Fatalf("entry %d: %q", n+i, e)
			}
		}
		if len(bundle) > 0 {
			t.Fatalf("%d bytes after the entries of %s", len(bundle), name)
		}
	}
}

// TestTilesAreRead: at each size, a reader that knows the checkpoint alone finds every entry, by the tiles.
func TestTilesAreRead(t *testing.T) {
	var l log
	dir := filepath.Join(t.TempDir(), "tiles")
	sizes := []int{0, 1, 254, 1, 1, 255, 300, 0}
	if !testing.Short() {
		sizes = append(sizes, 65_536-812, 1, 500)
	}
	for _, n := range sizes {
		l.add(t, n)
		l.keep(t, dir)
		l.check(t, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "tile", "2", "000.p", "1")); err != nil && !testing.Short() {
		t.Error(err)
	}
}

func TestTilesGrowBySteps(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "tiles")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var l log
		for range rapid.IntRange(1, 3).Draw(r, "steps") {
			l.add(r, rapid.IntRange(0, 600).Draw(r, "entries"))
			l.keep(r, dir)
		}
		l.check(r, dir)
	})
}

// TestFalseEntriesAreNotShown: of entries that are not those of the head nothing is shown, and the directory goes on
// from what it had.
func TestFalseEntriesAreNotShown(t *testing.T) {
	var l log
	dir := t.TempDir()
	l.add(t, 300)
	l.keep(t, dir)
	before := files(t, dir)
	d, err := tiles.Open(dir, origin)
	if err != nil {
		t.Fatal(err)
	}
	l.add(t, 600)
	for i, e := range l.entries[300:] {
		if i == 400 {
			e = []byte("another")
		}
		if err := d.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	h := l.head(t)
	if err := d.Seal(h, note(h)); !errors.Is(err, tiles.ErrHead) {
		t.Fatalf("another entry is shown: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); after != before {
		t.Errorf("files\n%s\nbefore\n%s", after, before)
	}
	l.keep(t, dir)
	l.check(t, dir)
}

// files lists those of a directory.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func TestOtherDirectoriesAreRefused(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tiles.Open(other, origin); !errors.Is(err, tiles.ErrOther) {
		t.Errorf("a directory with a letter: %v", err)
	}
	var l log
	dir := t.TempDir()
	l.add(t, 300)
	l.keep(t, dir)
	if _, err := tiles.Open(dir, "aweigh/other"); !errors.Is(err, tiles.ErrOther) {
		t.Errorf("the directory of another scope: %v", err)
	}
	for _, name := range []string{"tile/0/001.p/44", "tile/entries/001.p/44"} {
		whole, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for what, bent := range map[string][]byte{"cut off": whole[:len(whole)-1], "empty": {}} {
			if err := os.WriteFile(filepath.Join(dir, name), bent, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := tiles.Open(dir, origin); !errors.Is(err, tiles.ErrDamaged) {
				t.Errorf("%s is %s: %v", name, what, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bent, err := os.ReadFile(filepath.Join(dir, "tile/0/001.p/44"))
	if err != nil {
		t.Fatal(err)
	}
	bent[7]++
	if err := os.WriteFile(filepath.Join(dir, "tile/0/001.p/44"), bent, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tiles.Open(dir, origin); !errors.Is(err, tiles.ErrDamaged) {
		t.Errorf("a bent hash: %v", err)
	}
}

// TestOneProcessAtATime: of two runs the later one could show an older checkpoint again, and files half written.
func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	d, err := tiles.Open(dir, origin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tiles.Open(dir, origin); !errors.Is(err, tiles.ErrBusy) {
		t.Errorf("opened twice: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = tiles.Open(dir, origin); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLongEntriesAreRefused(t *testing.T) {
	d, err := tiles.Open(t.TempDir(), origin)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Add(make([]byte, 1<<16-1)); err != nil {
		t.Error(err)
	}
	if err := d.Add(make([]byte, 1<<16)); !errors.Is(err, tiles.ErrEntry) {
		t.Errorf("%v", err)
	}
}
