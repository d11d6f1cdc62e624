package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// Piece is a range of keys, in the sense of scope.Op, of one scope.
type Piece struct {
	Part     *Part
	Key, End []byte
}

// Pieces parts [key, end) by the scopes that decide about its keys, in order of key.
func (n *Node) Pieces(ctx context.Context, key, end []byte) ([]Piece, error) {
	return n.split(ctx, nil, n.Part, key, end, math.MaxInt64)
}

// split parts a range by the delegations before a revision.
func (n *Node) split(ctx context.Context, all []Piece, p *Part, key, end []byte, before int64) ([]Piece, error) {
	for _, s := range scope.Segments(p.delegated(before), key, end) {
		if s.Given == nil {
			all = append(all, Piece{p, s.Key, s.End})
			continue
		}
		child, err := n.awaitPart(ctx, *s.Given)
		if err != nil {
			return nil, err
		}
		if all, err = n.split(ctx, all, child, s.Key, s.End, before); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// delegated are the delegations of the part's scope before a revision.
func (n *Part) delegated(before int64) []scope.Delegation {
	all := n.Delegations()
	late := func(d scope.Delegation) bool { return d.Revision >= before }
	if !slices.ContainsFunc(all, late) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), late)
}

// Range reads the keys [key, end), in the sense of scope.Op, whichever scopes decide
// about them. What is of one scope is of one moment; what is of several is not: each
// is as new as every write that was acknowledged before the call, if the read is
// linearizable. As of a revision, all of it is of one moment, and scopes at rest are asked
// to close up to there. The head is that of the only scope, or of the one that is closed
// up to the least revision: a watch from there on misses nothing.
func (n *Node) Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	if len(*n.given.Load()) == 0 {
		if res, head, err = n.Part.Range(ctx, key, end, r, linearizable); err != nil || head.Delegated == 0 {
			return res, head, err
		}
	}
	err = n.on(ctx, Keys(), func(*Part) error {
		res, head, err = n.rangeOf(ctx, key, end, r, linearizable)
		return err
	})
	return res, head, err
}

func (n *Node) rangeOf(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	all, err := n.Pieces(ctx, key, end)
	if err != nil {
		return res, head, err
	}
	views := make(map[*Part]*View)
	defer func() {
		for _, v := range views {
			err = errors.Join(err, v.Close())
		}
	}()
	limit := r.Limit
	if len(all) > 1 && r.Sort != scope.ByKey { // what comes first is known when all is there
		r.Limit = 0
	}
	for _, piece := range all {
		v := views[piece.Part]
		if v == nil {
			if r.Revision > 0 {
				if err = n.closed(ctx, piece.Part, r.Revision); err != nil {
					return res, head, err
				}
			}
			if v, err = piece.Part.Read(ctx, linearizable); err != nil {
				if len(all) > 1 {
					err = fmt.Errorf("the scope of %s: %w", piece.Part.name(), err)
				}
				return res, head, err
			}
			views[piece.Part] = v
		}
		if touched, err := v.Touching(piece.Key, piece.End); err != nil || len(touched) > 0 {
			return res, head, errors.Join(err, scope.ErrElsewhere)
		}
		got, err := v.Range(piece.Key, piece.End, r)
		if err != nil {
			return res, head, err
		}
		res.Kvs, res.Count, res.More = append(res.Kvs, got.Kvs...), res.Count+got.Count, res.More || got.More
		if h := v.Head(); head.Scope.IsZero() || h.Closed() < head.Closed() { // all was read up to there, and some beyond
			head, res.Revision = h, h.Closed()
		}
	}
	if len(all) > 1 {
		r.Arrange(res.Kvs)
		if limit > 0 && int64(len(res.Kvs)) > limit {
			res.Kvs, res.More = res.Kvs[:limit], true
		}
	}
	return res, head, nil
}

// Range reads the scope's own keys.
func (n *Part) Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return res, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	res, err = v.Range(key, end, r)
	return res, head, err
}

// ReadOf gives a view of the scope's state, whoever decides about the keys.
func (n *Part) ReadOf(ctx context.Context, _ Ranges, linearizable bool) (*View, error) {
	return n.Read(ctx, linearizable)
}
