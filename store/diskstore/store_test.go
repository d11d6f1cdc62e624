package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	p, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t testing.TB, s store.Store, key, value string, sync bool) {
	t.Helper()
	if err := s.Commit([]kv.Op{kv.Set([]byte(key), []byte(value))}, sync); err != nil {
		t.Fatal(err)
	}
}

func TestReopenedDirectoryHoldsEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p := open(t, dir)
	put(t, p, "synced", "1", true)
	put(t, p, "not synced", "2", false)
	want := all(t, p)
	closed(t, p)
	closed(t, p) // twice is harmless
	if _, _, err := p.Get([]byte("synced")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	if err := p.Commit(nil, true); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Commit after Close: %v", err)
	}
	p = open(t, dir)
	defer closed(t, p)
	if got := all(t, p); got != want {
		t.Errorf("reopened: %s, want %s", got, want)
	}
}

func TestOneDirectoryHasOneHolder(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" { // the other process
		_, err := Open(dir, Options{})
		fmt.Println(err, errors.Is(err, ErrLocked))
		return
	}
	dir := t.TempDir()
	p := open(t, dir)
	defer closed(t, p)
	if _, err := Open(dir+"/.", Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice in one process: %v", err)
	}
	other := exec.Command(os.Args[0], "-test.run=^TestOneDirectoryHasOneHolder$")
	other.Env = append(os.Environ(), "STORE_TEST_DIR="+dir)
	out, err := other.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	want := "another process"
	if runtime.GOOS == "linux" {
		want = fmt.Sprintf("held by process %d;", os.Getpid())
	}
	if s := string(out); !strings.Contains(s, want) || !strings.Contains(s, " true\n") {
		t.Errorf("opened in a second process: %s, want %q", s, want)
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	for name, key := range map[string]string{"newer format": "\x00", "other program": "theirs"} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			db, err := pebble.Open("data", &pebble.Options{FS: fs, Logger: logger{newFault("")}})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Set([]byte(key), []byte("99"), pebble.Sync); err != nil {
				t.Fatal(err)
			}
			closed(t, db)
			for range 2 { // the refusal changes nothing and holds no lock
				if _, err := Open("data", Options{FS: fs}); !errors.Is(err, ErrFormat) {
					t.Errorf("opened: %v", err)
				}
			}
		})
	}
}

func TestReservedKeysCannotBeWrittenOrRead(t *testing.T) {
	p := openMem(t, vfs.NewMem())
	defer closed(t, p)
	for _, s := range []store.Store{p, store.NewMem()} {
		for _, key := range []string{"", "\x00"} {
			ops := []kv.Op{kv.Set([]byte("fine"), nil), kv.Set([]byte(key), []byte("mine"))}
			if err := s.Commit(ops, true); !errors.Is(err, store.ErrKey) {
				t.Errorf("%T: commit of %q: %v", s, key, err)
			}
			if _, ok, err := s.Get([]byte(key)); ok || err != nil {
				t.Errorf("%T: get of %q: %v %v", s, key, ok, err)
			}
		}
		if got := all(t, s); got != "" {
			t.Errorf("%T: a refused commit left %s", s, got)
		}
		put(t, s, "\x00\x00", "the first allowed key", true)
	}
}

// TestFailureIsSticky breaks the log at each kind of operation. Whatever was
// synced before must be there afterwards, and nothing may hang.
func TestFailureIsSticky(t *testing.T) {
	cases := map[string]struct {
		sync bool // whether the commit that meets the failure asks for a sync
		hits func(op errorfs.Op) bool
	}{
		"sync of the log":      {true, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync }},
		"write of the log":     {true, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }},
		"unsynced log":         {false, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }},
		"next file of the log": {false, func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			var toggle errorfs.Toggle
			toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
				if (strings.HasSuffix(op.Path, ".log") || op.Path == "data") && c.hits(op) {
					return errorfs.ErrInjected
				}
				return nil
			})
			p := openMem(t, errorfs.Wrap(mem, &toggle))
			put(t, p, "safe", "1", true)
			toggle.On()
			big := kv.Set([]byte("big"), make([]byte, 50<<10))
			var err error
			for i := 0; err == nil && i < 1000; i++ {
				err = p.Commit([]kv.Op{big}, c.sync)
				if c.sync && err == nil {
					t.Fatal("a failed commit was reported as durable")
				}
			}
			toggle.Off() // the disk seems well again, but its content is unknown
			<-p.Failed()
			for _, err := range []error{err, p.Commit(nil, true), p.Commit([]kv.Op{big}, false), p.Err(), p.Checkpoint("copy")} {
				if !errors.Is(err, store.ErrFailed) {
					t.Errorf("got %v, want store.ErrFailed", err)
				}
			}
			if !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("the reason was lost: %v", err)
			}
			if v, ok, err := p.Get([]byte("safe")); string(v) != "1" || !ok || err != nil {
				t.Errorf("reading after a failure: %q %v %v", v, ok, err)
			}
			crashed := mem.CrashClone(vfs.CrashCloneCfg{})
			_ = p.Close() // may well report the failure again; it must return
			p = openMem(t, crashed)
			defer closed(t, p)
			if v, ok, err := p.Get([]byte("safe")); string(v) != "1" || !ok || err != nil {
				t.Errorf("after the crash: %q %v %v", v, ok, err)
			}
		})
	}
}

