package diskstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slice is the oracle: sorted pairs, copied at every commit.
type slice []kv.Op

func (s slice) commit(ops []kv.Op) slice {
	next := append(slice(nil), s...)
	for _, op := range ops {
		i := sort.Search(len(next), func(i int) bool { return bytes.Compare(next[i].Key, op.Key) >= 0 })
		if i < len(next) && bytes.Equal(next[i].Key, op.Key) {
			next = append(next[:i:i], next[i+1:]...)
		}
		if !op.Delete {
			next = append(next[:i:i], append(slice{op}, next[i:]...)...)
		}
	}
	return next
}

func (s slice) Get(key []byte) ([]byte, bool, error) {
	for _, op := range s {
		if bytes.Equal(op.Key, key) {
			return op.Value, true, nil
		}
	}
	return nil, false, nil
}

func (s slice) Scan(from, to []byte, reverse bool, visit func(key, value []byte) bool) error {
	for i := range s {
		if reverse {
			i = len(s) - 1 - i
		}
		k := s[i].Key
		if bytes.Compare(k, from) >= 0 && (to == nil || bytes.Compare(k, to) < 0) && !visit(k, s[i].Value) {
			break
		}
	}
	return nil
}

// show is up to limit pairs of a scan, as text.
func show(t rapid.TB, r kv.Reader, from, to []byte, reverse bool, limit int) string {
	var b strings.Builder
	n := 0
	err := r.Scan(from, to, reverse, func(k, v []byte) bool {
		fmt.Fprintf(&b, "%q=%q ", k, v)
		n++
		return n < limit
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func all(t rapid.TB, r kv.Reader) string { return show(t, r, nil, nil, false, 1<<30) }

var (
	keys = rapid.Custom(func(t *rapid.T) []byte {
		return []byte(rapid.StringOfN(rapid.SampledFrom([]rune("\x00ab\u00ff")), 2, 4, -1).Draw(t, "key"))
	})
	ends   = rapid.OneOf(keys, rapid.Just([]byte(nil)), rapid.Just([]byte{0}))
	opses  = rapid.SliceOfN(op, 0, 6)
	values = rapid.SliceOfN(rapid.Byte(), 0, 9)
	op     = rapid.Custom(func(t *rapid.T) kv.Op {
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return kv.Del(keys.Draw(t, "key"))
		}
		return kv.Set(keys.Draw(t, "key"), values.Draw(t, "value"))
	})
)

func openMem(t rapid.TB, fs vfs.FS) *Store {
	p, err := Open("data", Options{FS: fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closed(t rapid.TB, c interface{ Close() error }) {
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// sameReads draws reads, and wants the same answers of got as of want.
func sameReads(t *rapid.T, name string, got, want kv.Reader, from, to, key []byte, limit int) {
	for _, reverse := range []bool{false, true} {
		g, w := show(t, got, from, to, reverse, limit), show(t, want, from, to, reverse, limit)
		if g != w {
			t.Fatalf("%s: scan [%q, %q) reverse %v limit %d\n got %s\nwant %s", name, from, to, reverse, limit, g, w)
		}
	}
	g, gok, err := got.Get(key)
	w, wok, _ := want.Get(key)
	if err != nil || gok != wok || !bytes.Equal(g, w) {
		t.Fatalf("%s: get %q: %q %v %v, want %q %v", name, key, g, gok, err, w, wok)
	}
}

// TestPebbleMemAndSliceReadTheSame drives the same program, with snapshots and
// crashes, through both stores and the oracle.
func TestPebbleMemAndSliceReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewCrashableMem()
		p, m := openMem(t, fs), store.NewMem()
		defer func() { closed(t, p) }()
		history, durable := []slice{nil}, 0 // state after each commit; how many are synced

		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now := history[len(history)-1]
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0: // crash
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				percent := rapid.SampledFrom([]int{0, 30, 70, 100}).Draw(t, "unsynced")
				fs2 := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
				closed(t, p)
				fs = fs2
				p = openMem(t, fs)
				kept := len(history) - 1
				for got := all(t, p); kept >= durable && got != all(t, history[kept]); kept-- {
				}
				if kept < durable {
					t.Fatalf("after a crash: %s, which is no prefix of the commits that has the %d synced ones", all(t, p), durable)
				}
				// Equal states may hide how many survived, so Mem keeps the same
				// state, not always the same count.
				if want := len(history) - 1 - durable; m.Unsynced() > want {
					t.Fatalf("Mem has %d unsynced commits, of at most %d", m.Unsynced(), want)
				}
				m.Crash(kept - durable)
				history, durable = history[:kept+1], kept
				for _, s := range []store.Store{p, m} { // settle what survived
					if err := s.Commit(nil, true); err != nil {
						t.Fatal(err)
					}
				}
			case 1, 2: // a snapshot does not see what comes after it
				ops := append(opses.Draw(t, "ops"), op.Draw(t, "op"))
				before := all(t, now)
				sp, sm := p.Snapshot(), m.Snapshot()
				for _, s := range []store.Store{p, m} {
					if err := s.Commit(ops, true); err != nil {
						t.Fatal(err)
					}
				}
				history = append(history, now.commit(ops))
				durable = len(history) - 1
				if gp, gm := all(t, sp), all(t, sm); gp != before || gm != before {
					t.Fatalf("snapshots: pebble %s, mem %s, want %s", gp, gm, before)
				}
				closed(t, sp)
				closed(t, sm)
			default:
				ops := opses.Draw(t, "ops")
				sync := rapid.Bool().Draw(t, "sync")
				for _, s := range []store.Store{p, m} {
					if err := s.Commit(ops, sync); err != nil {
						t.Fatal(err)
					}
				}
				if len(ops) > 0 {
					history = append(history, now.commit(ops))
				}
				if sync {
					durable = len(history) - 1
				}
			}
			now = history[len(history)-1]
			from, to, key := ends.Draw(t, "from"), ends.Draw(t, "to"), keys.Draw(t, "get")
			limit := rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "limit")
			sameReads(t, "pebble", p, now, from, to, key, limit)
			sameReads(t, "mem", m, now, from, to, key, limit)
		}
	})
}

// TestMemCrashKeepsThePrefixAskedFor checks every possible crash of a program.
func TestMemCrashKeepsThePrefixAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := store.NewMem()
		history, durable := []slice{nil}, 0
		for range rapid.IntRange(1, 12).Draw(t, "commits") {
			ops := append(opses.Draw(t, "ops"), kv.Set([]byte("always"), values.Draw(t, "value")))
			sync := rapid.IntRange(0, 3).Draw(t, "sync") == 0
			if err := m.Commit(ops, sync); err != nil {
				t.Fatal(err)
			}
			history = append(history, history[len(history)-1].commit(ops))
			if sync {
				durable = len(history) - 1
			}
		}
		for keep := -1; keep <= len(history); keep++ {
			c := m.Clone()
			c.Crash(keep)
			want := min(durable+max(keep, 0), len(history)-1)
			if got := all(t, c); got != all(t, history[want]) || c.Unsynced() != 0 {
				t.Fatalf("crash keeping %d: got %s, want %s", keep, got, all(t, history[want]))
			}
		}
		if got := all(t, m); got != all(t, history[len(history)-1]) {
			t.Fatalf("the clones' crashes changed the original to %s", got)
		}
	})
}
