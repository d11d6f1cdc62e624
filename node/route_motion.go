package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What is asked about motions by their identities is asked in the scope where they
// are, and what is asked about all of them, in all that this node follows.

// replicaOfMotion returns the replica in whose scope the motion is whose ID begins with prefix: one on record, or else
// a draft. If none has it, it returns the root's, which reports that. The beginning of an ID must fit one motion alone,
// on record or waiting.
func (n *Node) replicaOfMotion(ctx context.Context, prefix []byte) (found *Replica, err error) {
	several := func(p *Replica) error {
		return fmt.Errorf("%w: in the scopes %q and %q", ErrManyMotions, found.prefix, p.prefix)
	}
	for _, p := range n.Replicas() {
		_, _, err := p.Motion(prefix)
		switch {
		case errors.Is(err, machine.ErrNoMotion) || errors.Is(err, ErrInstalling):
		case err != nil:
			return p, nil // p reports why
		case found != nil:
			return nil, several(p)
		default:
			found = p
		}
	}
	if found != nil && len(prefix) == len(votes.MotionID{}) {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, draftsWithin)
	defer cancel()
	for _, p := range n.Replicas() {
		if all, err := p.drafts(ctx, prefix); err != nil || len(all) == 0 { // a scope that stopped has none
			continue
		}
		if found != nil {
			return nil, several(p)
		}
		found = p
	}
	if found == nil {
		found = n.root
	}
	return found, nil
}

// draftsWithin bounds how long the scopes of this node are asked for drafts, together.
const draftsWithin = 2 * time.Second

// Motions returns the motions on record in all scopes that this node follows, in the order of Replica.Motions. The head
// is the root scope's.
func (n *Node) Motions(closed bool) (all []Motion, head scope.Head, err error) {
	for _, p := range n.Replicas() {
		some, at, err := p.Motions(closed)
		if errors.Is(err, ErrInstalling) {
			continue
		}
		if err != nil {
			return all, at, err
		}
		if all = append(all, some...); p == n.root {
			head = at
		}
	}
	slices.SortStableFunc(all, func(a, b Motion) int {
		switch {
		case a.state() != b.state():
			return cmp.Compare(a.state(), b.state())
		case a.Ending != nil:
			return cmp.Compare(b.Ending.Time, a.Ending.Time)
		case a.Approved == 0:
			return cmp.Compare(a.Opening.Deadline, b.Opening.Deadline)
		}
		return 0
	})
	return all[:min(len(all), maxMotionsShown)], head, nil
}

// Drafts returns the motions that what waits at this node for a block would open, in the order of its scopes and of
// arrival. It leaves out scopes that do not answer.
func (n *Node) Drafts(ctx context.Context) (all []Motion, err error) {
	ctx, cancel := context.WithTimeout(ctx, draftsWithin)
	defer cancel()
	for _, p := range n.Replicas() {
		if some, err := p.Drafts(ctx); err == nil {
			all = append(all, some...)
		}
	}
	return all[:min(len(all), maxMotionsShown)], nil
}

// Motion returns the motion whose ID begins with prefix.
func (n *Node) Motion(prefix []byte) (m Motion, head scope.Head, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*draftsWithin)
	defer cancel()
	p, err := n.replicaOfMotion(ctx, prefix)
	if err != nil {
		return m, head, err
	}
	return p.motionOrDraft(ctx, prefix)
}

// AwaitMotion is Replica.AwaitMotion in the scope where the motion is.
func (n *Node) AwaitMotion(ctx context.Context, prefix []byte, tell func(Motion, scope.Head) error) error {
	p, err := n.replicaOfMotion(ctx, prefix)
	if err != nil {
		return err
	}
	return p.AwaitMotion(ctx, prefix, tell)
}

// ExportMotion returns a proof of a motion for verifiers that know only the network.
func (n *Node) ExportMotion(ctx context.Context, prefix []byte) (*scope.MotionProof, scope.Head, error) {
	p, err := n.replicaOfMotion(ctx, prefix)
	if err != nil {
		return nil, scope.Head{}, err
	}
	return p.ExportMotion(ctx, prefix)
}

// Vote signs a ballot with this node's anchor key and hands it in, where the motion is.
func (n *Node) Vote(ctx context.Context, prefix []byte, choice votes.Choice, comment string) (machine.Casting, error) {
	p, err := n.replicaOfMotion(ctx, prefix)
	if err != nil {
		return machine.Casting{}, err
	}
	return p.Vote(ctx, prefix, choice, comment)
}

// Withdraw ends a motion that this node proposed, where it is.
func (n *Node) Withdraw(ctx context.Context, prefix []byte, once Once) (machine.Receipt, error) {
	p, err := n.replicaOfMotion(ctx, prefix)
	if err != nil {
		return machine.Receipt{}, err
	}
	return p.Withdraw(ctx, prefix, once)
}

// HandIn puts ballots into this node's boxes, each into that of the scope that it names. It returns the outcomes in
// order.
func (n *Node) HandIn(ctx context.Context, ballots []votes.MotionBallot) ([]machine.Casting, error) {
	castings := make([]machine.Casting, len(ballots))
	var scopes []aweigh.ScopeID
	for i := range ballots {
		if id := ballots[i].Scope; !slices.Contains(scopes, id) {
			scopes = append(scopes, id)
		}
	}
	for _, id := range scopes {
		p := n.replica(id)
		if p == nil {
			p = n.root // which refuses them
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

// Decision returns the state of a decision in the scope where it is to be decided.
func (n *Node) Decision(decision aweigh.Hash) (found *Pending, head scope.Head, err error) {
	for _, p := range n.Replicas() {
		if found, head, err = p.Decision(decision); found != nil || err != nil && !errors.Is(err, ErrInstalling) {
			return found, head, err
		}
	}
	return nil, head, nil
}
