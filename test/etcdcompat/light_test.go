package etcdcompat

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// startLight starts a light reader that asks all nodes of a devnet, and gives a client of it.
func startLight(t *testing.T, s *system) *clientv3.Client {
	t.Helper()
	program, err := aweighBinary()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	launch(t, exec.Command(program, "light", "--network", s.network, "--api", strings.Join(s.apis, ","), "--etcd-listen", address),
		regexp.MustCompile("each answer verified here"))
	return newClient(t, address)
}

// TestLightReadersAnswerAsEtcd: etcd's own client reads from a light reader what it reads from a node, and a watch from
// the revision of such an answer on leads to what the keys hold in the end, though a node that it asks is killed.
func TestLightReadersAnswerAsEtcd(t *testing.T) {
	s := startAweigh(t, 4)
	node, light := s.client(t, 1), startLight(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		if _, err := node.Put(ctx, fmt.Sprintf("/k/%02d", i*7%20), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	prefix := clientv3.WithPrefix()
	for name, how := range map[string][]clientv3.OpOption{ // order-free: all only read
		"all": {prefix}, "one": nil, "none": {clientv3.WithRange("/k/000")}, "limit": {prefix, clientv3.WithLimit(3)},
		"newest": clientv3.WithLastRev(), "count": {prefix, clientv3.WithCountOnly()}, "keys": {prefix, clientv3.WithKeysOnly()},
		"by value":     {prefix, clientv3.WithSort(clientv3.SortByValue, clientv3.SortDescend), clientv3.WithLimit(5)},
		"serializable": {prefix, clientv3.WithSerializable()}, "revisions": {prefix, clientv3.WithMinModRev(10), clientv3.WithMaxModRev(15)},
	} {
		want, err := node.Get(ctx, "/k/", how...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := light.Get(ctx, "/k/", how...)
		if err != nil {
			t.Fatal(err)
		}
		same := func(a, b *mvccpb.KeyValue) bool { return a.String() == b.String() }
		if got.Count != want.Count || got.More != want.More || !slices.EqualFunc(got.Kvs, want.Kvs, same) {
			t.Errorf("%s: %v\nnot %v", name, got, want)
		}
	}
	if _, err := light.Put(ctx, "/k/00", ""); status.Code(err) != codes.Unimplemented {
		t.Errorf("a put: %v", err)
	}

	got, err := light.Get(ctx, "/k/", prefix)
	if err != nil {
		t.Fatal(err)
	}
	held := make(map[string]string)
	for _, kv := range got.Kvs {
		held[string(kv.Key)] = string(kv.Value)
	}
	watch := light.Watch(ctx, "/k/", prefix, clientv3.WithRev(got.Header.Revision+1), clientv3.WithPrevKV())
	s.kill(t, 0)
	for i := range 20 {
		key := fmt.Sprintf("/k/%02d", i*3%25)
		if i%4 == 3 {
			_, err = node.Delete(ctx, key)
		} else {
			_, err = node.Put(ctx, key, fmt.Sprint("new ", i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := node.Put(ctx, "/k/end", ""); err != nil {
		t.Fatal(err)
	}
	for revision, ended := got.Header.Revision, false; !ended; {
		r, ok := <-watch
		if err := r.Err(); err != nil || !ok {
			t.Fatal(err, ok)
		}
		for _, e := range r.Events {
			if e.Kv.ModRevision <= revision {
				t.Errorf("a change at %d after one at %d", e.Kv.ModRevision, revision)
			}
			if e.PrevKv != nil && string(e.PrevKv.Value) != held[string(e.Kv.Key)] {
				t.Errorf("%s was %q, not %q", e.Kv.Key, held[string(e.Kv.Key)], e.PrevKv.Value)
			}
			held[string(e.Kv.Key)] = string(e.Kv.Value)
			if e.Type == clientv3.EventTypeDelete {
				delete(held, string(e.Kv.Key))
			}
			ended = ended || string(e.Kv.Key) == "/k/end"
		}
		revision = r.Header.Revision
	}
	want, err := node.Get(ctx, "/k/", prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range want.Kvs {
		if held[string(kv.Key)] != string(kv.Value) {
			t.Errorf("%s holds %q, not %q", kv.Key, kv.Value, held[string(kv.Key)])
		}
	}
	if len(held) != len(want.Kvs) {
		t.Errorf("%d keys, not %d", len(held), len(want.Kvs))
	}
}
