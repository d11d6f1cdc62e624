package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Intended is what a forecast is about.
type Intended struct {
	Class   scope.Class
	Content any         // of the mutation
	Author  aweigh.Hash // that would sign it; zero: this node, or its anchor for a decision
}

// Foresee returns what would become of a change in the scope that decides about some keys. It changes nothing.
func (n *Node) Foresee(ctx context.Context, keys referral.Ranges, c Intended, linearizable bool) (f scope.Forecast, err error) {
	err = n.withHeld(ctx, keys, func(p *Replica) error {
		f, err = p.Foresee(ctx, keys, c, linearizable)
		return err
	})
	return f, err
}

// ForeseeDecision returns what would become of a decision that this node's anchor proposes.
func (n *Replica) ForeseeDecision(ctx context.Context, d scope.Decision, linearizable bool) (scope.Forecast, error) {
	return n.Foresee(ctx, nil, Intended{Class: scope.Govern, Content: d}, linearizable)
}

// Foresee returns what would become of a change in the replica's scope.
func (n *Replica) Foresee(ctx context.Context, keys referral.Ranges, c Intended, linearizable bool) (f scope.Forecast, err error) {
	m := n.mutation(c.Class, canon.Encode(c.Content), n.filled(Once{}))
	switch key := n.anchor.Load(); {
	case !c.Author.IsZero():
		m.Author = c.Author
	case c.Class == scope.Govern && key == nil:
		return f, ErrNoAnchor
	case c.Class == scope.Govern:
		m.Author = key.Public().ID()
	}
	end, err := n.costs.Begin(ctx, false, n.prefix)
	if err != nil {
		return f, err
	}
	defer end()
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if keys != nil {
		if err := v.owns(keys); err != nil {
			return f, err
		}
	}
	return v.State.Impact(m, n.runner.now())
}
