package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// piece is a range of keys, in the sense of scope.Op, of one scope.
type piece struct {
	decider
	Key, End []byte
}

// split parts a range by the scopes that decide about its keys, in order of key, by the
// delegations before a revision.
func (n *Node) split(ctx context.Context, all []piece, at decider, key, end []byte, before int64) ([]piece, error) {
	for _, s := range scope.Segments(delegated(at.delegations(), before), key, end) {
		if s.Given == nil {
			all = append(all, piece{at, s.Key, s.End})
			continue
		}
		child, err := n.awaitDecider(ctx, *s.Given)
		if err != nil {
			return nil, err
		}
		if all, err = n.split(ctx, all, child, s.Key, s.End, before); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// delegated are those delegations that were made before a revision.
func delegated(all []scope.Delegation, before int64) []scope.Delegation {
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
	return n.ranged(ctx, key, end, reading{Range: r, linearizable: linearizable})
}

// Page is Range from what this node has, but what lies beyond the limit is neither looked at nor counted
// (scope.State.Page).
func (n *Node) Page(ctx context.Context, key, end []byte, r scope.Range) (scope.RangeResult, error) {
	res, _, err := n.ranged(ctx, key, end, reading{Range: r, page: true})
	return res, err
}

// reading is how a range is read.
type reading struct {
	scope.Range
	linearizable, page bool
}

func (n *Node) ranged(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	if len(*n.given.Load()) == 0 {
		if res, head, err = n.Part.ranged(ctx, key, end, r); err != nil || head.Delegated == 0 {
			return res, head, err
		}
	}
	err = n.on(ctx, Keys(), func(*Part) error {
		res, head, err = n.rangeOf(ctx, key, end, r)
		return err
	})
	return res, head, err
}

func (n *Node) rangeOf(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	all, err := n.split(ctx, nil, decider{Part: n.Part}, key, end, math.MaxInt64)
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
	for _, p := range all {
		got, at, err := n.rangePiece(ctx, p, r, views)
		if errors.Is(err, scope.ErrElsewhere) && p.foreign != nil { // it has delegated some of them
			if bad := p.foreign.learn(ctx, Between(p.Key, p.End)); bad != nil {
				return res, head, bad
			}
		}
		if err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("the scope of %s: %w", p.name(), err)
			}
			return res, head, err
		}
		res.Kvs, res.Count, res.More = append(res.Kvs, got.Kvs...), res.Count+got.Count, res.More || got.More
		if head.Scope.IsZero() || got.Revision < res.Revision { // all was read up to there, and some beyond
			head, res.Revision = at, got.Revision
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

// Latest is a revision as of which the keys [key, end), in the sense of scope.Op, have every change that was
// acknowledged before the call: the highest that a scope of theirs is closed up to.
func (n *Node) Latest(ctx context.Context, key, end []byte) (revision int64, err error) {
	err = n.on(ctx, Keys(), func(*Part) error {
		all, err := n.split(ctx, nil, decider{Part: n.Part}, key, end, math.MaxInt64)
		views := make(map[*Part]*View)
		for _, p := range all {
			res, _, bad := n.rangePiece(ctx, p, reading{scope.Range{Limit: 1, KeysOnly: true}, true, true}, views)
			revision, err = max(revision, res.Revision), cmp.Or(err, bad)
		}
		for _, v := range views {
			err = errors.Join(err, v.Close())
		}
		return err
	})
	return revision, err
}

// rangePiece reads what is of one scope; its revision is the one up to which the scope is
// closed.
func (n *Node) rangePiece(ctx context.Context, p piece, r reading, views map[*Part]*View) (res scope.RangeResult, head scope.Head, err error) {
	if p.foreign != nil {
		return p.foreign.rangeOf(ctx, p.Key, p.End, r.Range, r.linearizable)
	}
	v := views[p.Part]
	if v == nil {
		if r.Revision > 0 {
			if err := n.closed(ctx, p.Part, r.Revision); err != nil {
				return res, head, err
			}
		}
		if v, err = p.Part.Read(ctx, r.linearizable); err != nil {
			return res, head, err
		}
		views[p.Part] = v
	}
	if err := v.owns(Between(p.Key, p.End)); err != nil {
		return res, head, err
	}
	if res, err = r.of(v, p.Key, p.End); err != nil {
		return res, head, err
	}
	head = v.Head()
	res.Revision = head.Closed()
	return res, head, nil
}

// Range reads the scope's own keys.
func (n *Part) Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	return n.ranged(ctx, key, end, reading{Range: r, linearizable: linearizable})
}

func (n *Part) ranged(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	v, err := n.Read(ctx, r.linearizable)
	if err != nil {
		return res, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	res, err = r.of(v, key, end)
	return res, head, err
}

// of reads from a view.
func (r *reading) of(v *View, key, end []byte) (scope.RangeResult, error) {
	if r.page {
		return v.Page(key, end, r.Range)
	}
	return v.Range(key, end, r.Range)
}

// ReadOf gives a view of the scope's state, whoever decides about the keys.
func (n *Part) ReadOf(ctx context.Context, _ Ranges, linearizable bool) (*View, error) {
	return n.Read(ctx, linearizable)
}
