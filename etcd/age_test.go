package etcd

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// TestRememberedAnswersHaveAnAge: a node that does not hold the scope of a key says how old an answer is that may be
// old.
func TestRememberedAnswersHaveAnAge(t *testing.T) {
	w := newWorld(t, 1, Config{})
	w.put(t, "/b/0", []byte("v"))
	light := w.light(t)
	w.delegate(t, "", "/b/")
	for i, x := range []struct{ old, aged bool }{{false, false}, {true, true}, {true, true}, {false, false}} {
		var md metadata.MD
		r, err := light.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/b/0"), Serializable: x.old}, grpc.Header(&md))
		if err != nil || r.Count != 1 {
			t.Fatal(r, err)
		}
		age, err := time.ParseDuration(strings.Join(md.Get(ageHeader), ""))
		if (err == nil) != x.aged || age < 0 || age > 5*time.Second {
			t.Errorf("read %d: %v, %v", i, md, err)
		}
	}
	var md metadata.MD
	txn := &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestRange{RequestRange: &etcdpb.RangeRequest{Key: []byte("/b/0"), Serializable: true}}}}}
	if r, err := light.Txn(w.ctx, txn, grpc.Header(&md)); err != nil || !r.Succeeded || len(md.Get(ageHeader)) != 1 {
		t.Errorf("a transaction that reads: %v, %v, %v", r, md, err)
	}
}
