package client

import (
	"context"
	"errors"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// PutIf sets one key if it was last changed in the revision given, or, for
// revision 0, if there is no such key; held says whether that was so.
func (c *Client) PutIf(ctx context.Context, req *aweighv1.PutRequest, revision int64) (resp *aweighv1.PutResponse, held bool, err error) {
	once := NewOnce(req.Once)
	op := &aweighv1.PutRequest{
		Key: req.Key, Value: req.Value, Lease: req.Lease, PrevKv: req.PrevKv,
		IgnoreValue: req.IgnoreValue, IgnoreLease: req.IgnoreLease,
	}
	txn, err := c.Txn(ctx, &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{{
			Target: aweighv1.Compare_TARGET_MOD, Relation: aweighv1.Compare_RELATION_EQUAL, Key: req.Key, Number: revision,
		}},
		Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: op}}},
		Once:    once,
	})
	if err != nil || !txn.Succeeded {
		return nil, false, err
	}
	resp = &aweighv1.PutResponse{Header: txn.Header}
	if len(txn.Responses) > 0 {
		put := txn.Responses[0].GetPut()
		resp.PrevKv, resp.Uid = put.GetPrevKv(), put.GetUid()
	}
	return resp, true, nil
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
