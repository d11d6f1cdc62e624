package etcdcompat

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

var (
	seeds    = flag.Uint64("seed", 1, "seed of the first program")
	programs = flag.Int("programs", 30, "how many programs to run")
)

// TestRandomProgramsAnswerAsEtcd asks one node. With the same history, even
// revisions are the same. What the keys of a program hold in the end is proven.
func TestRandomProgramsAnswerAsEtcd(t *testing.T) {
	etcd, aweigh := startEtcd(t), startAweigh(t, 1)
	held, light := etcd.client(t, 0), startLight(t, aweigh)
	compare(t, etcd, aweigh, true, func(prefix string) { proven(t, held, light, prefix) })
}

// proven compares what etcd's keys hold below a prefix with what a light reader proves. A lease may end in between.
func proven(t *testing.T, etcd, light *clientv3.Client, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var want, got *clientv3.GetResponse
	for {
		held, err := etcd.Get(ctx, prefix, clientv3.WithPrefix())
		if err == nil {
			want = held
			held, err = light.Get(ctx, prefix, clientv3.WithPrefix())
		}
		if err != nil {
			t.Fatalf("%s: %v; etcd holds\n%v, and this is proven:\n%v", prefix, err, want, got)
		}
		got = held
		same := func(a, b *mvccpb.KeyValue) bool { return a.String() == b.String() }
		if got.Count == want.Count && slices.EqualFunc(got.Kvs, want.Kvs, same) {
			return
		}
	}
}

// TestAllNodesTogetherAnswerAsEtcd asks another node at every step, where so many
// watch besides that they share what is read for them. In the end all nodes hold
// the same.
func TestAllNodesTogetherAnswerAsEtcd(t *testing.T) {
	etcd, aweigh := startEtcd(t), startAweigh(t, 4)
	for _, conn := range aweigh.conns {
		crowd(t, conn)
	}
	compare(t, etcd, aweigh, false, func(string) {})
	sameDigests(t, aweigh)
}

// crowd opens watches that see everything, and reads what they see.
func crowd(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	w, err := openWatches(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := w.create(t.Context(), &etcdserverpb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// sameDigests compares the digests of all nodes' keys, before and after a change.
func sameDigests(t *testing.T, s *system) {
	t.Helper()
	digests := make(map[uint32]bool)
	for _, value := range []string{"one", "other"} {
		put, err := etcdserverpb.NewKVClient(s.conn(0)).Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("digest"), Value: []byte(value)})
		if err != nil {
			t.Fatal(err)
		}
		var first *etcdserverpb.HashKVResponse
		for i, conn := range s.conns {
			if _, err := etcdserverpb.NewKVClient(conn).Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("digest")}); err != nil {
				t.Fatal(err)
			}
			h, err := etcdserverpb.NewMaintenanceClient(conn).HashKV(t.Context(), &etcdserverpb.HashKVRequest{Revision: put.Header.Revision})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = h
			}
			if h.Hash != first.Hash || h.HashRevision != put.Header.Revision || h.CompactRevision != first.CompactRevision {
				t.Errorf("node %d: %v, node 0: %v", i, h, first)
			}
		}
		digests[first.Hash] = true
	}
	if len(digests) != 2 {
		t.Errorf("another value, and the same digest: %v", digests)
	}
}

// compare runs programs, and calls done with the prefix of each that gave the same answers.
func compare(t *testing.T, etcd, aweigh *system, local bool, done func(prefix string)) {
	begin, count := time.Now(), 0
	for i := range *programs {
		seed := *seeds + uint64(i)
		prefix := fmt.Sprintf("p%06d/", i)
		steps := program(seed, prefix, local)
		var answers [2][]string
		var group errgroup.Group
		for j, s := range []*system{etcd, aweigh} {
			group.Go(func() (err error) {
				if answers[j], err = run(t.Context(), s, prefix, steps); err != nil {
					err = fmt.Errorf("%s: %w", s.name, err)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			for k, x := range steps {
				t.Logf("%3d  %v", k, x)
			}
			t.Fatalf("seed %d: %v%s", seed, err, difference(steps, answers))
		}
		if d := difference(steps, answers); d != "" {
			t.Fatalf("seed %d (repeat with -seed %d -programs 1):%s", seed, seed, d)
		}
		done(prefix)
		count += len(steps)
	}
	t.Logf("%d programs, %d steps: the same answers, in %s", *programs, count, time.Since(begin).Round(time.Millisecond))
}

// relative is how the numbers look that newest makes.
var relative = regexp.MustCompile(`-1099511627\d{3}`)

// difference tells the first answer that differs, with what led to it.
func difference(steps []step, answers [2][]string) string {
	for i := range max(len(answers[0]), len(answers[1])) {
		var a [2]string
		for j := range a {
			a[j] = "(nothing)"
			if i < len(answers[j]) {
				a[j] = answers[j][i]
			}
		}
		if a[0] == a[1] {
			continue
		}
		var b strings.Builder
		for k := range min(i, len(steps)) {
			fmt.Fprintf(&b, "\n%3d  %v\n     %s", k, steps[k], answers[0][k])
		}
		if i < len(steps) {
			fmt.Fprintf(&b, "\n%3d  %v", i, steps[i])
		}
		fmt.Fprintf(&b, "\netcd   answers %s\naweigh answers %s", a[0], a[1])
		return relative.ReplaceAllStringFunc(b.String(), func(n string) string {
			d, _ := strconv.ParseInt(n, 10, 64)
			return fmt.Sprintf("newest%+d", d-back)
		})
	}
	return ""
}
