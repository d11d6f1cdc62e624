package client

import (
	"context"
	"errors"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// ErrCondition means that a condition did not hold. Nothing was changed.
var ErrCondition = errors.New("client: the condition did not hold; nothing was changed")

// PutIf sets one key if it was last changed in the revision given, or, for
// revision 0, if there is no such key. Otherwise the error wraps ErrCondition,
// and has the present state.
func (c *Client) PutIf(ctx context.Context, req *aweighv1.PutRequest, revision int64) (*aweighv1.PutResponse, error) {
	op := &aweighv1.PutRequest{
		Key: req.Key, Value: req.Value, Lease: req.Lease, PrevKv: req.PrevKv,
		IgnoreValue: req.IgnoreValue, IgnoreLease: req.IgnoreLease,
	}
	txn, err := c.Txn(ctx, &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{{
			Target: aweighv1.Compare_TARGET_MOD, Relation: aweighv1.Compare_RELATION_EQUAL, Key: req.Key, Number: revision,
		}},
		Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: op}}},
		Failure: []*aweighv1.Op{{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: req.Key, KeysOnly: true}}}},
		Once:    req.Once,
	})
	if err != nil {
		return nil, err
	}
	if !txn.Succeeded {
		return nil, conflict(txn)
	}
	resp := &aweighv1.PutResponse{Header: txn.Header, Repeated: txn.Repeated}
	if len(txn.Responses) > 0 {
		put := txn.Responses[0].GetPut()
		resp.PrevKv, resp.Uid = put.GetPrevKv(), put.GetUid()
	}
	return resp, nil
}

// conflict reports what a transaction of PutIf found instead.
func conflict(txn *aweighv1.TxnResponse) error {
	if len(txn.Responses) == 0 {
		return ErrCondition // answered from the record
	}
	found := txn.Responses[0].GetRange().GetKvs()
	if len(found) == 0 {
		return fmt.Errorf("%w: no such key", ErrCondition)
	}
	return fmt.Errorf("%w: the key was last changed in revision %d", ErrCondition, found[0].ModRevision)
}

// errEnough ends a Follow.
var errEnough = errors.New("client: enough")

// Follow is Watch, ending without an error after so many events, if count is
// not 0; a revision may be cut short by that.
func (c *Client) Follow(ctx context.Context, req *aweighv1.WatchRequest, count int, each func(*aweighv1.WatchResponse) error) error {
	seen := 0
	err := c.Watch(ctx, req, func(w *aweighv1.WatchResponse) error {
		if count > 0 {
			w.Events = w.Events[:min(len(w.Events), count-seen)]
		}
		if err := each(w); err != nil {
			return err
		}
		if seen += len(w.Events); count > 0 && seen >= count {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
