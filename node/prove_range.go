package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/keytree"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

const (
	// mostProven bounds the keys and values that the part of a proof about one scope holds, in bytes.
	mostProven = 4 << 20
	// provenWithin is how old the block may be that a proof of a range leads to. A node in which no block came for
	// longer writes one.
	provenWithin = 2 * time.Second
)

// ProveRange returns a proof of what the keys of [key, end), in the sense of scope.Op, hold, from all scopes that
// govern some of them. It shows every write that was acknowledged before the call, and verifies offline from the
// network's identity alone. The head is that of the scope that governs the range, or all scopes of it. Errors wrap
// scope.ErrLongRange for a range that holds too much.
//
// With a height, the proof is as of that block of the root scope: see Replica.ProveRange.
func (n *Node) ProveRange(ctx context.Context, key, end []byte, at aweigh.Height) (p *scope.RangeProof, head scope.Head, err error) {
	if at > 0 {
		return n.root.proveOlder(ctx, key, end, at)
	}
	err = n.withOwner(ctx, referral.Keys(), func(owner) error { // again if keys are delegated meanwhile
		p = &scope.RangeProof{Key: key, End: end}
		at := owner{replica: n.root}
		for {
			s := scope.Segments(at.delegations(), key, end)
			if len(s) != 1 || s[0].Given == nil {
				break
			}
			if at, err = n.awaitDecider(ctx, *s[0].Given); err != nil {
				return err
			}
			if at.remote != nil {
				break
			}
		}
		p.Parts, head, err = n.proveParts(ctx, at, key, end)
		return err
	})
	return p, head, err
}

// proveParts returns the parts about the keys that a scope governs, and about those of the scopes below it.
func (n *Node) proveParts(ctx context.Context, at owner, key, end []byte) (parts []scope.RangePart, head scope.Head, err error) {
	var part scope.RangePart
	if at.remote != nil {
		part, head, err = at.remote.proveRange(ctx, key, end)
	} else {
		part, head, err = at.replica.proveRange(ctx, key, end)
	}
	if err != nil {
		return nil, head, err
	}
	if err := takenOf(ctx, &part); err != nil {
		return nil, head, err
	}
	parts = append(parts, part)
	for _, l := range part.Below(key, end) {
		child, err := n.childOf(ctx, at, l.Key)
		if err != nil {
			return nil, head, err
		}
		from, to := scope.Intersect(l.Key, key, end)
		more, _, err := n.proveParts(ctx, child, from, to)
		if err != nil {
			return nil, head, fmt.Errorf("the scope of %q: %w", l.Key, err)
		}
		parts = append(parts, more...)
	}
	return parts, head, nil
}

// childOf returns the scope that a scope founded for a prefix.
func (n *Node) childOf(ctx context.Context, of owner, prefix []byte) (owner, error) {
	given, ok := scope.DelegationOf(of.delegations(), prefix)
	if !ok && of.remote != nil { // whose delegations this node learns as it needs them
		if err := of.remote.learn(ctx, referral.Keys(prefix)); err != nil {
			return owner{}, err
		}
		given, ok = scope.DelegationOf(of.delegations(), prefix)
	}
	if !ok {
		return owner{}, fmt.Errorf("%w: %q, which is not known here yet", scope.ErrElsewhere, prefix)
	}
	return n.awaitDecider(ctx, given)
}

// takenOf counts what a part holds for the answer of a context.
func takenOf(ctx context.Context, p *scope.RangePart) error {
	take := answerIn(ctx)
	if take == nil {
		return nil
	}
	for i := range p.Kvs {
		if err := take(len(p.Kvs[i].Key) + len(p.Kvs[i].Value)); err != nil {
			return err
		}
	}
	return nil
}

