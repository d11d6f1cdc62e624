package etcd

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Keys is what the API needs of a node to read and write keys.
type Keys interface {
	Txn(ctx context.Context, t scope.Txn, once node.Once) (machine.Receipt, error)
	Compact(ctx context.Context, revision int64, once node.Once) (machine.Receipt, error)
	Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error)
	Page(ctx context.Context, key, end []byte, r scope.Range, most int, sure bool) (scope.RangeResult, error)
	Latest(ctx context.Context, key, end []byte, linearizable bool) (int64, error)
	ReadOf(ctx context.Context, ranges referral.Ranges, linearizable bool) (*node.View, error)
	LimitsFor(ranges referral.Ranges) scope.Limits
	AwaitMotion(ctx context.Context, id []byte, tell func(node.Motion, scope.Head) error) error
}

// kvServer implements etcd's KV.
type kvServer struct {
	etcdpb.UnimplementedKVServer
	*service
}

// ageHeader is the metadata that says how old an answer is, as a duration.
const ageHeader = "aweigh-age"

// tellAge says how old an answer is that may be old, if it is of a scope that the node does not hold. A client that
// does not get it hears of no age.
func tellAge(ctx context.Context, age *node.Age, mayBeOld bool) {
	if old := age.Oldest(); old > 0 && mayBeOld {
		_ = grpc.SetHeader(ctx, metadata.Pairs(ageHeader, old.String()))
	}
}

// Range implements etcdpb.KVServer.
func (s *kvServer) Range(ctx context.Context, r *etcdpb.RangeRequest) (*etcdpb.RangeResponse, error) {
	how := rangeOf(r)
	err := wellFormedOp(&scope.Op{Kind: scope.OpRange, Key: r.Key, Range: &how}, 0)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	known, err := s.holds(ctx, r)
	if err != nil {
		return nil, err
	}
	aged, age := node.Aged(ctx)
	res, _, err := s.node.Range(aged, r.Key, r.RangeEnd, how, !r.Serializable)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	tellAge(ctx, age, r.Serializable)
	if err := s.stillKnows(known); err != nil {
		return nil, err
	}
	out := rangeResponse(&res)
	out.Header = s.header(res.Revision)
	return out, nil
}

// look gives use a view of the state of the scope that decides about some keys, of the
// root scope if there are none, and closes it.
func (s *service) look(ctx context.Context, about referral.Ranges, linearizable bool, use func(*node.View) error) error {
	v, err := s.node.ReadOf(ctx, about, linearizable)
	if err != nil {
		return err
	}
	return used(v, use)
}

// used gives use a view, and closes it.
func used(v *node.View, use func(*node.View) error) (err error) {
	err = use(v)
	if closing := v.Close(); err == nil {
		err = closing
	}
	return err
}

// Put implements etcdpb.KVServer.
func (s *kvServer) Put(ctx context.Context, r *etcdpb.PutRequest) (*etcdpb.PutResponse, error) {
	t := scope.Txn{Success: []scope.Op{putOf(r)}}
	err := s.check(r, &t)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	known, err := s.holdsTxn(ctx, r, &t)
	if err != nil {
		return nil, err
	}
	known.By.Bound(&t)
	receipt, err := s.write(ctx, t)
	if errors.Is(err, scope.ErrKeyNotFound) && r.Lease != 0 {
		err = s.whichNotFound(ctx, r.Lease)
	}
	if err == nil && len(receipt.Responses) == 0 && r.PrevKv {
		err = errTimeout
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	out := &etcdpb.PutResponse{}
	if len(receipt.Responses) > 0 {
		out = putResponse(&receipt.Responses[0])
	}
	out.Header = s.header(receipt.Revision)
	return out, nil
}

// whichNotFound is why a put failed that found nothing to keep: etcd looks for its
// lease first, unless it is part of a transaction.
func (s *service) whichNotFound(ctx context.Context, lease int64) error {
	return s.look(ctx, referral.Keys(), false, func(v *node.View) error {
		_, ok, err := v.Lease(lease)
		if err == nil && !ok {
			return scope.ErrLeaseNotFound
		}
		return cmp.Or(err, scope.ErrKeyNotFound)
	})
}

// DeleteRange implements etcdpb.KVServer. It is one transaction, of however many
// keys, and so refused where one may not look at as many (scope.ErrTooMuch): etcd
// promises that all go at one revision.
func (s *kvServer) DeleteRange(ctx context.Context, r *etcdpb.DeleteRangeRequest) (*etcdpb.DeleteRangeResponse, error) {
	t := scope.Txn{Success: []scope.Op{deleteOf(r)}}
	err := s.check(r, &t)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	if _, err := s.holdsTxn(ctx, r, &t); err != nil {
		return nil, err
	}
	receipt, err := s.write(ctx, t)
	if err == nil && len(receipt.Responses) == 0 {
		err = errTimeout
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	out := deleteResponse(&receipt.Responses[0])
	out.Header = s.header(receipt.Revision)
	return out, nil
}

// Txn implements etcdpb.KVServer. As in etcd, one that can only read is a read.
func (s *kvServer) Txn(ctx context.Context, r *etcdpb.TxnRequest) (out *etcdpb.TxnResponse, err error) {
	t, err := txnOf(r, 0)
	if err == nil {
		err = s.check(r, &t)
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	known, err := s.holdsTxn(ctx, r, &t)
	if err != nil {
		return nil, err
	}
	if readOnly(r) {
		out, err = s.readTxn(ctx, &t, !serializable(r))
		if err == nil {
			err = s.stillKnows(known)
		}
		return out, statusFor(ctx, err)
	}
	known.By.Bound(&t)
	receipt, err := s.write(ctx, t)
	branch := t.Failure
	if receipt.Succeeded {
		branch = t.Success
	}
	if err == nil && len(receipt.Responses) < len(branch) {
		err = errTimeout
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	out = txnResponse(receipt.Succeeded, receipt.Responses)
	out.Header = s.header(receipt.Revision)
	return out, nil
}

// Compact implements etcdpb.KVServer. Content goes bit by bit afterwards; to wait
// for it, as physical asks, has no meaning, as it is visible to no client any more.
func (s *kvServer) Compact(ctx context.Context, r *etcdpb.CompactionRequest) (*etcdpb.CompactionResponse, error) {
	receipt, err := s.node.Compact(ctx, r.Revision, node.Once{Caller: authn.Caller(ctx)})
	if err == nil {
		err = failure(receipt)
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	return &etcdpb.CompactionResponse{Header: s.header(receipt.Revision)}, nil
}

// write proposes a transaction and waits until it is final. The receipt lacks the
// responses if this node took the outcome from the record, as after it fetched a
// snapshot meanwhile: then a caller that needs them gets an error.
func (s *kvServer) write(ctx context.Context, t scope.Txn) (machine.Receipt, error) {
	r, err := s.node.Txn(ctx, t, node.Once{Caller: authn.Caller(ctx)})
	if err == nil && r.Code == scope.Pending {
		return s.approved(ctx, t, r)
	}
	if err == nil {
		err = failure(r)
	}
	return r, err
}
