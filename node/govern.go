package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

var (
	// ErrNoAnchor refuses what takes an anchor's key.
	ErrNoAnchor = errors.New("node: this node holds no anchor key; ask at a node that is an anchor, or apply from this one with \"aweigh anchor apply\"")
	// ErrUnseated refuses what takes a seat in the roster.
	ErrUnseated = errors.New("node: this node's anchor key is not in the roster of that scope, so it can approve nothing there; ask at a node of one of its anchors (--api), which \"aweigh anchor ls\" shows, with --scope for one below the root")
	// ErrSeated refuses an application of one that is an anchor already.
	ErrSeated = errors.New("node: this node is an anchor already")
)

// Pending is a decision on the agenda, and what it still needs.
type Pending struct {
	scope.Proposed
	Sponsored bool          // the sponsor, if there is one, has approved
	Ending    *scope.Ending // of a decision whose motion is closed and that waits for no epoch
}

// Fate returns the state of the decision in one word: open, carried, effective, void, rejected, expired or superseded.
func (p *Pending) Fate() string {
	switch {
	case p.Ending == nil && p.Carried > 0:
		return scope.Carried.String()
	case p.Ending == nil:
		return "open"
	case p.Ending.Fate == scope.Carried:
		return "effective"
	}
	return p.Ending.Fate.String()
}

// pending returns the agenda of a state.
func pending(s *scope.State) ([]Pending, error) {
	open, err := s.Agenda()
	if err != nil {
		return nil, err
	}
	all := make([]Pending, len(open))
	for i, p := range open {
		all[i] = pendingOf(p, nil)
	}
	return all, nil
}

func pendingOf(p scope.Proposed, end *scope.Ending) Pending {
	x := Pending{Proposed: p, Sponsored: true, Ending: end}
	for _, id := range p.Tally.Waiting {
		if id == p.Decision.Sponsor {
			x.Sponsored = false
		}
	}
	return x
}

// Decision returns the state of a decision, as far as this node knows; nil if it is not on record.
func (n *Replica) Decision(decision aweigh.Hash) (_ *Pending, _ scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return nil, scope.Head{}, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p, end, err := v.State.Decision(decision)
	if err != nil || p == nil {
		return nil, v.Head(), err
	}
	x := pendingOf(*p, end)
	return &x, v.Head(), nil
}

// Govern proposes or approves a decision with this node's anchor key and waits until that is final. The receipt says
// whether it counted; Decision returns what the decision still needs. Errors wrap ErrNoAnchor, ErrUnseated or
// scope.ErrInvalid if nothing was proposed, and are otherwise those of Txn.
func (n *Replica) Govern(ctx context.Context, d scope.Decision, once Once) (machine.Receipt, error) {
	key := n.anchor.Load()
	if key == nil {
		return machine.Receipt{}, ErrNoAnchor
	}
	if _, seated := n.epochs.epoch().Roster.Seat(key.Public().ID()); !seated {
		return machine.Receipt{}, ErrUnseated
	}
	return n.decide(ctx, *key, d, once)
}

// decide submits a decision signed with an anchor's key.
func (n *Replica) decide(ctx context.Context, key votes.PrivateKey, d scope.Decision, once Once) (machine.Receipt, error) {
	once = n.filled(once)
	b, err := scope.Sign(key, n.epochs.checker().Limits, scope.Mutation{
		Scope: n.id, Class: scope.Govern, Content: canon.Encode(d),
		Justification: once.Justification, Caller: once.Caller, Nonce: once.Nonce, ValidUntil: once.ValidUntil,
	})
	if err != nil {
		return machine.Receipt{}, err
	}
	receipts, err := n.submit(ctx, machine.Submit{Bundle: b})
	if err != nil {
		return machine.Receipt{}, err
	}
	return receipts[0], nil
}

// Application returns the decision that Apply signs and asks for, without the new anchor's consent, which is a
// signature. A node without an anchor key makes one and stores it; the key signs ballots from the epoch on in which it
// has a seat.
func (n *Replica) Application(ctx context.Context, sponsor aweigh.AnchorID, name string) (scope.Decision, error) {
	key, name, err := n.applicant(ctx, sponsor, name)
	if err != nil {
		return scope.Decision{}, err
	}
	return scope.Application(key.Public(), name, string(n.of.Peer()), sponsor), nil
}

// applicant returns the key and the name with which this node can apply.
func (n *Replica) applicant(ctx context.Context, sponsor aweigh.AnchorID, name string) (*votes.PrivateKey, string, error) {
	if name == "" {
		name = n.cfg.Name
	}
	roster := n.epochs.epoch().Roster
	key := n.anchor.Load()
	if key != nil {
		if _, seated := roster.Seat(key.Public().ID()); seated {
			return nil, "", ErrSeated
		}
	}
	if _, seated := roster.Seat(sponsor); !seated {
		return nil, "", fmt.Errorf("%w: the sponsor %s is not in the roster", scope.ErrInvalid, sponsor.Short())
	}
	for _, a := range roster.Anchors {
		if a.Name == name {
			return nil, "", fmt.Errorf("%w: an anchor is called %s already; choose another --name", scope.ErrInvalid, name)
		}
	}
	if key == nil {
		made, err := n.cfg.MakeAnchor()
		if err != nil {
			return nil, "", err
		}
		key = &made
	}
	n.anchor.Store(key)
	select {
	case n.runner.events <- machine.Keyed{Key: *key}:
		return key, name, nil
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case <-n.runner.replies.done:
		return nil, "", n.runner.replies.stopped
	}
}

// Apply asks the anchors to admit this node under a name, on a sponsor's surety, and waits until the application is
// final. An application that is open already is not proposed again. Apply returns the decision that anchors must
// approve.
func (n *Replica) Apply(ctx context.Context, sponsor aweigh.AnchorID, name string, once Once) (scope.Decision, machine.Receipt, error) {
	key, name, err := n.applicant(ctx, sponsor, name)
	if err != nil {
		return scope.Decision{}, machine.Receipt{}, err
	}
	d := scope.Admission(n.id, *key, name, string(n.of.Peer()), sponsor)
	if p, head, err := n.Decision(d.ID()); err != nil || p != nil && p.Ending == nil {
		return d, machine.Receipt{Outcome: scope.Outcome{Code: scope.Applied, Revision: head.Revision}, Height: head.Height, Epoch: head.Epoch, Scope: head.Scope}, err
	}
	r, err := n.decide(ctx, *key, d, once)
	return d, r, err
}

// Absence returns why an anchor has no seat: barred, retired or evicted; empty if it never had one.
func (n *Replica) Absence(a aweigh.AnchorID) (why string, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	ledger, err := v.Ledger()
	if err != nil {
		return "", err
	}
	st, known := ledger.Standing(a)
	if !known {
		return "", nil
	}
	return machine.History{Reader: v.snapshot, Scope: n.id}.Word(st, false, 0)
}

// Unseated returns the anchor whose key this node holds if it has no seat in the roster, and zero otherwise.
func (n *Replica) Unseated() aweigh.AnchorID {
	key := n.anchor.Load()
	if key == nil || n.genesis.Descent != nil { // in a scope below the root's, most nodes hold no anchor and are to hold none
		return aweigh.AnchorID{}
	}
	id := key.Public().ID()
	if _, seated := n.epochs.epoch().Roster.Seat(id); seated {
		return aweigh.AnchorID{}
	}
	return id
}
