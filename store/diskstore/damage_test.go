package diskstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

// worn makes a directory with tables, several logs and a tail of commits that
// are in the log alone, and returns its content.
func worn(t *testing.T, dir string) string {
	t.Helper()
	p, err := Open(dir, Options{MemTableBytes: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for i := range 250 {
			put(t, p, fmt.Sprintf("k%04d", i), strings.Repeat(fmt.Sprint(round), 900), i%50 == 0)
		}
		if err := p.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		put(t, p, fmt.Sprint("tail", i), "v", true)
	}
	holds := all(t, p)
	closed(t, p)
	return holds
}

// fate is the fate of a damaged directory: "whole", "refused" or "fails".
// Anything else fails the test: above all a store that opens with less than was
// synced, without an error.
func fate(t *testing.T, what, dir, want string) string {
	t.Helper()
	look, lookErr := Open(dir, Options{ReadOnly: true}) // sees the same, and changes nothing
	if lookErr == nil {
		_ = look.Close()
	}
	for range 2 { // damage seen once is not forgotten
		p, err := Open(dir, Options{})
		if (err == nil) != (lookErr == nil) {
			t.Errorf("%s: %v, and read-only: %v", what, err, lookErr)
		}
		if err != nil {
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: refused without saying that %s is damaged: %v", what, dir, err)
			}
			continue
		}
		got := ""
		err = p.Scan(nil, nil, false, func(key, value []byte) bool {
			got += fmt.Sprintf("%q=%q ", key, value)
			return true
		})
		if err == nil {
			if w, g := strings.Fields(want), strings.Fields(got); len(w) != len(g) {
				t.Errorf("%s: opened with %d keys of %d, and said nothing", what, len(g), len(w))
			}
			_ = p.Close()
			return "whole"
		}
		again := p.Commit([]kv.Op{kv.Set([]byte("new"), nil)}, true)
		if !errors.Is(again, store.ErrFailed) || !errors.Is(again, ErrDamaged) || !strings.Contains(again.Error(), dir) {
			t.Errorf("%s: reading failed with %v, and a commit then gave %v", what, err, again)
		}
		_ = p.Close()
		return "fails"
	}
	return "refused"
}

// TestNoDamageIsSilent damages each file of a store in turn: a bit flipped at
// many places, cut off, missing. Either everything is still there, or the store
// reports damage.
func TestNoDamageIsSilent(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	src := filepath.Join(t.TempDir(), "src")
	holds := worn(t, src)
	entries, err := os.ReadDir(src)
	if err != nil {
		t.Fatal(err)
	}
	fates := make(map[string]int)
	try := func(what string, change func(dir string) error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "x")
		if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
			t.Fatal(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		fates[fate(t, what, dir, holds)]++
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		name, size := e.Name(), info.Size()
		try(name+" missing", func(dir string) error { return os.Remove(filepath.Join(dir, name)) })
		places := []int64{0, size / 2, size - 3, 12, 45, size - 60}[:testshort.Cases(3, 3, 6)]
		for _, at := range places {
			if at < 0 || at >= size {
				continue
			}
			try(fmt.Sprintf("%s flipped at %d", name, at), func(dir string) error { return flip(filepath.Join(dir, name), at) })
			try(fmt.Sprintf("%s cut at %d", name, at), func(dir string) error { return os.Truncate(filepath.Join(dir, name), at) })
		}
	}
	try("all but SYNCED missing", func(dir string) error {
		for _, e := range entries {
			if e.Name() != syncedName {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
		return nil
	})
	t.Log(fates)
	for _, f := range []string{"whole", "refused", "fails"} {
		if fates[f] == 0 {
			t.Errorf("no damage ended as %s: %v", f, fates)
		}
	}
}

func flip(name string, at int64) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	if err == nil {
		b[0] ^= 0x10
		_, err = f.WriteAt(b, at)
	}
	return errors.Join(err, f.Close())
}

// TestCrashIsNoDamage: whatever a crash keeps of the unsynced commits, the
// store opens again, and holds the synced ones.
func TestCrashIsNoDamage(t *testing.T) {
	for percent := 0; percent <= 100; percent += 20 {
		mem := vfs.NewCrashableMem()
		p := openMem(t, mem)
		for i := range 200 {
			put(t, p, fmt.Sprintf("k%03d", i), strings.Repeat("x", 500), i%7 == 0)
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, uint64(percent)))})
		closed(t, p)
		again := openMem(t, crashed)
		for i := 0; i < 200; i += 7 {
			if _, ok, err := again.Get(fmt.Appendf(nil, "k%03d", i)); !ok || err != nil {
				t.Errorf("%d%%: k%03d, which was synced, is gone: %v", percent, i, err)
			}
		}
		closed(t, again)
	}
}

// TestCopyHoldsNoClaims: a copy may be older than the last sync.
func TestCopyHoldsNoClaims(t *testing.T) {
	dir := t.TempDir()
	p := open(t, filepath.Join(dir, "data"))
	put(t, p, "a", "1", true)
	copied := filepath.Join(dir, "copy")
	err := p.Copy(func(files []CopyFile) error {
		if err := os.Mkdir(copied, 0o700); err != nil {
			return err
		}
		if err := p.Copy(func([]CopyFile) error { return nil }); !errors.Is(err, ErrCopying) {
			t.Errorf("two copies at a time: %v", err)
		}
		put(t, p, "b", "2", true)
		for _, f := range files {
			if err := os.Link(filepath.Join(dir, "data.copy", f.Name), filepath.Join(copied, f.Name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, p)
	c := open(t, copied)
	if got := all(t, c); !strings.Contains(got, "a") || strings.Contains(got, "b") {
		t.Errorf("the copy holds %s", got)
	}
	closed(t, c)
	if _, err := os.Stat(filepath.Join(dir, "data.copy")); err == nil {
		t.Error("the copy was left behind")
	}
}

// TestMarkThatCannotBeWrittenStops: a sync that cannot be noted is a fault.
func TestMarkThatCannotBeWrittenStops(t *testing.T) {
	var toggle errorfs.Toggle
	toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, syncedName) && op.Kind == errorfs.OpFileWriteAt {
			return errorfs.ErrInjected
		}
		return nil
	})
	p := openMem(t, errorfs.Wrap(vfs.NewMem(), &toggle))
	put(t, p, "a", "1", true)
	toggle.On()
	for range 2 {
		if err := p.Commit([]kv.Op{kv.Set([]byte("b"), nil)}, true); !errors.Is(err, store.ErrFailed) || !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("commit: %v", err)
		}
	}
	toggle.Off()
	_ = p.Close()
}
