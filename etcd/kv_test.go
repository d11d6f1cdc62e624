package etcd

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

func second[T any](_ T, err error) error { return err }

func says(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if s := status.Convert(err); s.Code() != code || s.Message() != text {
		t.Errorf("%s: %v %q, want %v %q", what, s.Code(), s.Message(), code, text)
	}
}

func putOp(key string) *etcdpb.RequestOp {
	return &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: []byte(key)}}}
}

func TestErrorsAreEtcds(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "a", nil)
	last := w.put(t, "a", nil)
	if _, err := w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: last}); err != nil {
		t.Fatal(err)
	}
	put := func(r *etcdpb.PutRequest) error { return second(w.Put(w.ctx, r)) }
	read := func(r *etcdpb.RangeRequest) error { return second(w.Range(w.ctx, r)) }
	txn := func(ops ...*etcdpb.RequestOp) error {
		return second(w.Txn(w.ctx, &etcdpb.TxnRequest{Success: ops}))
	}
	var many []*etcdpb.RequestOp
	for i := range 129 {
		many = append(many, putOp(fmt.Sprint(i)))
	}
	key, none := []byte("a"), []byte("none")
	for _, c := range []struct {
		what string
		err  error
		code codes.Code
		text string
	}{
		{"no key", put(&etcdpb.PutRequest{}), codes.InvalidArgument, "etcdserver: key is not provided"},
		{"no key to read", read(&etcdpb.RangeRequest{}), codes.InvalidArgument, "etcdserver: key is not provided"},
		{"no key to delete", second(w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{})), codes.InvalidArgument, "etcdserver: key is not provided"},
		{"value kept and given", put(&etcdpb.PutRequest{Key: key, Value: key, IgnoreValue: true}), codes.InvalidArgument, "etcdserver: value is provided"},
		{"lease kept and given", put(&etcdpb.PutRequest{Key: key, Lease: 1, IgnoreLease: true}), codes.InvalidArgument, "etcdserver: lease is provided"},
		{"nothing to keep", put(&etcdpb.PutRequest{Key: none, IgnoreValue: true}), codes.InvalidArgument, "etcdserver: key not found"},
		{"lease", put(&etcdpb.PutRequest{Key: key, Lease: 1}), codes.NotFound, "etcdserver: requested lease not found"},
		{"too large", put(&etcdpb.PutRequest{Key: key, Value: make([]byte, maxRequest)}), codes.InvalidArgument, "etcdserver: request is too large"},
		{"sort", read(&etcdpb.RangeRequest{Key: key, SortTarget: 5}), codes.InvalidArgument, "etcdserver: invalid sort option"},
		{"compacted", read(&etcdpb.RangeRequest{Key: key, Revision: 1}), codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{"future", read(&etcdpb.RangeRequest{Key: key, Revision: 99}), codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
		{"compact again", second(w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: last})), codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"},
		{"compact the future", second(w.Compact(w.ctx, &etcdpb.CompactionRequest{Revision: 99})), codes.OutOfRange, "etcdserver: mvcc: required revision is a future revision"},
		{"twice", txn(putOp("x"), putOp("x")), codes.InvalidArgument, "etcdserver: duplicate key given in txn request"},
		{"many", txn(many...), codes.InvalidArgument, "etcdserver: too many operations in txn request"},
		{"nothing said", txn(&etcdpb.RequestOp{}), codes.InvalidArgument, "etcdserver: key not found"},
	} {
		says(t, c.what, c.err, c.code, c.text)
	}
	err := put(&etcdpb.PutRequest{Key: bytes.Repeat(key, 1025)})
	if s := status.Convert(err); s.Code() != codes.InvalidArgument || !strings.Contains(s.Message(), "at most 1024") {
		t.Errorf("a long key: %v", err)
	}
	if err := put(&etcdpb.PutRequest{Key: key, Value: make([]byte, maxRequest+received)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("more than is read: %v", err)
	}
}

// A range that no transaction may look at is deleted as a whole or not at all.
func TestLargeDeletionsGoAtOneRevision(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 30,000 keys")
	}
	w := newWorld(t, 1, Config{})
	count := 0
	for count <= 30_000 {
		r := &etcdpb.TxnRequest{}
		for range 128 {
			r.Success = append(r.Success, putOp(fmt.Sprintf("k%06d", count)))
			count++
		}
		if _, err := w.Txn(w.ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 18 {
		w.put(t, fmt.Sprintf("v%02d", i), bytes.Repeat([]byte("x"), 1<<20))
	}
	for _, x := range []struct {
		key, end string
		prev     bool
		want     int
	}{{"k", "k010000", true, 10_000}, {"k", "l", false, count - 10_000}, {"v", "v09", false, 9}, {"v", "w", true, 9}} {
		before, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("absent")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{Key: []byte(x.key), RangeEnd: []byte(x.end), PrevKv: x.prev})
		if err != nil || int(r.Deleted) != x.want || r.Header.Revision != before.Header.Revision+1 {
			t.Fatalf("[%s, %s): %d of %d, at revision %d after %d: %v", x.key, x.end, r.GetDeleted(), x.want, r.GetHeader().GetRevision(), before.Header.Revision, err)
		}
		if x.prev != (len(r.PrevKvs) == x.want) {
			t.Errorf("[%s, %s): %d values of before", x.key, x.end, len(r.PrevKvs))
		}
	}
}

