package api

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// depthOf is how deep transactions stand in one another.
func depthOf(t scope.Txn) (deepest int) {
	for _, ops := range [][]scope.Op{t.Success, t.Failure} {
		for _, op := range ops {
			if op.Txn != nil {
				deepest = max(deepest, 1+depthOf(*op.Txn))
			}
		}
	}
	return deepest
}

// FuzzTxnRequest: a request is refused as invalid, or becomes a transaction that
// is not too deep, has as many operations as were asked for, and survives its
// encoding, which is signed.
func FuzzTxnRequest(f *testing.F) {
	inner := &aweighv1.TxnRequest{Success: []*aweighv1.Op{{Op: &aweighv1.Op_Delete{Delete: &aweighv1.DeleteRequest{Key: []byte("a")}}}}}
	for _, r := range []*aweighv1.TxnRequest{
		{},
		{Success: []*aweighv1.Op{{}}},
		{Success: []*aweighv1.Op{{Op: &aweighv1.Op_Txn{Txn: inner}}}, Failure: []*aweighv1.Op{{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: []byte("k"), Limit: -1}}}}},
		{Compare: []*aweighv1.Compare{{Key: []byte("a"), Target: 99, Relation: -1}}, Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: []byte("k")}}}}},
	} {
		raw, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lim := scope.DefaultLimits()
		var r aweighv1.TxnRequest
		if proto.Unmarshal(data, &r) != nil {
			return
		}
		txn, err := txnOf(&r, &lim, 0)
		if err != nil {
			if !errors.Is(err, errRequest) {
				t.Fatalf("not a fault of the request: %v", err)
			}
			return
		}
		if d := depthOf(txn); d > lim.TxnDepth {
			t.Fatalf("%d deep", d)
		}
		if len(txn.Success) != len(r.Success) || len(txn.Failure) != len(r.Failure) || len(txn.Compare) != len(r.Compare) {
			t.Fatalf("%v became %v", &r, txn)
		}
		raw := canon.Encode(txn)
		var again scope.Txn
		if err := canon.Decode(raw, &again); err == nil && !bytes.Equal(canon.Encode(again), raw) {
			t.Fatal("a transaction with two encodings")
		}
		_ = onceOf(t.Context(), r.Once)
	})
}
