package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// errRequest is wrapped by errors about requests that make no sense.
var errRequest = errors.New("api: invalid request")

func onceOf(ctx context.Context, o *aweighv1.Once) node.Once {
	once := node.Once{Caller: authn.Caller(ctx)}
	if o == nil {
		return once
	}
	once.ValidUntil, once.Justification = aweigh.Instant(o.ValidUntilNs), o.Justification
	once.Patient = o.Patient
	if len(o.Nonce) > 0 {
		once.Nonce = o.Nonce
	}
	return once
}

func putOf(r *aweighv1.PutRequest) scope.Op {
	return scope.Op{
		Kind: scope.OpPut, Key: r.Key, Value: r.Value, Lease: r.Lease, Prev: r.PrevKv,
		IgnoreValue: r.IgnoreValue, IgnoreLease: r.IgnoreLease,
	}
}

func deleteOf(r *aweighv1.DeleteRequest) scope.Op {
	return scope.Op{Kind: scope.OpDelete, Key: r.Key, End: r.RangeEnd, Prev: r.PrevKv}
}

func rangeOf(r *aweighv1.RangeRequest) scope.Range {
	order := scope.Ascending
	if r.Descending {
		order = scope.Descending
	}
	return scope.Range{
		Revision: r.Revision, Limit: r.Limit, Sort: scope.SortBy(r.SortTarget), Order: order,
		KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinMod: r.MinModRevision, MaxMod: r.MaxModRevision,
		MinCreate: r.MinCreateRevision, MaxCreate: r.MaxCreateRevision,
	}
}

func compareOf(c *aweighv1.Compare) scope.Compare {
	return scope.Compare{
		Target: scope.Target(c.Target), Relation: scope.Relation(c.Relation),
		Key: c.Key, End: c.RangeEnd, Number: c.Number, Value: c.Value,
	}
}

// TxnOf converts a request. Errors are those of requests that no policy takes: the scope of the keys has closer limits.
func TxnOf(m *aweighv1.TxnRequest) (scope.Txn, error) {
	most := scope.MostLimits()
	return txnOf(m, &most, 0)
}

// txnOf is a transaction at a level, from 0, if it is nested no deeper than the limits allow.
func txnOf(r *aweighv1.TxnRequest, lim *scope.Limits, depth int) (t scope.Txn, err error) {
	if depth > lim.TxnDepth {
		return t, fmt.Errorf("%w: %w", errRequest, lim.TooDeep())
	}
	for _, c := range r.Compare {
		t.Compare = append(t.Compare, compareOf(c))
	}
	if t.Success, err = opsOf(r.Success, lim, depth); err != nil {
		return t, err
	}
	t.Failure, err = opsOf(r.Failure, lim, depth)
	return t, err
}

func opsOf(ops []*aweighv1.Op, lim *scope.Limits, depth int) (out []scope.Op, err error) {
	for i, op := range ops {
		switch op := op.Op.(type) {
		case *aweighv1.Op_Put:
			out = append(out, putOf(op.Put))
		case *aweighv1.Op_Delete:
			out = append(out, deleteOf(op.Delete))
		case *aweighv1.Op_Merge:
			out = append(out, scope.Op{Kind: scope.OpMerge, Key: op.Merge.Key})
		case *aweighv1.Op_Range:
			r := rangeOf(op.Range)
			out = append(out, scope.Op{Kind: scope.OpRange, Key: op.Range.Key, End: op.Range.RangeEnd, Range: &r})
		case *aweighv1.Op_Txn:
			inner, err := txnOf(op.Txn, lim, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, scope.Op{Kind: scope.OpTxn, Txn: &inner})
		default:
			return nil, fmt.Errorf("%w: operation %d of the transaction is empty", errRequest, i)
		}
	}
	return out, nil
}

func kvOf(v *scope.KeyValue) *aweighv1.KeyValue {
	return &aweighv1.KeyValue{
		Key: v.Key, Value: v.Value, CreateRevision: v.CreateRevision, ModRevision: v.ModRevision,
		Version: v.Version, Lease: v.Lease, Uid: uidOf(v.UID),
	}
}

func kvsOf(kvs []scope.KeyValue) []*aweighv1.KeyValue {
	out := make([]*aweighv1.KeyValue, len(kvs))
	for i := range kvs {
		out[i] = kvOf(&kvs[i])
	}
	return out
}

func uidOf(u aweigh.UID) string {
	if u.IsZero() {
		return ""
	}
	return u.String()
}

func txnResponse(succeeded bool, responses []scope.Response) *aweighv1.TxnResponse {
	out := &aweighv1.TxnResponse{Succeeded: succeeded}
	for i := range responses {
		out.Responses = append(out.Responses, opResponse(&responses[i]))
	}
	return out
}

func opResponse(r *scope.Response) *aweighv1.OpResponse {
	h := &aweighv1.Header{Revision: r.Revision}
	switch r.Kind {
	case scope.OpPut:
		put := putResponse(r)
		put.Header = h
		return &aweighv1.OpResponse{Response: &aweighv1.OpResponse_Put{Put: put}}
	case scope.OpDelete:
		del := &aweighv1.DeleteResponse{Header: h, Deleted: r.Deleted, PrevKvs: kvsOf(r.Prev)}
		return &aweighv1.OpResponse{Response: &aweighv1.OpResponse_Delete{Delete: del}}
	case scope.OpMerge:
		merge := &aweighv1.MergeResponse{Header: h, Uid: uidOf(r.UID)}
		return &aweighv1.OpResponse{Response: &aweighv1.OpResponse_Merge{Merge: merge}}
	case scope.OpTxn:
		txn := txnResponse(r.Succeeded, r.Responses)
		txn.Header = h
		return &aweighv1.OpResponse{Response: &aweighv1.OpResponse_Txn{Txn: txn}}
	}
	res := rangeResponse(&r.Range)
	res.Header = h
	return &aweighv1.OpResponse{Response: &aweighv1.OpResponse_Range{Range: res}}
}

func putResponse(r *scope.Response) *aweighv1.PutResponse {
	out := &aweighv1.PutResponse{Uid: uidOf(r.UID)}
	if len(r.Prev) > 0 {
		out.PrevKv = kvOf(&r.Prev[0])
	}
	return out
}

func rangeResponse(r *scope.RangeResult) *aweighv1.RangeResponse {
	return &aweighv1.RangeResponse{Kvs: kvsOf(r.Kvs), More: r.More, Count: r.Count}
}
