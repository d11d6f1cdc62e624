package etcdcompat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestEtcdctlSavesWhatEtcdStartsFrom: a snapshot of a node, saved by etcd's command
// line, passes etcd's own check, and an etcd restored from it has every key at its
// revision, the leases, and the revision itself.
func TestEtcdctlSavesWhatEtcdStartsFrom(t *testing.T) {
	ctl, utl := os.Getenv("AWEIGH_ETCDCTL"), os.Getenv("AWEIGH_ETCDUTL")
	if ctl == "" || utl == "" {
		t.Skip(`AWEIGH_ETCDCTL and AWEIGH_ETCDUTL do not name binaries of etcdctl and etcdutl 3.6; "scripts/etcd etcdctl" and "scripts/etcd etcdutl" build them and print their paths`)
	}
	etcd := etcdBinary(t)
	s := startAweigh(t, 4)
	c := s.client(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lease, err := c.Grant(ctx, 4000)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		key, value := fmt.Sprintf("k/%d", random.IntN(100)), strings.Repeat("v", random.IntN(3000))
		switch random.IntN(5) {
		case 0:
			_, err = c.Delete(ctx, key)
		case 1:
			_, err = c.Put(ctx, key, value, clientv3.WithLease(lease.ID))
		case 2: // several keys at one revision
			_, err = c.Txn(ctx).Then(clientv3.OpPut(key, value), clientv3.OpPut(fmt.Sprint("t/", i), ""), clientv3.OpPut("\x00\xff", key)).Commit()
		default:
			_, err = c.Put(ctx, key, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Put(ctx, "last", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, "last"); err != nil { // of the newest revision no key is left
		t.Fatal(err)
	}
	all := func(c *clientv3.Client) (*clientv3.GetResponse, []*mvccpb.KeyValue) {
		t.Helper()
		r, err := c.Get(ctx, "\x00", clientv3.WithFromKey())
		if err != nil {
			t.Fatal(err)
		}
		return r, r.Kvs
	}
	before, want := all(c)

	file := filepath.Join(t.TempDir(), "snapshot.db")
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(ctl, "--endpoints", s.addresses[1], "snapshot", "save", file)
	if left, err := filepath.Glob(filepath.Join(s.dir, "*", "scratch", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var status struct{ Revision, TotalKey int64 }
	if err := json.Unmarshal([]byte(run(utl, "snapshot", "status", file, "-w", "json")), &status); err != nil || status.TotalKey != int64(len(want)) {
		t.Errorf("%+v, %v; %d keys are there", status, err, len(want))
	}

	client, peer, dir := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "etcd")
	run(utl, "snapshot", "restore", file, "--data-dir", dir, "--name", "default",
		"--initial-cluster", "default=http://"+peer, "--initial-advertise-peer-urls", "http://"+peer)
	launch(t, exec.Command(etcd, "--data-dir", dir, "--log-level", "fatal",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer), nil)
	restored := newClient(t, client)
	after, got := all(restored)
	if after.Header.Revision != before.Header.Revision {
		t.Errorf("revision %d, and %d in etcd", before.Header.Revision, after.Header.Revision)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d keys, and %d in etcd, or others", len(want), len(got))
	}
	ttl, err := restored.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
	if err != nil || ttl.GrantedTTL != 4000 || len(ttl.Keys) == 0 {
		t.Errorf("the lease: %+v, %v", ttl, err)
	}
	if put, err := restored.Put(ctx, "more", ""); err != nil || put.Header.Revision != before.Header.Revision+1 {
		t.Errorf("a write in etcd: %v, %v", put, err)
	}
}
