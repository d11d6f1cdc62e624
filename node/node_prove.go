package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Prove gives a proof of the newest change of a key, which verifies offline
// from the network's identity alone. Where no later block covers the change
// yet, it proposes an empty transaction, so that one will.
func (n *Part) Prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	err = n.covered(ctx, func(v *View) error {
		head = v.Head()
		p, err = n.proveKey(ctx, v, key)
		return err
	})
	return p, head, err
}

// ProveMotion gives a proof that a motion is real, open or not, which verifies
// offline from the network's identity alone; see Prove. The error wraps ErrNoMotion
// for a motion that is not known.
func (n *Part) ProveMotion(ctx context.Context, id votes.MotionID) (p *scope.MotionProof, head scope.Head, err error) {
	err = n.coveredFrom(ctx, false, func(v *View) error { // a motion that is known here needs no quorum
		head = v.Head()
		p, err = n.proveMotion(ctx, v, id)
		return err
	})
	return p, head, err
}

// covered proves something of the newest state, once a later block covers it.
func (n *Part) covered(ctx context.Context, prove func(*View) error) error {
	return n.coveredFrom(ctx, true, prove)
}

// coveredFrom is covered for those who begin with what is here, or with the newest.
func (n *Part) coveredFrom(ctx context.Context, linearizable bool, prove func(*View) error) error {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	for {
		v, err := n.Read(ctx, linearizable)
		if err != nil {
			return err
		}
		err = errors.Join(prove(v), v.Close())
		if !errors.Is(err, errUncovered) {
			return err
		}
		if _, err := n.Txn(ctx, scope.Txn{}, Once{Justification: "to prove what came before"}); err != nil {
			return err
		}
		linearizable = false // that transaction is later than every earlier write
	}
}

func (n *Part) proveKey(ctx context.Context, v *View, key []byte) (*scope.KeyProof, error) {
	change, err := v.change(key)
	if err != nil {
		return nil, err
	}
	index := change.Entry
	entry, ok, err := v.State.Lineage().Entry(index)
	if err != nil || !ok {
		return nil, errors.Join(err, fmt.Errorf("node: entry %d of the lineage is missing", index))
	}
	if entry.Height == 0 { // it was taken over
		a, err := n.ancestry(ctx, v, 0)
		if err != nil {
			return nil, err
		}
		return scope.NewKeyProof(a, v.State, key, nil, scope.Finality{}, nil)
	}
	// If a motion carried the change, its mutation stands in an earlier block.
	at := entry.Height
	m, err := n.minutes(v, entry.Mutation)
	if err != nil {
		return nil, err
	}
	if m != nil {
		at = m.Motion.Height
	}
	a, err := n.ancestry(ctx, v, entry.Height)
	if err != nil {
		return nil, err
	}
	origin, final, err := n.origin(at)
	if err != nil {
		return nil, err
	}
	return scope.NewKeyProof(a, v.State, key, origin, final, m)
}

// coverWithin bounds how long the export of a motion waits for a later block.
const coverWithin = 2 * time.Second

// bareMotion proves a motion as far as its own block does, which is final: for voters who are to be heard while there is no quorum.
func (n *Part) bareMotion(ctx context.Context, id votes.MotionID) (p *scope.MotionProof, head scope.Head, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, head, err
	}
	p, err = n.motionAbove(ctx, v, id, 1)
	return p, v.Head(), errors.Join(err, v.Close())
}

func (n *Part) proveMotion(ctx context.Context, v *View, id votes.MotionID) (*scope.MotionProof, error) {
	return n.motionAbove(ctx, v, id, 0)
}

// motionAbove proves a motion by a block that stands above the one that is so much below its own.
func (n *Part) motionAbove(ctx context.Context, v *View, id votes.MotionID, below aweigh.Height) (*scope.MotionProof, error) {
	m, err := n.minutes(v, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoMotion, id.Short())
	}
	a, err := n.ancestry(ctx, v, m.Motion.Height-below)
	if err != nil {
		return nil, err
	}
	origin, final, err := n.origin(m.Motion.Height)
	if err != nil {
		return nil, err
	}
	return scope.NewMotionProof(a, v.State, &m.Motion, origin, final)
}

// minutes are those of a motion that is on record, or was; nil for what is none.
func (n *Part) minutes(v *View, id votes.MotionID) (*scope.Minutes, error) {
	m, err := v.Minutes(id)
	if m != nil || err != nil {
		return m, err
	}
	return n.History().Minutes(id)
}

// ancestry leads to a final block above a height.
func (n *Part) ancestry(ctx context.Context, v *View, above aweigh.Height) (a scope.Ancestry, err error) {
	a.Genesis = *n.genesis
	if a.Head, err = n.History().cover(v.Head().Height, above); err != nil {
		return a, err
	}
	if d := a.Genesis.Descent; d != nil {
		if a.Above, err = n.of.way(ctx, d); err != nil {
			return a, err
		}
	}
	epoch := int(a.Head.Header.Epoch)
	if a.Handovers, err = n.History().Handovers(0, epoch); err == nil && len(a.Handovers) < epoch {
		err = fmt.Errorf("node: this node does not hold the handovers of all %d epochs; ask another node", epoch)
	}
	return a, err
}

// way shows how a scope descends from the root scope.
func (n *Node) way(ctx context.Context, d *scope.Descent) (steps []scope.Step, err error) {
	p := n.part(d.Parent)
	if p == nil {
		return nil, fmt.Errorf("%w: %s, the parent of %q", ErrNoScope, d.Parent.Short(), d.Prefix)
	}
	err = p.coveredFrom(ctx, false, func(v *View) error { // what it needs is final, and may be here
		a, err := p.ancestry(ctx, v, d.Height)
		if err != nil {
			return err
		}
		steps, err = scope.NewStep(a, v.State, d)
		return err
	})
	return steps, err
}

// origin is the final block at a height.
func (n *Part) origin(at aweigh.Height) (*scope.Block, scope.Finality, error) {
	b, err := n.History().Block(at)
	if err != nil {
		return nil, scope.Finality{}, err
	}
	final, err := n.History().Finality(at)
	return b, final, err
}
