package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

var (
	// ErrNoAnchor refuses what takes an anchor's key.
	ErrNoAnchor = errors.New("node: this node holds no anchor key; ask at a node that is an anchor, or let this one apply with \"aweigh anchor apply\"")
	// ErrUnseated refuses what takes a seat in the roster.
	ErrUnseated = errors.New("node: this node's anchor key is not in the roster of that scope, so it can approve nothing there; ask at a node of one of its anchors (--api), whom \"aweigh anchor ls\" shows, with --scope for one below the root")
	// ErrSeated refuses an application of one that is an anchor already.
	ErrSeated = errors.New("node: this node is an anchor already")
)

// Pending is a decision on the agenda and what it still takes.
type Pending struct {
	scope.Proposed
	Sponsored bool          // the sponsor, if there is one, has approved
	Ending    *scope.Ending // of one whose motion is closed, and that waits for no epoch
}

// Fate is what became of it, in one word: open, carried, effective, void, rejected, expired or superseded.
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

// pending is the agenda of a state.
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

// Decision is how a decision stands, as far as this node knows; nil if nothing is on record of it.
func (n *Part) Decision(decision aweigh.Hash) (_ *Pending, _ scope.Head, err error) {
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

// Govern proposes or approves a decision with this node's anchor key and waits
// until that is final. The receipt says whether it counted; Decision says what
// the decision still takes. Errors wrap ErrNoAnchor, ErrUnseated or
// scope.ErrInvalid where nothing was proposed, and are otherwise those of Txn.
func (n *Part) Govern(ctx context.Context, d scope.Decision, once Once) (Receipt, error) {
	key := n.anchor.Load()
	if key == nil {
		return Receipt{}, ErrNoAnchor
	}
	if _, seated := n.roll.epoch().Roster.Seat(key.Public().ID()); !seated {
		return Receipt{}, ErrUnseated
	}
	return n.decide(ctx, *key, d, once)
}

// decide submits a decision signed with an anchor's key.
func (n *Part) decide(ctx context.Context, key votes.PrivateKey, d scope.Decision, once Once) (Receipt, error) {
	once = n.filled(once)
	b, err := scope.Sign(key, n.roll.checker().Limits, scope.Mutation{
		Scope: n.id, Class: scope.Govern, Content: canon.Encode(d),
		Justification: once.Justification, Nonce: once.Nonce, ValidUntil: once.ValidUntil,
	})
	if err != nil {
		return Receipt{}, err
	}
	receipts, err := n.submit(ctx, Submit{Bundle: b})
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// Apply asks the anchors to admit this node under a name, on a sponsor's surety,
// and waits until the application is final. A node without an anchor key makes
// one and keeps it: it acts from the epoch on in which it has a seat. What is
// open already is not proposed again. It gives the decision that anchors must
// approve.
func (n *Part) Apply(ctx context.Context, sponsor aweigh.AnchorID, name string, once Once) (scope.Decision, Receipt, error) {
	if name == "" {
		name = n.Name()
	}
	roster := n.roll.epoch().Roster
	key := n.anchor.Load()
	if key != nil {
		if _, seated := roster.Seat(key.Public().ID()); seated {
			return scope.Decision{}, Receipt{}, ErrSeated
		}
	}
	if _, seated := roster.Seat(sponsor); !seated {
		return scope.Decision{}, Receipt{}, fmt.Errorf("%w: the sponsor %s is not in the roster", scope.ErrInvalid, sponsor.Short())
	}
	for _, a := range roster.Anchors {
		if a.Name == name {
			return scope.Decision{}, Receipt{}, fmt.Errorf("%w: an anchor is called %s already; choose another --name", scope.ErrInvalid, name)
		}
	}
	if key == nil {
		made, err := n.cfg.MakeAnchor()
		if err != nil {
			return scope.Decision{}, Receipt{}, err
		}
		key = &made
	}
	n.anchor.Store(key)
	select {
	case n.runner.events <- Keyed{Key: *key}:
	case <-ctx.Done():
		return scope.Decision{}, Receipt{}, ctx.Err()
	case <-n.runner.replies.done:
		return scope.Decision{}, Receipt{}, n.runner.replies.stopped
	}
	d := scope.Admission(n.id, *key, name, string(n.Peer()), sponsor)
	if p, head, err := n.Decision(d.ID()); err != nil || p != nil && p.Ending == nil {
		return d, Receipt{Outcome: scope.Outcome{Code: scope.Applied, Revision: head.Revision}, Height: head.Height, Epoch: head.Epoch, Scope: head.Scope}, err
	}
	r, err := n.decide(ctx, *key, d, once)
	return d, r, err
}

// Absence is why an anchor without a seat has none: barred, retired or evicted;
// empty if it never had one.
func (n *Part) Absence(a aweigh.AnchorID) (why string, err error) {
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
	return History{Reader: v.snapshot, Scope: n.id}.word(st, false, 0)
}

// Unseated is the anchor that this node holds the key of without a seat in the
// roster, zero if there is none.
func (n *Part) Unseated() aweigh.AnchorID {
	key := n.anchor.Load()
	if key == nil || n.genesis.Descent != nil { // in a scope below the root's, most nodes hold no anchor and are to hold none
		return aweigh.AnchorID{}
	}
	id := key.Public().ID()
	if _, seated := n.roll.epoch().Roster.Seat(id); seated {
		return aweigh.AnchorID{}
	}
	return id
}
