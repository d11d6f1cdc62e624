package etcd

import (
	"context"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// readOnly reports whether a transaction can do nothing but read, whichever way
// its compares go. As in etcd, one with inner transactions is not.
func readOnly(r *etcdpb.TxnRequest) bool {
	return all(r, func(*etcdpb.RangeRequest) bool { return true })
}

// serializable reports whether all its reads, of which there are some, may be
// answered by this node alone.
func serializable(r *etcdpb.TxnRequest) bool {
	return len(r.Success)+len(r.Failure) > 0 && all(r, (*etcdpb.RangeRequest).GetSerializable)
}

// all reports whether all operations are ranges for which ok holds.
func all(r *etcdpb.TxnRequest, ok func(*etcdpb.RangeRequest) bool) bool {
	for _, branch := range [][]*etcdpb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if read := op.GetRequestRange(); read == nil || !ok(read) {
				return false
			}
		}
	}
	return true
}

// readTxn answers a read-only transaction.
func (s *service) readTxn(ctx context.Context, t *scope.Txn, linearizable bool) (*etcdpb.TxnResponse, error) {
	aged, age := node.Aged(ctx)
	found, err := s.node.Look(aged, t, linearizable)
	tellAge(ctx, age, !linearizable)
	if err != nil {
		return nil, err
	}
	out := txnResponse(found.Succeeded, found.Responses)
	out.Header = s.header(found.Revision)
	return out, nil
}