// TestBackgroundFailureIsNoticed breaks what Pebble does on its own: tables and
// the manifest, where it would end the process.
func TestBackgroundFailureIsNoticed(t *testing.T) {
	for _, part := range []string{".sst", "MANIFEST"} {
		t.Run(part, func(t *testing.T) {
			mem := vfs.NewMem()
			var toggle errorfs.Toggle
			toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
				if strings.Contains(op.Path, part) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
					return errorfs.ErrInjected
				}
				return nil
			})
			p := openMem(t, errorfs.Wrap(mem, &toggle))
			put(t, p, "safe", "1", true)
			toggle.On()
			if _, err := p.db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
			<-p.Failed()
			if err := p.Commit(nil, true); !errors.Is(err, store.ErrFailed) || !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("commit after a failed flush: %v", err)
			}
			toggle.Off()
			_ = p.Close()
			p = openMem(t, mem)
			defer closed(t, p)
			if v, ok, err := p.Get([]byte("safe")); string(v) != "1" || !ok || err != nil {
				t.Errorf("reopened: %q %v %v", v, ok, err)
			}
		})
	}
}

func TestBrokenInvariantOfPebblePanics(t *testing.T) {
	f := newFault("")
	defer func() {
		if _, ok := recover().(must.Violation); !ok || f.get() == nil {
			t.Errorf("went on after a broken invariant; fault %v", f.get())
		}
	}()
	logger{f}.Fatalf("L%d is upside down", 3)
}

// slowFS holds every sync of the log until released.
type slowFS struct {
	vfs.FS
	gate chan struct{}
}

type slowFile struct {
	vfs.File
	gate chan struct{}
}

func (s slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = slowFile{f, s.gate}
	}
	return f, err
}

func (f slowFile) Sync() error     { <-f.gate; return f.File.Sync() }
func (f slowFile) SyncData() error { <-f.gate; return f.File.SyncData() }

// TestConcurrentCommitsShareOneSync queues commits behind one that waits.
func TestConcurrentCommitsShareOneSync(t *testing.T) {
	const writers = 20
	gate := make(chan struct{}, 1000)
	for range 100 {
		gate <- struct{}{}
	}
	p := openMem(t, slowFS{vfs.NewMem(), gate})
	before := p.Metrics().Syncs
	for len(gate) > 0 {
		<-gate
	}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() { put(t, p, fmt.Sprint("key", i), "v", true) })
	}
	for i := range writers { // all are in the log, none is durable
		for {
			if _, ok, _ := p.Get(fmt.Append(nil, "key", i)); ok {
				break
			}
			runtime.Gosched()
		}
	}
	for range 100 {
		gate <- struct{}{}
	}
	wg.Wait()
	m := p.Metrics()
	if m.Commits != writers || m.Ops != writers || m.Syncs-before > 3 {
		t.Errorf("%d commits took %d syncs", m.Commits, m.Syncs-before)
	}
	if m.SyncMin <= 0 || m.SyncMin > m.SyncMax || m.SyncTotal < m.SyncMax {
		t.Errorf("sync times: %+v", m)
	}
	closed(t, p)
}

