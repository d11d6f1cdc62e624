package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
)

const (
	largeValue   = 16 << 10 // does not compress
	largeWriters = 32
	largeRoom    = 1.6 // free bytes on the disk for each of the database
)

// TestLargeDatabase fills one anchor with as many GiB of keys as AWEIGH_LARGE says, such as 20, and
// holds it to opening in ten seconds, after a stop and after a kill, to bounded memory, and to
// the latencies that it had at 1 GiB.
func TestLargeDatabase(t *testing.T) {
	gib, err := strconv.Atoi(os.Getenv("AWEIGH_LARGE"))
	if err != nil || gib < 2 {
		t.Skip("AWEIGH_LARGE is not set to a number of GiB from 2 on")
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("limits:\n  scope_bytes: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, 1, false, "--mode", "crash", "--policy", policy)
	if disk, err := vfs.Default.GetDiskUsage(n.dir); err != nil || float64(disk.AvailBytes) < largeRoom*float64(gib<<30) {
		t.Fatalf("there is no room below TMPDIR, %s, for %d GiB %.1f times over (%v)", n.dir, gib, largeRoom, err)
	}
	n.prune()
	n.start()
	l := &large{t: t, n: n, c: n.dial(0)}
	l.fill(1 << 30)
	small := l.measure("at 1 GiB")
	for size := 2; size <= gib; size++ {
		l.fill(uint64(size) << 30)
	}
	before := l.measure(fmt.Sprintf("at %d GiB", gib))
	for _, end := range []os.Signal{sigTerm, sigKill} {
		n.nodes[0].signal(end)
		began := time.Now()
		n.start()
		took := time.Since(began)
		t.Logf("opened after %v in %v", end, took.Round(time.Millisecond))
		if took > 10*time.Second {
			t.Errorf("it took %v to open", took)
		}
	}
	after := l.measure("opened again")
	for _, x := range []struct {
		what string
		of   func(served) time.Duration
	}{{"gets", func(s served) time.Duration { return s.get }}, {"puts", func(s served) time.Duration { return s.put }}} {
		if was, is := x.of(small), min(x.of(before), x.of(after)); is > 2*was+2*time.Millisecond {
			t.Errorf("99 of 100 %s took %v at 1 GiB, and %v at %d GiB", x.what, was, is, gib)
		}
	}
}

type large struct {
	t    *testing.T
	n    *network
	c    *client.Client
	keys atomic.Uint64
}

func largeKey(i uint64) []byte { return fmt.Appendf(nil, "/large/%016x", i*0x9e3779b97f4a7c15) }

// fill writes new keys until there are so many bytes of values, compacts, and tells what it took.
func (l *large) fill(bytes uint64) {
	l.t.Helper()
	began, from := time.Now(), l.keys.Load()
	var revision atomic.Int64
	var writers sync.WaitGroup
	for range largeWriters {
		writers.Go(func() {
			for i := l.keys.Add(1) - 1; i < bytes/largeValue; i = l.keys.Add(1) - 1 {
				value := make([]byte, largeValue)
				for at := 0; at < len(value); at += 8 {
					binary.LittleEndian.PutUint64(value[at:], rand.Uint64())
				}
				revision.Store(l.put(largeKey(i), value))
			}
		})
	}
	writers.Wait()
	l.keys.Store(bytes / largeValue)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := l.c.Compact(ctx, &aweighv1.CompactRequest{Revision: revision.Load()}); err != nil {
		l.t.Fatal(err)
	}
	s := l.n.nodes[0].sampled(l.t)
	l.t.Logf("%2d GiB of values: %.0f puts/s; height %.0f, memory %.0f MiB, disk %.1f GiB", bytes>>30,
		float64(l.keys.Load()-from)/time.Since(began).Seconds(), s.height, s.memory/(1<<20), s.disk/(1<<30))
}

func (l *large) put(key, value []byte) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := l.c.Put(ctx, &aweighv1.PutRequest{Key: key, Value: value})
	if err != nil {
		l.t.Error(err)
		return 0
	}
	return r.Header.Revision
}

// served is the 99th percentile of what one client waits.
type served struct{ get, put time.Duration }

// measure lets one client get random keys of all, linearizably, and put small values.
func (l *large) measure(when string) (s served) {
	l.t.Helper()
	const times = 5000
	some := rand.New(rand.NewPCG(1, 2))
	took := func(do func()) time.Duration {
		all := make([]time.Duration, times)
		for i := range all {
			began := time.Now()
			do()
			all[i] = time.Since(began)
		}
		slices.Sort(all)
		l.t.Logf("%s: p50 %v, p99 %v, most %v", when, all[times/2].Round(time.Microsecond), all[times*99/100].Round(time.Microsecond), all[times-1].Round(time.Microsecond))
		return all[times*99/100]
	}
	s.get = took(func() {
		key := largeKey(some.Uint64N(l.keys.Load()))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, err := l.c.Range(ctx, &aweighv1.RangeRequest{Key: key})
		if err != nil || len(r.Kvs) != 1 || len(r.Kvs[0].Value) != largeValue {
			l.t.Fatalf("%s: %v", key, err)
		}
	})
	s.put = took(func() { l.put(fmt.Appendf(nil, "/small/%d", some.Uint64N(100_000)), make([]byte, 256)) })
	m := l.n.nodes[0].sampled(l.t)
	l.t.Logf("%s: memory %.0f MiB, heap %.0f MiB, disk %.1f GiB", when, m.memory/(1<<20), m.heap/(1<<20), m.disk/(1<<30))
	return s
}
