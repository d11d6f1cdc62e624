package diskstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
)

// TestDiskIsWhatTheFilesTake: the log that is being written to as well, and those
// that it has left behind.
func TestDiskIsWhatTheFilesTake(t *testing.T) {
	dir := t.TempDir()
	p, err := Open(dir, Options{MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closed(t, p) }()
	const each = 200 * 100 // the values of a commit alone
	write := func(commits int) {
		for i := range commits {
			if err := p.Commit(some(i*200, 200), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, stage := range []struct {
		name string
		do   func()
	}{
		{"one log", func() { write(6) }},
		{"many logs, which were left behind", func() { write(300) }},
		{"a log in the place of an old one", func() {
			if err := p.db.Flush(); err != nil {
				t.Fatal(err)
			}
			write(20)
		}},
		{"files of values, opened again", func() {
			for i := range 100 {
				value := make([]byte, 10_000)
				rand.NewChaCha8([32]byte{byte(i)}).Read(value)
				if err := p.Commit([]kv.Op{kv.Set(fmt.Appendf(nil, "long %d", i), value)}, true); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(p.db.Flush(), p.Close()); err != nil {
				t.Fatal(err)
			}
			if p, err = Open(dir, Options{MemTableBytes: 1 << 20}); err != nil {
				t.Fatal(err)
			}
		}},
		{"files of values that went", func() {
			for i := range 100 {
				if err := p.Commit([]kv.Op{kv.Del(fmt.Appendf(nil, "long %d", i))}, true); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.db.Compact(t.Context(), []byte("long"), []byte("m"), false); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		stage.do()
		m, files := p.Metrics(), size(t, dir)
		testwait.For(t, func() error { // until it has cleaned up
			if m, files = p.Metrics(), size(t, dir); !near(m.Disk, files) {
				return fmt.Errorf("%s: the files have %d bytes, and the store says %d", stage.name, files, m.Disk)
			}
			return nil
		})
		if m.Live > m.Disk || m.Live < each {
			t.Errorf("%s: %d bytes of %d are needed", stage.name, m.Live, m.Disk)
		}
	}
}

// near allows for files that Pebble does not count, like SYNCED, and for the rest
// of a block of the log.
func near(a, b uint64) bool { return max(a, b)-min(a, b) <= 64<<10 }

func size(t *testing.T, dir string) (sum uint64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil { // else it has just gone
			sum += uint64(info.Size())
		}
	}
	return sum
}

func TestSyncsAreCountedByTheirTime(t *testing.T) {
	var s syncs
	for _, took := range []time.Duration{
		0, time.Millisecond, time.Millisecond + 1, 2 * time.Millisecond, 500 * time.Millisecond,
		8192 * time.Millisecond, 8192*time.Millisecond + 1, time.Minute,
	} {
		s.add(took)
	}
	at := s.atMost()
	for bound, want := range map[time.Duration]uint64{
		time.Millisecond: 2, 2 * time.Millisecond: 4, 256 * time.Millisecond: 4, 512 * time.Millisecond: 5, 8192 * time.Millisecond: 6,
	} {
		if at[bound] != want {
			t.Errorf("%d took at most %s, not %d", at[bound], bound, want)
		}
	}
	if len(at) != 14 || s.count != 8 || s.min != 0 || s.max != time.Minute {
		t.Errorf("%d bounds, %+v", len(at), s)
	}

	p := open(t, t.TempDir())
	defer closed(t, p)
	before := p.Metrics()
	for i := range 3 {
		if err := p.Commit(some(i, 1), true); err != nil {
			t.Fatal(err)
		}
	}
	m := p.Metrics()
	if m.Syncs != before.Syncs+3 || m.SyncAtMost[8192*time.Millisecond] != m.Syncs {
		t.Errorf("%d syncs, then %d, of which %d took at most 8.192 s", before.Syncs, m.Syncs, m.SyncAtMost[8192*time.Millisecond])
	}
}
