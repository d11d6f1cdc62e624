package etcd

import (
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// rangeOf leaves out of range what is, for wellFormed to refuse.
func rangeOf(r *etcdpb.RangeRequest) scope.Range {
	return scope.Range{
		Revision: r.Revision, Limit: r.Limit,
		Sort: scope.SortBy(small(int32(r.SortTarget))), Order: scope.Order(small(int32(r.SortOrder))),
		KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinMod: r.MinModRevision, MaxMod: r.MaxModRevision,
		MinCreate: r.MinCreateRevision, MaxCreate: r.MaxCreateRevision,
	}
}

// small is a number of an enum in a byte, the largest if it does not fit.
func small(n int32) uint8 {
	if n < 0 || n > math.MaxUint8 {
		return math.MaxUint8
	}
	return uint8(n)
}

func putOf(r *etcdpb.PutRequest) scope.Op {
	return scope.Op{
		Kind: scope.OpPut, Key: r.Key, Value: r.Value, Lease: r.Lease, Prev: r.PrevKv,
		IgnoreValue: r.IgnoreValue, IgnoreLease: r.IgnoreLease,
	}
}

func deleteOf(r *etcdpb.DeleteRangeRequest) scope.Op {
	return scope.Op{Kind: scope.OpDelete, Key: r.Key, End: r.RangeEnd, Prev: r.PrevKv}
}

// mostDepth is as deep as any policy allows.
var mostDepth = scope.MostLimits().TxnDepth

// txnOf converts a transaction at a level, from 0. It leaves a level beyond mostDepth empty: service.check, which knows
// the limits of the scope of the keys, refuses any transaction that has such a level.
func txnOf(r *etcdpb.TxnRequest, depth int) (t scope.Txn, err error) {
	if depth > mostDepth {
		return t, nil
	}
	for _, c := range r.Compare {
		compare, err := compareOf(c)
		if err != nil {
			return t, err
		}
		t.Compare = append(t.Compare, compare)
	}
	if t.Success, err = opsOf(r.Success, depth); err != nil {
		return t, err
	}
	t.Failure, err = opsOf(r.Failure, depth)
	return t, err
}

func opsOf(ops []*etcdpb.RequestOp, depth int) (out []scope.Op, err error) {
	for _, op := range ops {
		switch op := op.GetRequest().(type) {
		case *etcdpb.RequestOp_RequestPut:
			out = append(out, putOf(op.RequestPut))
		case *etcdpb.RequestOp_RequestDeleteRange:
			out = append(out, deleteOf(op.RequestDeleteRange))
		case *etcdpb.RequestOp_RequestRange:
			r := rangeOf(op.RequestRange)
			out = append(out, scope.Op{Kind: scope.OpRange, Key: op.RequestRange.Key, End: op.RequestRange.RangeEnd, Range: &r})
		case *etcdpb.RequestOp_RequestTxn:
			inner, err := txnOf(op.RequestTxn, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, scope.Op{Kind: scope.OpTxn, Txn: &inner})
		default:
			out = append(out, scope.Op{}) // it is empty; wellFormed has an error for it
		}
	}
	return out, nil
}

func compareOf(c *etcdpb.Compare) (scope.Compare, error) {
	if c.Target < etcdpb.Compare_VERSION || c.Target > etcdpb.Compare_LEASE ||
		c.Result < etcdpb.Compare_EQUAL || c.Result > etcdpb.Compare_NOT_EQUAL {
		return scope.Compare{}, status.Errorf(codes.InvalidArgument, "aweigh: a compare of unknown kind %d, %d", c.Target, c.Result)
	}
	out := scope.Compare{
		Target: scope.Target(c.Target) + scope.OnVersion, Relation: scope.Relation(c.Result) + scope.Equal,
		Key: c.Key, End: c.RangeEnd,
	}
	switch out.Target { // a number under another name counts as 0, as in etcd
	case scope.OnVersion:
		out.Number = c.GetVersion()
	case scope.OnCreate:
		out.Number = c.GetCreateRevision()
	case scope.OnMod:
		out.Number = c.GetModRevision()
	case scope.OnLease:
		out.Number = c.GetLease()
	case scope.OnValue:
		out.Value = c.GetValue()
	}
	return out, nil
}

func kvOf(v *scope.KeyValue) *etcdpb.KeyValue {
	return &etcdpb.KeyValue{
		Key: v.Key, Value: v.Value, CreateRevision: v.CreateRevision, ModRevision: v.ModRevision,
		Version: v.Version, Lease: v.Lease,
	}
}

func kvsOf(kvs []scope.KeyValue) []*etcdpb.KeyValue {
	out := make([]*etcdpb.KeyValue, len(kvs))
	for i := range kvs {
		out[i] = kvOf(&kvs[i])
	}
	return out
}

// at is the header of an answer within a transaction, which has nothing but the
// revision.
func at(revision int64) *etcdpb.ResponseHeader { return &etcdpb.ResponseHeader{Revision: revision} }

func rangeResponse(r *scope.RangeResult) *etcdpb.RangeResponse {
	return &etcdpb.RangeResponse{Header: at(r.Revision), Kvs: kvsOf(r.Kvs), More: r.More, Count: r.Count}
}

func putResponse(r *scope.Response) *etcdpb.PutResponse {
	out := &etcdpb.PutResponse{Header: at(r.Revision)}
	if len(r.Prev) > 0 {
		out.PrevKv = kvOf(&r.Prev[0])
	}
	return out
}

func deleteResponse(r *scope.Response) *etcdpb.DeleteRangeResponse {
	return &etcdpb.DeleteRangeResponse{Header: at(r.Revision), Deleted: r.Deleted, PrevKvs: kvsOf(r.Prev)}
}

// txnResponse has an empty header, as those of inner transactions do in etcd.
func txnResponse(succeeded bool, responses []scope.Response) *etcdpb.TxnResponse {
	out := &etcdpb.TxnResponse{Header: &etcdpb.ResponseHeader{}, Succeeded: succeeded}
	for i := range responses {
		out.Responses = append(out.Responses, opResponse(&responses[i]))
	}
	return out
}

func opResponse(r *scope.Response) *etcdpb.ResponseOp {
	switch r.Kind {
	case scope.OpPut:
		return &etcdpb.ResponseOp{Response: &etcdpb.ResponseOp_ResponsePut{ResponsePut: putResponse(r)}}
	case scope.OpDelete:
		return &etcdpb.ResponseOp{Response: &etcdpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleteResponse(r)}}
	case scope.OpTxn:
		return &etcdpb.ResponseOp{Response: &etcdpb.ResponseOp_ResponseTxn{ResponseTxn: txnResponse(r.Succeeded, r.Responses)}}
	}
	return &etcdpb.ResponseOp{Response: &etcdpb.ResponseOp_ResponseRange{ResponseRange: rangeResponse(&r.Range)}}
}