func TestTransactionsThatReadMakeNoBlock(t *testing.T) {
	w := newWorld(t, 1, Config{})
	rev := w.put(t, "a", []byte("1"))
	before := w.node.Root().Status().Head.Height
	r, err := w.Txn(w.ctx, &etcdpb.TxnRequest{
		Compare: []*etcdpb.Compare{{Key: []byte("a"), Target: etcdpb.Compare_MOD, TargetUnion: &etcdpb.Compare_ModRevision{ModRevision: rev}}},
		Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestRange{RequestRange: &etcdpb.RangeRequest{Key: []byte("a")}}}},
	})
	if err != nil || !r.Succeeded || string(r.Responses[0].GetResponseRange().Kvs[0].Value) != "1" || r.Header.Revision != rev {
		t.Errorf("read %v, %v", r, err)
	}
	if after := w.node.Root().Status().Head.Height; after != before {
		t.Errorf("height %d became %d", before, after)
	}
}

func TestHeadersNameClusterMemberAndTerm(t *testing.T) {
	w := newWorld(t, 1, Config{})
	var last *etcdpb.ResponseHeader
	for range 3 {
		r, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("a")})
		if err != nil {
			t.Fatal(err)
		}
		h := r.Header
		if last != nil && (h.ClusterId != last.ClusterId || h.MemberId != last.MemberId || h.RaftTerm < last.RaftTerm || h.Revision != last.Revision+1) {
			t.Errorf("after %v came %v", last, h)
		}
		last = h
	}
	id := w.node.Root().Genesis().Hash()
	if last.ClusterId != short(id) || last.MemberId == 0 || last.RaftTerm == 0 {
		t.Errorf("header %v", last)
	}
}

// Without a quorum clients of etcd hear what they know: that there is no leader, or
// that time is up. What could be written stays told in our words.
func TestWithoutQuorumThereIsNoLeader(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	w := newWorld(t, 2, Config{})
	ctx, end := context.WithCancel(context.Background()) // without a deadline, the node's own applies
	defer end()
	w.ctx = ctx
	needs := metadata.AppendToOutgoingContext(w.ctx, "hasleader", "true")
	says(t, "a leader is required", second(w.Range(needs, &etcdpb.RangeRequest{Key: []byte("a"), Serializable: true})), codes.Unavailable, noLeader)
	if _, err := w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("a"), Serializable: true}); err != nil {
		t.Errorf("a serializable read: %v", err)
	}
	var trailer metadata.MD
	says(t, "put", second(w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("a")}, grpc.Trailer(&trailer))), codes.Unavailable, "etcdserver: request timed out")
	if why := strings.Join(trailer.Get(whyTrailer), ""); !strings.Contains(why, "weight 550 are reachable") {
		t.Errorf("the trailer says %q", why)
	}
	says(t, "a linearizable read", second(w.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("a")})), codes.Unavailable, "etcdserver: request timed out")
	s, err := w.Status(w.ctx, &etcdpb.StatusRequest{})
	if err != nil || s.Leader != 0 || len(s.Errors) != 1 || s.Errors[0] != noLeader {
		t.Errorf("status %v, %v", s, err)
	}
	_, err = w.watching(t, needs).Recv()
	says(t, "a watch", err, codes.Unavailable, noLeader)
	short, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
	defer cancel()
	if err := second(w.Put(short, &etcdpb.PutRequest{Key: []byte("a")})); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the client's own deadline: %v", err)
	}
}

func TestTrailersHoldWhatTheyMay(t *testing.T) {
	if got := printable("a\nb\x7fü~ "); got != "a?b??~ " {
		t.Errorf("it is %q", got)
	}
}

func TestStrangeMethodsSayWhatToDoInstead(t *testing.T) {
	w := newWorld(t, 1, Config{})
	for _, i := range instead {
		method := i.prefix
		switch {
		case method == "":
			method = "/some.Other/Method"
		case strings.HasSuffix(method, "/"):
			method += "Method"
		}
		err := w.conn.Invoke(w.ctx, method, &etcdpb.StatusRequest{}, &etcdpb.StatusResponse{})
		if s := status.Convert(err); s.Code() != codes.Unimplemented || !strings.HasSuffix(s.Message(), i.text) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
