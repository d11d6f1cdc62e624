package etcd

import (
	"testing"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// BenchmarkRange is a read of one key by this node alone, over a connection: the
// call that does least besides being a call.
func BenchmarkRange(b *testing.B) {
	w := newWorld(b, 1, Config{})
	w.put(b, "a", []byte("value"))
	r := &etcdpb.RangeRequest{Key: []byte("a"), Serializable: true}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Range(w.ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCounting is what counting adds to a call, while all processors count the
// same method.
func BenchmarkCounting(b *testing.B) {
	c := counted{streams: make(map[string]*methodCounts)}
	m := c.method("etcdserverpb.KV", "Range", unary)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.start()
			c.received.Add(7)
			c.sent.Add(42)
			m.end(nil)
		}
	})
}
