package etcd

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/autocompact"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
)

// TestHistoryIsCompactedByItself: what is older than the retention goes, and the network compacts no more often than
// the setting says.
func TestHistoryIsCompactedByItself(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	w := newWorld(t, 1, Config{})
	first := w.put(t, "k", []byte("1"))
	ctx, stop := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		done <- autocompact.Run(ctx, autocompact.Setting{Keep: time.Second}, w.node, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	seen := map[int64]bool{}
	for compacted := int64(0); compacted <= first+1; compacted = w.node.Root().LastHead().Compacted {
		seen[compacted] = true
		w.put(t, "k", []byte("2"))
		if w.ctx.Err() != nil {
			t.Fatal("nothing is compacted")
		}
	}
	if most := int(time.Since(began)/time.Second) + 1; len(seen) > most {
		t.Errorf("%d compactions in less than %d seconds", len(seen), most)
	}
	_, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("k"), Revision: first})
	if status.Code(err) != codes.OutOfRange {
		t.Errorf("the first revision: %v", err)
	}
}

// TestRequestsHaveTheSizeOfTheSetting: above etcd's default where the policy takes as much, and below it.
func TestRequestsHaveTheSizeOfTheSetting(t *testing.T) {
	put := func(w *world, size int) error {
		return second(w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("k"), Value: make([]byte, size)}))
	}
	const large = "etcdserver: request is too large"
	roomy := func(p *scope.Policy) {
		p.Limits.ValueBytes, p.Limits.MutationBytes, p.Limits.BundleBytes, p.Limits.BlockBytes = 3<<20, 4<<20, 5<<20, 5<<20
	}
	w := newWorld(t, 1, Config{MaxRequest: 5 << 20}, roomy)
	if err := put(w, 2<<20); err != nil {
		t.Errorf("2 MiB: %v", err)
	}
	says(t, "more than the scope takes", put(w, 4<<20+1), codes.InvalidArgument, large)
	w = newWorld(t, 1, Config{MaxRequest: 100_000})
	says(t, "100 kB", put(w, 100_000), codes.InvalidArgument, large)
	if err := put(w, 90_000); err != nil {
		t.Errorf("90 kB: %v", err)
	}
	if err := put(w, 100_000+received); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("what is not even read: %v", err)
	}
}
