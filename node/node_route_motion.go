package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What is asked about motions by their identities is asked in the scope where they
// are, and what is asked about all of them, in all that this node follows.

// having finds the part in whose scope a motion is, by how its ID begins; the root's if
// none has it, which says so.
func (n *Node) having(prefix []byte) (found *Part, err error) {
	for _, p := range n.Parts() {
		_, _, err := p.Motion(prefix)
		switch {
		case errors.Is(err, ErrNoMotion):
		case err != nil:
			return p, nil // let it say why
		case found != nil:
			return nil, fmt.Errorf("%w: in the scopes %q and %q", ErrManyMotions, found.prefix, p.prefix)
		default:
			found = p
		}
	}
	if found == nil {
		found = n.Part
	}
	return found, nil
}

// Motions are the motions on record in all scopes that this node follows. The head is
// the root scope's.
func (n *Node) Motions(closed bool) (all []Motion, head scope.Head, err error) {
	for _, p := range n.Parts() {
		some, at, err := p.Motions(closed)
		if err != nil {
			return all, at, err
		}
		if all = append(all, some...); p == n.Part {
			head = at
		}
	}
	return all[:min(len(all), maxMotionsShown)], head, nil
}

// Motion is the one whose ID begins with some bytes.
func (n *Node) Motion(prefix []byte) (m Motion, head scope.Head, err error) {
	p, err := n.having(prefix)
	if err != nil {
		return m, head, err
	}
	return p.Motion(prefix)
}

// AwaitMotion is that of the part in whose scope the motion is.
func (n *Node) AwaitMotion(ctx context.Context, prefix []byte, tell func(Motion, scope.Head) error) error {
	p, err := n.having(prefix)
	if err != nil {
		return err
	}
	return p.AwaitMotion(ctx, prefix, tell)
}

// ExportMotion proves a motion to those who know the network alone.
func (n *Node) ExportMotion(ctx context.Context, prefix []byte) (*scope.MotionProof, scope.Head, error) {
	p, err := n.having(prefix)
	if err != nil {
		return nil, scope.Head{}, err
	}
	return p.ExportMotion(ctx, prefix)
}

// Vote signs a ballot with this node's anchor key and hands it in, where the motion is.
func (n *Node) Vote(ctx context.Context, prefix []byte, choice votes.Choice, comment string) (Casting, error) {
	p, err := n.having(prefix)
	if err != nil {
		return Casting{}, err
	}
	return p.Vote(ctx, prefix, choice, comment)
}

// Withdraw ends a motion that this node proposed, where it is.
func (n *Node) Withdraw(ctx context.Context, prefix []byte, once Once) (Receipt, error) {
	p, err := n.having(prefix)
	if err != nil {
		return Receipt{}, err
	}
	return p.Withdraw(ctx, prefix, once)
}

// HandIn puts ballots into this node's boxes, each into that of the scope it names.
// What came of each is told in order.
func (n *Node) HandIn(ctx context.Context, ballots []votes.MotionBallot) ([]Casting, error) {
	castings := make([]Casting, len(ballots))
	var scopes []aweigh.ScopeID
	for i := range ballots {
		if id := ballots[i].Scope; !slices.Contains(scopes, id) {
			scopes = append(scopes, id)
		}
	}
	for _, id := range scopes {
		p := n.part(id)
		if p == nil {
			p = n.Part // which refuses them
		}
		var some []votes.MotionBallot
		var places []int
		for i := range ballots {
			if ballots[i].Scope == id {
				some, places = append(some, ballots[i]), append(places, i)
			}
		}
		out, err := p.HandIn(ctx, some)
		if err != nil {
			return nil, err
		}
		for i := range out {
			castings[places[i]] = out[i]
		}
	}
	return castings, nil
}

// Decision is how a decision stands in the scope where it is to be decided.
func (n *Node) Decision(decision aweigh.Hash) (found *Pending, head scope.Head, err error) {
	for _, p := range n.Parts() {
		if found, head, err = p.Decision(decision); found != nil || err != nil {
			return found, head, err
		}
	}
	return nil, head, nil
}
