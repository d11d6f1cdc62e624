package client

import (
	"context"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// Merge is a value made from what two keys hold, and the versions of them that were seen.
type Merge struct {
	From, To                 []byte
	FromRevision, ToRevision int64
	Value                    []byte
}

// Txn is the transaction that puts the value under To, with whatever lease is there, and records both parents (P52). If
// a condition does not hold, it returns both keys without values.
func (m *Merge) Txn() *aweighv1.TxnRequest {
	is := func(key []byte, revision int64) *aweighv1.Compare {
		return &aweighv1.Compare{Target: aweighv1.Compare_TARGET_MOD, Relation: aweighv1.Compare_RELATION_EQUAL, Key: key, Number: revision}
	}
	look := func(key []byte) *aweighv1.Op {
		return &aweighv1.Op{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: key, KeysOnly: true}}}
	}
	return &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{is(m.From, m.FromRevision), is(m.To, m.ToRevision)},
		Success: []*aweighv1.Op{
			{Op: &aweighv1.Op_Merge{Merge: &aweighv1.MergeRequest{Key: m.From}}},
			{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: m.To, Value: m.Value, IgnoreLease: true}}},
		},
		Failure: []*aweighv1.Op{look(m.From), look(m.To)},
	}
}

// Merge puts a value made from what two keys hold. The error wraps ErrCondition if one of them has changed.
func (c *Client) Merge(ctx context.Context, m *Merge, once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	req := m.Txn()
	req.Once = once
	r, err := c.Txn(ctx, req)
	if err != nil {
		return nil, err
	}
	return r, m.Failure(r)
}

// Failure reports which of the two has changed, if the transaction was not done for it.
func (m *Merge) Failure(r *aweighv1.TxnResponse) error {
	if r.Succeeded {
		return nil
	}
	for i, is := range []struct {
		key      []byte
		revision int64
	}{{m.From, m.FromRevision}, {m.To, m.ToRevision}} {
		if i >= len(r.Responses) {
			return ErrCondition // answered from the record
		}
		found := r.Responses[i].GetRange().GetKvs()
		if len(found) == 0 {
			return fmt.Errorf("%w: %q is gone; merge again", ErrCondition, is.key)
		}
		if at := found[0].ModRevision; at != is.revision {
			return fmt.Errorf("%w: %q was changed in revision %d, after revision %d was merged; merge again", ErrCondition, is.key, at, is.revision)
		}
	}
	return ErrCondition
}

// Ancestor is the newest version from which the contents of two objects both come, as their histories tell: the one
// that was merged last, or that one of them, or both, were forked from. It is nil if there is none. own reports whether
// it is a version of the first.
func Ancestor(from, to *aweighv1.ObjectResponse) (place *aweighv1.Place, own bool) {
	newest := int64(-1)
	for _, side := range []struct {
		of, other *aweighv1.ObjectResponse
		own       bool
	}{{to, from, true}, {from, to, false}} {
		for _, e := range side.of.Entries {
			p, ok := scope.ParseMerged(e.Reason)
			if (e.Class == "update" || e.Class == "insert") && ok && p.Object.String() == side.other.Uid && e.Index > newest {
				newest, own = e.Index, side.own
				place = &aweighv1.Place{Key: p.Key, Revision: p.Revision, Sub: p.Sub}
			}
		}
	}
	switch {
	case place != nil:
		return place, own
	case to.Parent == from.Uid:
		return to.Place, true
	case from.Parent == to.Uid:
		return from.Place, false
	case from.Parent != "" && from.Parent == to.Parent:
		if to.Place.GetRevision() < from.Place.GetRevision() {
			return to.Place, false
		}
		return from.Place, false
	}
	return nil, false
}
