package diskstore

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
)

// stores are the stores that the benchmarks compare, with 10,000 keys each.
func stores(b *testing.B, run func(b *testing.B, s store.Store)) {
	for name, open := range map[string]func() store.Store{
		"pebble": func() store.Store { return open(b, b.TempDir()) },
		"mem":    func() store.Store { return store.NewMem() },
	} {
		b.Run(name, func(b *testing.B) {
			s := open()
			defer closed(b, s)
			if err := s.Commit(some(0, 10_000), true); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			run(b, s)
		})
	}
}

func key(i int) []byte { return binary.BigEndian.AppendUint64([]byte("key/"), uint64(i)) }

func some(from, n int) []kv.Op {
	ops := make([]kv.Op, n)
	for i := range ops {
		ops[i] = kv.Set(key(from+i), make([]byte, 100))
	}
	return ops
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100} {
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("ops=%d/sync=%v", n, sync), func(b *testing.B) {
				stores(b, func(b *testing.B, s store.Store) {
					for i := 0; b.Loop(); i++ {
						if err := s.Commit(some(i*n%10_000, n), sync); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}

func BenchmarkConcurrentSyncedCommits(b *testing.B) {
	p := open(b, b.TempDir())
	defer closed(b, p)
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if err := p.Commit(some(i%10_000, 1), true); err != nil {
				b.Error(err)
			}
		}
	})
	m := p.Metrics()
	b.ReportMetric(float64(m.Commits)/float64(m.Syncs), "commits/sync")
}

func BenchmarkGet(b *testing.B) {
	stores(b, func(b *testing.B, s store.Store) {
		for i := 0; b.Loop(); i++ {
			if _, ok, err := s.Get(key(i % 10_000)); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
}

func BenchmarkScanOne(b *testing.B) {
	for _, reverse := range []bool{false, true} {
		b.Run(fmt.Sprintf("reverse=%v", reverse), func(b *testing.B) {
			stores(b, func(b *testing.B, s store.Store) {
				for i := 0; b.Loop(); i++ {
					err := s.Scan(key(i%9_000), key(i%9_000+500), reverse, func(_, _ []byte) bool { return false })
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
