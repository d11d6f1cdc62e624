package etcd

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/scope"
)

// check reports whether a request may be proposed as a transaction. Its errors
// are those of etcd where etcd has one.
func (s *service) check(r proto.Message, t *scope.Txn) error {
	lim := s.node.LimitsFor(t.Ranges)
	if proto.Size(r) > min(s.maxRequest, lim.MutationBytes) {
		return errTooLarge
	}
	if err := wellFormed(t, lim.TxnOps); err != nil {
		return err
	}
	err := t.Check(lim)
	if err == nil || errors.Is(err, scope.ErrDuplicateKey) || errors.Is(err, scope.ErrTooManyOps) {
		return err
	}
	return status.Error(codes.InvalidArgument, "aweigh: "+err.Error())
}

// wellFormed looks at the form of a transaction in etcd's order, so that of two errors
// it returns the same one; scope.Txn.Check covers the same and more in its own.
func wellFormed(t *scope.Txn, ops int) error {
	most := max(len(t.Compare), len(t.Success), len(t.Failure))
	if most > ops {
		return scope.ErrTooManyOps
	}
	for i := range t.Compare {
		if len(t.Compare[i].Key) == 0 {
			return scope.ErrEmptyKey
		}
	}
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if err := wellFormedOp(&branch[i], ops-most); err != nil {
				return err
			}
		}
	}
	return nil
}

func wellFormedOp(op *scope.Op, ops int) error {
	switch {
	case op.Kind == 0:
		return errKeyNotFound // as etcd's for an empty operation
	case op.Kind == scope.OpTxn:
		return wellFormed(op.Txn, ops)
	case len(op.Key) == 0:
		return scope.ErrEmptyKey
	case op.Range != nil && (op.Range.Sort > scope.ByValue || op.Range.Order > scope.Descending):
		return scope.ErrSortOption
	case op.IgnoreValue && len(op.Value) > 0:
		return scope.ErrValueProvided
	case op.IgnoreLease && op.Lease != 0:
		return scope.ErrLeaseProvided
	}
	return nil
}
