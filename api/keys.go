package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// txn proposes a transaction and returns the outcome. A repetition of a
// request that is final already is answered from the record, which keeps no
// responses.
func (s *service) txn(ctx context.Context, t scope.Txn, once *aweighv1.Once, provisional bool) (r machine.Receipt, h *aweighv1.Header, err error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	rightsIn(ctx).Bound(&t)
	var on node.Island
	if provisional {
		r, on, err = s.node.TxnProvisional(ctx, t, onceOf(ctx, once))
	} else {
		r, err = s.route.Txn(ctx, t, onceOf(ctx, once))
	}
	if err != nil {
		return r, nil, problem(err)
	}
	h = s.written(r)
	if provisional {
		h.Island = islandOf(&on)
	}
	return r, h, failure(r)
}

// repeated reports whether a receipt for t comes from the record: every operation
// that is executed has a response.
func repeated(t scope.Txn, r machine.Receipt) bool {
	ops := t.Failure
	if r.Succeeded {
		ops = t.Success
	}
	return r.Code == scope.Duplicate || len(r.Responses) < len(ops)
}

// one is the transaction of a single operation. A repetition has no response.
func (s *service) one(ctx context.Context, op scope.Op, once *aweighv1.Once, provisional bool) (h *aweighv1.Header, resp *scope.Response, again bool, err error) {
	t := scope.Txn{Success: []scope.Op{op}}
	r, h, err := s.txn(ctx, t, once, provisional)
	if err != nil || repeated(t, r) {
		return h, &scope.Response{}, true, err
	}
	return h, &r.Responses[0], false, nil
}

// Put implements aweighv1connect.NodeHandler.
func (s *service) Put(ctx context.Context, req *connect.Request[aweighv1.PutRequest]) (*connect.Response[aweighv1.PutResponse], error) {
	h, resp, again, err := s.one(ctx, putOf(req.Msg), req.Msg.Once, req.Msg.Provisional)
	if err != nil {
		return nil, err
	}
	out := putResponse(resp)
	out.Header, out.Repeated = h, again
	return connect.NewResponse(out), nil
}

// Delete implements aweighv1connect.NodeHandler.
func (s *service) Delete(ctx context.Context, req *connect.Request[aweighv1.DeleteRequest]) (*connect.Response[aweighv1.DeleteResponse], error) {
	h, resp, again, err := s.one(ctx, deleteOf(req.Msg), req.Msg.Once, req.Msg.Provisional)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&aweighv1.DeleteResponse{
		Header: h, Deleted: resp.Deleted, PrevKvs: kvsOf(resp.Prev), Repeated: again,
	}), nil
}

// Txn implements aweighv1connect.NodeHandler.
func (s *service) Txn(ctx context.Context, req *connect.Request[aweighv1.TxnRequest]) (*connect.Response[aweighv1.TxnResponse], error) {
	t, err := TxnOf(req.Msg)
	if err != nil {
		return nil, problem(err)
	}
	r, h, err := s.txn(ctx, t, req.Msg.Once, req.Msg.Provisional)
	if err != nil {
		return nil, err
	}
	out := txnResponse(r.Succeeded, r.Responses)
	out.Header, out.Repeated = h, repeated(t, r)
	return connect.NewResponse(out), nil
}

// Range implements aweighv1connect.NodeHandler.
func (s *service) Range(ctx context.Context, req *connect.Request[aweighv1.RangeRequest]) (*connect.Response[aweighv1.RangeResponse], error) {
	m := req.Msg
	if len(m.Key) == 0 {
		return nil, problem(scope.ErrEmptyKey)
	}
	if m.SortTarget < 0 || m.SortTarget > aweighv1.SortTarget_SORT_TARGET_VALUE {
		return nil, problem(scope.ErrInvalid)
	}
	if m.Limit < 0 || m.Revision < 0 {
		return nil, problem(fmt.Errorf("%w: neither limit (%d) nor revision (%d) is negative", errRequest, m.Limit, m.Revision))
	}
	a := s.answer()
	defer a.Until(ctx) // which ends when the client has taken it
	ctx, cancel := patient(a.In(ctx))
	defer cancel()
	if m.Provisional {
		res, head, on, err := s.node.RangeProvisional(ctx, m.Key, m.RangeEnd, rangeOf(m))
		if err != nil {
			return nil, problem(err)
		}
		out := rangeResponse(&res)
		out.Header = s.read(head, true)
		out.Header.Island = islandOf(&on)
		return connect.NewResponse(out), nil
	}
	ctx, age := node.Aged(ctx)
	res, head, err := s.route.Range(ctx, m.Key, m.RangeEnd, rangeOf(m), !m.Serializable)
	if err != nil {
		return nil, problem(err)
	}
	out := rangeResponse(&res)
	out.Header = s.read(head, !m.Serializable)
	if m.Serializable {
		out.Header.AgeNs = int64(age.Oldest())
	}
	return connect.NewResponse(out), nil
}

// answerWeight is how many bytes of memory each byte that is read for an answer takes: as pairs, and as a message.
const answerWeight = 2

// answer begins an answer that counts for the budget of the node. What clients take is timed by the call.
func (s *service) answer() *node.Answer { return s.node.Answers().New(answerWeight, 0, nil, nil) }

// Compact implements aweighv1connect.NodeHandler.
func (s *service) Compact(ctx context.Context, req *connect.Request[aweighv1.CompactRequest]) (*connect.Response[aweighv1.CompactResponse], error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := s.route.Compact(ctx, req.Msg.Revision, onceOf(ctx, req.Msg.Once))
	if err != nil {
		return nil, problem(err)
	}
	if err := failure(r); err != nil {
		return nil, err
	}
	return connect.NewResponse(&aweighv1.CompactResponse{Header: s.written(r)}), nil
}

// Submit implements aweighv1connect.NodeHandler.
func (s *service) Submit(ctx context.Context, req *connect.Request[aweighv1.SubmitRequest]) (*connect.Response[aweighv1.SubmitResponse], error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	receipts, err := s.route.Submit(ctx, req.Msg.Bundle)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.SubmitResponse{}
	for i := range receipts {
		r := &receipts[i]
		out.Header = s.written(*r)
		out.Outcomes = append(out.Outcomes, &aweighv1.Outcome{
			Mutation: r.Mutation[:], Code: r.Code.String(), Reason: r.Reason,
			Revision: r.Revision, Height: uint64(r.Height), Txn: txnResponse(r.Succeeded, r.Responses),
		})
	}
	return connect.NewResponse(out), nil
}
