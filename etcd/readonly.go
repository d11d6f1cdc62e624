package etcd

import (
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

// readTxn answers a read-only transaction from a view, without the bounds of one
// that all nodes must execute.
func readTxn(v *node.View, t *scope.Txn) (*etcdpb.TxnResponse, error) {
	succeeded, branch := true, t.Success
	for i := range t.Compare {
		ok, err := holds(v, &t.Compare[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			succeeded, branch = false, t.Failure
			break
		}
	}
	responses := make([]scope.Response, len(branch))
	for i := range branch {
		op := &branch[i]
		res, err := v.Range(op.Key, op.End, *op.Range)
		if err != nil {
			return nil, err
		}
		responses[i] = scope.Response{Kind: scope.OpRange, Range: res}
	}
	out := txnResponse(succeeded, responses)
	out.Header = at(v.Head().Revision)
	return out, nil
}

// holds evaluates a compare as a transaction that writes does: for every key of
// the range, or for an absent one if there is none.
func holds(v *node.View, c *scope.Compare) (bool, error) {
	res, err := v.Range(c.Key, c.End, scope.Range{KeysOnly: c.Target != scope.OnValue})
	if err != nil {
		return false, err
	}
	if len(res.Kvs) == 0 {
		return c.Holds(&scope.KeyValue{}, false), nil
	}
	for i := range res.Kvs {
		if !c.Holds(&res.Kvs[i], true) {
			return false, nil
		}
	}
	return true, nil
}
