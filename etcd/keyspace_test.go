package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
)

// saved is a snapshot, without the hash at its end, as a file.
func (w *world) saved(t *testing.T) (file string, revision int64) {
	t.Helper()
	stream, err := w.Snapshot(w.ctx, &etcdpb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "snapshot.db")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return file, revision
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(r.Blob); err != nil {
			t.Fatal(err)
		}
		revision = r.Header.Revision
	}
}

// TestSnapshotsHoldAllScopes: three scopes that are written to at the same time, so that their
// changes share revisions; every key is there, as it was at the snapshot's revision.
func TestSnapshotsHoldAllScopes(t *testing.T) {
	w := newWorld(t, 1, Config{Scratch: t.TempDir()})
	w.delegate(t, "", "/b/")
	w.delegate(t, "/b/", "/b/c/")
	done := make(chan error)
	for _, prefix := range []string{"/a/", "/b/", "/b/c/"} {
		go func() {
			var err error
			for i := 0; i < 3*firstPage && err == nil; i++ {
				_, err = w.Put(w.ctx, &etcdpb.PutRequest{Key: fmt.Append(nil, prefix, i), Value: []byte(prefix)})
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	before, err := w.HashKV(w.ctx, &etcdpb.HashKVRequest{})
	if err != nil {
		t.Fatal(err)
	}
	file, revision := w.saved(t)
	want, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: everything, RangeEnd: everything, Revision: revision})
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Kvs) != 9*firstPage {
		t.Fatalf("%d keys at revision %d", len(want.Kvs), revision)
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got []*etcdpb.KeyValue
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketKey).ForEach(func(_, value []byte) error {
			kv := new(etcdpb.KeyValue)
			got = append(got, kv)
			return proto.Unmarshal(value, kv)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b *etcdpb.KeyValue) int { return slices.Compare(a.Key, b.Key) })
	if !slices.EqualFunc(got, want.Kvs, func(a, b *etcdpb.KeyValue) bool { return proto.Equal(a, b) }) {
		t.Errorf("%d keys in the snapshot, %d as of its revision; or they differ", len(got), len(want.Kvs))
	}

	again, err := w.HashKV(w.ctx, &etcdpb.HashKVRequest{Revision: before.HashRevision})
	if err != nil || again.Hash != before.Hash || again.HashRevision != before.HashRevision {
		t.Errorf("the digest of all keys as of revision %d is %x, and then %+v, %v", before.HashRevision, before.Hash, again, err)
	}
	w.put(t, "/b/c/1", []byte("another"))
	if now, err := w.HashKV(w.ctx, &etcdpb.HashKVRequest{}); err != nil || now.Hash == before.Hash {
		t.Errorf("another value two scopes below does not change the digest: %v, %v", now, err)
	}
}

// TestSnapshotsHoldTheLeasesOfTheirKeys: a key of the snapshot's revision names a lease that is over by the time
// that leases are read. It is there all the same, and ends soon: without it the key would stay for ever.
func TestSnapshotsHoldTheLeasesOfTheirKeys(t *testing.T) {
	w := newWorld(t, 1, Config{Scratch: t.TempDir()})
	w.delegate(t, "", "/b/")
	s := &service{node: w.node, stopping: make(chan struct{})}
	lease, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{TTL: 600})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("/b/1"), Lease: lease.ID}); err != nil {
		t.Fatal(err)
	}
	revision, err := w.node.Latest(w.ctx, everything, everything, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.LeaseRevoke(w.ctx, &etcdpb.LeaseRevokeRequest{ID: lease.ID}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	err = s.look(w.ctx, referral.Keys(), true, func(v *node.View) error {
		all, err := s.keyspaceOf(w.ctx, v, revision, true)
		if err != nil {
			return err
		}
		return writeBackend(file, v, all, func() error { return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if n, there := tx.Bucket(bucketKey).Stats().KeyN, tx.Bucket(bucketLease).Get(leaseKey(lease.ID)); n != 1 || there == nil {
			t.Errorf("%d keys, and the lease is %x", n, there)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestObserveEndsWithTheServer: who watches an election is told at once that the server stops.
func TestObserveEndsWithTheServer(t *testing.T) {
	w := newWorld(t, 1, Config{})
	stream, err := etcdpb.NewElectionClient(w.conn).Observe(w.ctx, &etcdpb.LeaderRequest{Name: []byte("e")})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the call is there", func() bool {
		return slices.ContainsFunc(w.server.Counts().Methods, func(m MethodCounts) bool { return m.Method == "Observe" && m.Started > 0 })
	})
	began := time.Now()
	go w.stopServing()
	if _, err := stream.Recv(); status.Convert(err).Message() != "etcdserver: server stopped" || time.Since(began) > linger/2 {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}
