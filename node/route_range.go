package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// piece is a range of keys, in the sense of scope.Op, of one scope.
type piece struct {
	owner
	Key, End []byte
}

// split divides a range by the scopes that decide about its keys, in order of key, by the delegations before a
// revision.
func (n *Node) split(ctx context.Context, all []piece, at owner, key, end []byte, before int64) ([]piece, error) {
	for _, s := range scope.Segments(delegated(at.delegations(), before), key, end) {
		if s.Given == nil {
			all = append(all, piece{at, s.Key, s.End})
			continue
		}
		child, err := n.awaitDecider(ctx, *s.Given)
		if err != nil {
			return nil, err
		}
		if child.closed() { // its keys are to be those of the scope above
			if err := n.awaitHome(ctx, at, *s.Given); err != nil {
				return nil, err
			}
			return nil, scope.ErrElsewhere
		}
		if all, err = n.split(ctx, all, child, s.Key, s.End, before); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// delegated returns the delegations that were made before a revision.
func delegated(all []scope.Delegation, before int64) []scope.Delegation {
	late := func(d scope.Delegation) bool { return d.Revision >= before }
	if !slices.ContainsFunc(all, late) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), late)
}

// Range reads the keys [key, end), in the sense of scope.Op, whichever scopes decide about them. The keys of one scope
// are as of one moment. Those of several scopes are not: if the read is linearizable, each scope is as new as every
// write that was acknowledged before the call. With a revision, everything is as of that revision, and idle scopes are
// asked to close up to there. The head is that of the only scope; of several, it is that of the scope that is closed
// up to the least revision, and names no scope: a watch from there on misses nothing.
func (n *Node) Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	return n.ranged(ctx, key, end, reading{Range: r, linearizable: linearizable, take: answerIn(ctx)})
}

// Page reads a part of what Range reads, in order of key and as of a revision. It ends after most bytes or at the
// limit, and then sets More, even if nothing may follow. Scopes that are not held return all that they have. If sure
// is set, it waits until all scopes are known up to the revision; otherwise each is read as far as it is known.
func (n *Node) Page(ctx context.Context, key, end []byte, r scope.Range, most int, sure bool) (scope.RangeResult, error) {
	res, _, err := n.ranged(ctx, key, end, reading{Range: r, most: most, known: !sure, take: answerIn(ctx)})
	return res, err
}

// reading is how a range is read.
type reading struct {
	scope.Range
	linearizable bool
	most         int                   // bytes of a Page; 0: no bound
	known        bool                  // read no further than is known, whatever the revision
	take         func(bytes int) error // counts what is read for an answer; nil: nothing does
}

func (n *Node) ranged(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	if len(n.root.Delegations()) == 0 {
		reread := rereading(ctx)
		if res, head, err = n.root.ranged(ctx, key, end, r); err != nil || head.Delegated == 0 {
			return res, head, err
		}
		reread()
	}
	err = n.withHeld(ctx, referral.Keys(), func(*Replica) error {
		res, head, err = n.rangeOf(ctx, key, end, r)
		return err
	})
	return res, head, err
}

func (n *Node) rangeOf(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	all, err := n.split(ctx, nil, owner{replica: n.root}, key, end, math.MaxInt64)
	if err != nil {
		return res, head, err
	}
	views := make(map[*Replica]*View)
	defer func() {
		for _, v := range views {
			err = errors.Join(err, v.Close())
		}
	}()
	limit := r.Limit
	if len(all) > 1 && r.Sort != scope.ByKey { // the order is known only when everything is read
		r.Limit = 0
	}
	for i, p := range all {
		got, at, err := n.rangePiece(ctx, p, r, views)
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
		if r.most > 0 && r.less(&got) {
			res.More = res.More || i < len(all)-1
			return res, head, nil
		}
	}
	if len(all) > 1 {
		if slices.ContainsFunc(all, func(p piece) bool { return p.name() != all[0].name() }) {
			head.Scope = aweigh.ScopeID{} // the head is not of a single scope
		}
		r.Arrange(res.Kvs)
		if limit > 0 && int64(len(res.Kvs)) > limit {
			res.Kvs, res.More = res.Kvs[:limit], true
		}
	}
	return res, head, nil
}