// proveRange returns the part of a proof about the keys that the scope governs.
func (n *Replica) proveRange(ctx context.Context, key, end []byte) (p scope.RangePart, head scope.Head, err error) {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	v, err := n.Read(ctx, true)
	if err != nil {
		return p, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	a, err := n.claimOf(ctx, v)
	if err != nil {
		return p, head, err
	}
	p, err = scope.NewRangePart(a, v.State, key, end, mostProven)
	return p, head, err
}

// ProveRange is Node.ProveRange within the scope. Errors wrap scope.ErrElsewhere if another scope governs some key.
//
// With a height, the proof is as of that block, and head is the newest. This takes time and memory for all keys of the
// scope. Errors wrap ErrOlder, scope.ErrCompacted, or machine.ErrBusy while others wait for such proofs.
func (n *Replica) ProveRange(ctx context.Context, key, end []byte, at aweigh.Height) (*scope.RangeProof, scope.Head, error) {
	if at > 0 {
		return n.proveOlder(ctx, key, end, at)
	}
	part, head, err := n.proveRange(ctx, key, end)
	if err == nil {
		err = takenOf(ctx, &part)
	}
	if below := part.Below(key, end); err == nil && len(below) > 0 {
		err = fmt.Errorf("%w: %q", scope.ErrElsewhere, below[0].Key)
	}
	return &scope.RangeProof{Key: key, End: end, Parts: []scope.RangePart{part}}, head, err
}

// claimOf returns the ancestry of a final block whose header claims what the keys hold in a view: the block that
// follows it, or the newest block of the view if that changed no key and is not old. Where there is none, it has one
// written.
func (n *Replica) claimOf(ctx context.Context, v *View) (scope.Ancestry, error) {
	a, err := n.claimSince(ctx, v, n.runner.now().Add(-provenWithin))
	if err != nil {
		if old, none := n.prover(ctx, v).Claim(0); none == nil {
			return old, nil // the reader sees its time
		}
	}
	return a, err
}

// claimSince is claimOf with the time since which the newest block of the view serves. It fails where no block follows.
func (n *Replica) claimSince(ctx context.Context, v *View, since aweigh.Instant) (a scope.Ancestry, err error) {
	at := v.Head().Height
	for {
		changed := n.Changed()
		a, err = n.prover(ctx, v).Claim(since)
		if !errors.Is(err, machine.ErrUncovered) {
			return a, err
		}
		if n.LastHead().Height == at {
			err = n.cover(ctx, at)
		} else { // what makes the block final is still to come
			select {
			case <-changed:
				continue
			case <-time.After(claimRetry):
				continue
			case <-ctx.Done():
				err = fmt.Errorf("%w: no block above height %d is known to be final: %w", ErrUnread, at, context.Cause(ctx))
			}
		}
		if err != nil {
			return a, err
		}
	}
}

// claimRetry is how long a node waits for what makes a block final before it looks again.
const claimRetry = 20 * time.Millisecond

// foreignKeys asks for the proof of a range.
type foreignKeys struct {
	_   struct{} `cbor:",toarray"`
	Key []byte
	End []byte
}

// proveRange returns a verified proof of what keys hold that the scope governs.
func (f *remoteScope) proveRange(ctx context.Context, key, end []byte) (p scope.RangePart, head scope.Head, err error) {
	ask := canon.Encode(foreignKeys{Key: key, End: end})
	a, err := f.ask(ctx, referral.Question{Kind: referral.AskProveRange, Newest: true, Body: ask}, func(body []byte) error {
		got, err := scope.DecodeRangePart(body)
		if err != nil {
			return err
		}
		if got.Ancestry.Genesis.Hash() != f.id {
			return fmt.Errorf("%w: of another scope", scope.ErrProof)
		}
		_, err = got.Verify(f.genesis.Network(), key, end)
		return err
	})
	if err != nil {
		return p, head, err
	}
	if p, err = scope.DecodeRangePart(a.Body); err != nil {
		return p, head, err
	}
	h := &p.Ancestry.Head.Header
	return p, f.knows.Head(&referral.Answer{Epoch: h.Epoch, Height: h.Height - 1, Time: h.Time}), nil
}

// proveRangeForeign answers a peer that does not hold the scope. It proves nothing of scopes below: the peer asks their
// anchors.
func (n *Replica) proveRangeForeign(ctx context.Context, p machine.Peer, q *inquiry, a *referral.Answer) ([]byte, error) {
	size, err := n.weighRange(ctx, p, q)
	if err == nil {
		err = n.charge(ctx, p, 0, size)
	}
	if err != nil {
		return nil, err
	}
	a.Paid = size
	part, head, err := n.proveRange(ctx, q.keys.Key, q.keys.End)
	if err != nil {
		return nil, err
	}
	if err := n.hidesNames(p, leafNames(&part.Leaves)); err != nil {
		return nil, err
	}
	a.Said(&head)
	return part.Encode(), nil
}

// weighRange returns how many bytes the keys of a question hold, and charges the peer for the look.
func (n *Replica) weighRange(ctx context.Context, p machine.Peer, q *inquiry) (size int, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.owns(q.about); err != nil && !errors.Is(err, scope.ErrElsewhere) { // scopes below may have some of them
		return 0, err
	}
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: q.keys.Key, End: q.keys.End, Range: &scope.Range{}}}}
	return n.weighForeign(ctx, p, v, &t, 0)
}

// leafNames are the keys that a proof shows, with those beside the range.
func leafNames(p *keytree.Proof) referral.Ranges {
	return func(visit func(key, end []byte) bool) bool {
		for i := range p.Leaves {
			if l := &p.Leaves[i]; l.Kind == scope.HoldsVersion && !visit(l.Key, nil) {
				return false
			}
		}
		return true
	}
}
