package etcd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

// stream reads a range in parts, and merges them.
func (w *world) stream(t *testing.T, r *etcdpb.RangeRequest) (whole *etcdpb.RangeResponse, parts int, err error) {
	t.Helper()
	s, err := w.RangeStream(w.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	whole = new(etcdpb.RangeResponse)
	for {
		part, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return whole, parts, nil
		}
		if err != nil {
			return nil, parts, err
		}
		if parts++; whole.Header != nil {
			t.Error("a part came after the last")
		}
		most := maxRequest
		if kvs := part.RangeResponse.Kvs; len(kvs) > 0 {
			most += len(kvs[len(kvs)-1].Value)
		}
		if size := proto.Size(part) - 32*len(part.RangeResponse.Kvs); size > most { // the origin of a pair
			t.Errorf("a part has %d bytes", size)
		}
		proto.Merge(whole, part.RangeResponse)
	}
}

// TestStreamsMergeToTheRange: whatever is asked for, in one scope or several, in parts or at once.
func TestStreamsMergeToTheRange(t *testing.T) {
	t.Parallel()
	testshort.SkipUnlessLong(t)
	w := newWorld(t, 1, Config{})
	for i := range 60 {
		size := 1 + i
		if i%20 == 19 {
			size = 900 << 10
		}
		w.put(t, fmt.Sprintf("/a/%02d", i), bytes.Repeat([]byte{'v'}, size))
	}
	w.put(t, "/b/1", []byte("first"))
	_, old := w.all(t, "/", "0")
	w.put(t, "/b/1", []byte("second"))
	if _, err := w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{Key: []byte("/a/3"), RangeEnd: []byte("/a/31")}); err != nil {
		t.Fatal(err)
	}
	same := func(what string) {
		t.Helper()
		most := 0
		for _, key := range []string{"/", "/a/", "/a/30", "/a/31", "/b/1", "/none"} {
			for _, end := range []string{"", "/a/5", "\x00"} {
				for _, limit := range []int64{0, 1, 30, 59, 60} {
					for _, r := range []*etcdpb.RangeRequest{
						{}, {Serializable: true}, {KeysOnly: true}, {CountOnly: true}, {Revision: old}, {SortOrder: etcdpb.RangeRequest_ASCEND},
					} {
						r.Key, r.RangeEnd, r.Limit = []byte(key), []byte(end), limit
						want, err := w.Range(w.ctx, r)
						if err != nil {
							t.Fatal(err)
						}
						got, parts, err := w.stream(t, r)
						if err != nil {
							t.Fatal(err)
						}
						if got.Header == nil || got.Header.Revision < want.Header.Revision {
							t.Errorf("%s: the header of %v is %v, and in parts %v", what, r, want.Header, got.Header)
						}
						if got.Header = want.Header; !proto.Equal(got, want) { // a block may have come
							t.Fatalf("%s: of %v: %d keys, count %d, more %v, and in parts %d, %d, %v",
								what, r, len(want.Kvs), want.Count, want.More, len(got.Kvs), got.Count, got.More)
						}
						most = max(most, parts)
					}
				}
			}
		}
		if most < 2 {
			t.Errorf("%s: %d parts at most", what, most)
		}
	}
	same("one scope")
	w.delegate(t, "", "/a/")
	old = w.put(t, "/a/20", []byte("later"))
	w.put(t, "/a/21", []byte("still later"))
	same("two scopes")
}

// TestStreamsAreAsOfOneRevision: writes meanwhile are not seen, however large the range is.
func TestStreamsAreAsOfOneRevision(t *testing.T) {
	w := newWorld(t, 1, Config{})
	const keys = 100
	write := func(i int) {
		ops := make([]*etcdpb.RequestOp, keys)
		for k := range ops {
			ops[k] = &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: fmt.Appendf(nil, "/k%02d", k), Value: fmt.Append(nil, i)}}}
		}
		if _, err := w.Txn(w.ctx, &etcdpb.TxnRequest{Success: ops}); err != nil {
			t.Error(err)
		}
	}
	write(0)
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-done:
				return
			default:
				write(i)
			}
		}
	})
	seen := make(map[string]bool)
	for len(seen) < 5 {
		got, _, err := w.stream(t, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Kvs) != keys || got.Count != keys {
			t.Fatalf("%d keys, of %d", len(got.Kvs), got.Count)
		}
		for _, kv := range got.Kvs {
			if !bytes.Equal(kv.Value, got.Kvs[0].Value) {
				t.Fatalf("%s is %s where the first is %s", kv.Key, kv.Value, got.Kvs[0].Value)
			}
		}
		seen[string(got.Kvs[0].Value)] = true
	}
	close(done)
	writing.Wait()
}

// TestStreamsOfIdleScopes: what a node has of one scope is told, though another is not known as far, and
// though what it was before is forgotten.
func TestStreamsOfIdleScopes(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "/a/1", []byte("x"))
	w.put(t, "/b/1", []byte("old"))
	w.delegate(t, "", "/a/")
	rev := w.put(t, "/b/1", []byte("new"))
	r := &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), Serializable: true}
	for i := range 2 {
		got, _, err := w.stream(t, r)
		if err != nil || len(got.Kvs) != 2 || string(got.Kvs[1].Value) != "new" {
			t.Fatalf("%v, %v", got, err)
		}
		for _, serializable := range []bool{true, false} {
			_, parts, err := w.stream(t, &etcdpb.RangeRequest{Key: r.Key, RangeEnd: r.RangeEnd, Serializable: serializable, Revision: 1 << 60})
			if status.Code(err) != codes.OutOfRange || parts > 0 {
				t.Errorf("as of a revision of the future, serializable %v: %d parts, %v", serializable, parts, err)
			}
		}
		if i > 0 {
			break
		}
		if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: rev}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStreamsAreRefusedAsByEtcd(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "/a", []byte("1"))
	rev := w.put(t, "/a", []byte("2"))
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: rev}); err != nil {
		t.Fatal(err)
	}
	a := []byte("/a")
	for _, x := range []struct {
		r    *etcdpb.RangeRequest
		code codes.Code
		text string
	}{
		{&etcdpb.RangeRequest{}, codes.InvalidArgument, "etcdserver: key is not provided"},
		{&etcdpb.RangeRequest{Key: a, SortOrder: 7}, codes.InvalidArgument, "etcdserver: invalid sort option"},
		{&etcdpb.RangeRequest{Key: a, SortOrder: etcdpb.RangeRequest_DESCEND}, codes.Unimplemented, "RangeStream does not support custom sort orders"},
		{&etcdpb.RangeRequest{Key: a, SortTarget: etcdpb.RangeRequest_MOD}, codes.Unimplemented, "RangeStream does not support custom sort orders"},
		{&etcdpb.RangeRequest{Key: a, MinModRevision: 1}, codes.Unimplemented, "RangeStream does not support revision filters"},
		{&etcdpb.RangeRequest{Key: a, Revision: rev - 1}, codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{&etcdpb.RangeRequest{Key: a, Revision: rev + 9}, codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
	} {
		_, parts, err := w.stream(t, x.r)
		if status.Code(err) != x.code || status.Convert(err).Message() != x.text || parts > 0 {
			t.Errorf("%v: %v after %d parts", x.r, err, parts)
		}
	}
}