func TestCheckpointIsTheStoreOfItsMoment(t *testing.T) {
	dir := t.TempDir()
	p := open(t, filepath.Join(dir, "data"))
	defer closed(t, p)
	put(t, p, "a", "1", true)
	put(t, p, "b", "2", false)
	want, copied := all(t, p), filepath.Join(dir, "copy")
	if err := os.MkdirAll(copied+".partial", 0o755); err != nil { // as an interrupted one leaves it
		t.Fatal(err)
	}
	if err := p.Checkpoint(copied); err != nil {
		t.Fatal(err)
	}
	put(t, p, "c", "3", true)
	if err := p.Checkpoint(copied); err == nil {
		t.Error("wrote over an older checkpoint")
	}
	c := open(t, copied)
	defer closed(t, c)
	if got := all(t, c); got != want {
		t.Errorf("the checkpoint holds %s, want %s", got, want)
	}
	put(t, c, "d", "4", true)
	if _, ok, _ := p.Get([]byte("d")); ok {
		t.Error("the copy writes into the original")
	}
}

// TestScanClosesItsIteratorWhenVisitPanics: Close complains about leaked ones.
func TestScanClosesItsIteratorWhenVisitPanics(t *testing.T) {
	p := openMem(t, vfs.NewMem())
	defer closed(t, p)
	put(t, p, "a", "1", true)
	func() {
		defer func() { _ = recover() }()
		_ = p.Scan(nil, nil, false, func(_, _ []byte) bool { panic("visit") })
	}()
}

// TestSiftIsScan: the wanted pairs come, and no others, in order, in every kind of store.
func TestSiftIsScan(t *testing.T) {
	dir := t.TempDir()
	worn(t, dir) // values that stand apart from their keys, among others
	p, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	snapshot := p.Snapshot()
	defer snapshot.Close()
	m := store.NewMem()
	var ops []kv.Op
	if err := p.Scan(nil, nil, false, func(k, v []byte) bool {
		ops = append(ops, kv.Set(bytes.Clone(k), bytes.Clone(v)))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := m.Commit(ops, true); err != nil {
		t.Fatal(err)
	}
	want := func(k []byte, _ int) bool { return k[len(k)-1]%3 == 0 }
	for name, r := range map[string]kv.Reader{"pebble": p, "snapshot": snapshot, "memory": m} {
		i, most, asked := 0, 50, 3
		sized := func(k []byte, size int) bool {
			if size != len(ops[asked].Value) {
				t.Fatalf("%s: a value of %d bytes under %q, want %d", name, size, k, len(ops[asked].Value))
			}
			asked++
			return want(k, size)
		}
		err := kv.Sift(r, ops[3].Key, ops[200].Key, sized, func(k, v []byte) bool {
			for i = max(i, 3); !want(ops[i].Key, 0); i++ {
			}
			if !bytes.Equal(k, ops[i].Key) || !bytes.Equal(v, ops[i].Value) {
				t.Fatalf("%s: %q, want %q", name, k, ops[i].Key)
			}
			i++
			most--
			return most > 0
		})
		if err != nil || most != 0 {
			t.Errorf("%s: %d are missing, %v", name, most, err)
		}
	}
}

// TestTablesAreWrittenOutApart: a store writes its first table out at a moment of its own, long before it would be
// full: stores that take the same commits from the start, as anchors do, would all do it at the same one.
func TestTablesAreWrittenOutApart(t *testing.T) {
	testshort.Skip(t)
	const each = 64 << 10
	when := make(map[int]bool)
	for range 4 {
		p, err := Open("store", Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		value, due := make([]byte, each), int(p.early-1)/(each+4)
		for k := range due + 1 {
			if err := p.Commit([]kv.Op{kv.Set(fmt.Appendf(nil, "%4d", k), value)}, false); err != nil {
				t.Fatal(err)
			}
			if k == due {
				testwait.Until(t, "a table is written out", func() bool { return p.db.Metrics().Flush.Count > 0 })
			}
			if n := p.db.Metrics().Flush.Count; k < due && n > 0 {
				t.Fatalf("%d tables were written out after %d commits, the first is due after %d", n, k, due)
			}
		}
		when[due] = true
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(when) == 1 {
		t.Errorf("all stores wrote a table out after as many commits: %v", when)
	}
}

// TestNewerStoresAreNotDamaged: files of a newer version of Pebble are whole, and must not be moved
// away.
func TestNewerStoresAreNotDamaged(t *testing.T) {
	fs := vfs.NewMem()
	db, err := Open("data", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	marked := false
	for _, name := range names {
		if strings.HasPrefix(name, "marker.format-version.") {
			marked = true
			if err := fs.Rename("data/"+name, "data/marker.format-version.000999.999"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Open("data", Options{FS: fs}); !marked || !errors.Is(err, ErrFormat) || errors.Is(err, ErrDamaged) {
		t.Errorf("marked: %v: %v", marked, err)
	}
}