// Latest returns the highest revision up to which a scope of the keys [key, end), in the sense of scope.Op, is known
// to be closed. If the read is linearizable, the state as of that revision has every change that was acknowledged
// before the call.
func (n *Node) Latest(ctx context.Context, key, end []byte, linearizable bool) (revision int64, err error) {
	err = n.withHeld(ctx, referral.Keys(), func(*Replica) (err error) {
		all, err := n.split(ctx, nil, owner{replica: n.root}, key, end, math.MaxInt64)
		views := make(map[*Replica]*View)
		defer func() {
			for _, v := range views {
				err = errors.Join(err, v.Close())
			}
		}()
		for _, p := range all {
			if err != nil {
				return err
			}
			var res scope.RangeResult
			res, _, err = n.rangePiece(ctx, p, reading{Range: scope.Range{Limit: 1, KeysOnly: true}, linearizable: linearizable, most: 1}, views)
			revision = max(revision, res.Revision)
		}
		return err
	})
	return revision, err
}

// rangePiece reads the keys of one scope. The revision of the result is the one up to which the scope is closed.
func (n *Node) rangePiece(ctx context.Context, p piece, r reading, views map[*Replica]*View) (res scope.RangeResult, head scope.Head, err error) {
	if p.remote != nil {
		res, head, err = p.remote.rangeOf(ctx, p.Key, p.End, r.Range, r.linearizable)
		if errors.Is(err, scope.ErrElsewhere) { // it has delegated some of them
			err = cmp.Or(p.remote.follow(ctx, referral.Between(p.Key, p.End)), err)
		}
		if err == nil {
			err = r.taken(res.Kvs)
		}
		return res, head, err
	}
	v := views[p.replica]
	if v == nil {
		if r.Revision > 0 && !r.known {
			if err := n.closed(ctx, p.replica, r.Revision); err != nil {
				return res, head, err
			}
		}
		if v, err = p.replica.Read(ctx, r.linearizable); err != nil {
			return res, head, err
		}
		views[p.replica] = v
	}
	if err := v.owns(referral.Between(p.Key, p.End)); err != nil {
		return res, head, err
	}
	head = v.Head()
	if r.known && r.Revision > head.ClosedTimestamp() {
		r.Revision = head.ClosedTimestamp()
	}
	if res, err = r.of(v, p.Key, p.End); err != nil {
		return res, head, err
	}
	res.Revision = head.ClosedTimestamp()
	return res, head, nil
}

// Range reads the scope's own keys.
func (n *Replica) Range(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (res scope.RangeResult, head scope.Head, err error) {
	return n.ranged(ctx, key, end, reading{Range: r, linearizable: linearizable, take: answerIn(ctx)})
}

func (n *Replica) ranged(ctx context.Context, key, end []byte, r reading) (res scope.RangeResult, head scope.Head, err error) {
	v, err := n.Read(ctx, r.linearizable)
	if err != nil {
		return res, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if head = v.Head(); head.Closed && r.linearizable {
		return res, head, scope.ErrElsewhere
	}
	res, err = r.of(v, key, end)
	return res, head, err
}

// of reads from a view.
func (r *reading) of(v *View, key, end []byte) (scope.RangeResult, error) {
	if r.most == 0 && len(end) > 0 && (r.CountOnly || r.Sort == scope.ByKey && r.Heads()) {
		return v.counting(key, end, r.Range, r.take)
	}
	return v.PageTaking(key, end, r.Range, r.most, r.take)
}

// taken counts pairs that were read at another node.
func (r *reading) taken(kvs []scope.KeyValue) error {
	if r.take == nil {
		return nil
	}
	return r.take(bytesOf(kvs))
}

// less subtracts what was read from what is left to read of a page. It reports whether nothing is left.
func (r *reading) less(got *scope.RangeResult) bool {
	for i := range got.Kvs {
		r.most -= len(got.Kvs[i].Key) + len(got.Kvs[i].Value)
	}
	if r.Limit > 0 {
		if r.Limit -= int64(len(got.Kvs)); r.Limit <= 0 {
			return true
		}
	}
	return got.More || r.most <= 0
}
