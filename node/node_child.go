package node

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// childGenesis is what a delegation founded.
func (n *Part) childGenesis(d scope.Delegation) (scope.Genesis, error) {
	s, err := n.views.open()
	if err != nil {
		return scope.Genesis{}, err
	}
	_, g, ok, err := s.Delegated(d.Prefix)
	if err == nil && !ok {
		err = fmt.Errorf("%w: nothing of the delegation of %q", scope.ErrCorrupt, d.Prefix)
	}
	return g, errors.Join(err, n.views.release(s))
}

// hearOrder tells the machine what the scope above has ordered, nil if nothing.
func (n *Part) hearOrder(r *scope.Revocation) {
	if r == nil || r.Equal(n.ordered.Load()) {
		return
	}
	select {
	case n.runner.events <- Ordered{Revocation: r}:
		n.ordered.Store(r)
		n.log.Warn("the scope above has ordered that others shall govern this one", "from", r.Time.Add(n.genesis.Notice()).Time(), "anchors", len(r.Child.Anchors))
	case <-n.runner.replies.done:
	}
}

// order is what the scope above has ordered and a state has not obeyed, nil if nothing.
func (n *Part) order(h scope.Head) *scope.Revocation {
	if r := n.ordered.Load(); r != nil && r.Entry >= h.Obeyed {
		return r
	}
	return nil
}

// share gives anchors the texts of the part's own where they are equal: there may be
// thousands of scopes, of the same few anchors.
func (n *Part) share(anchors []scope.Anchor) {
	r := &n.roll.epoch().Roster
	for i := range anchors {
		a := &anchors[i]
		seat, ok := r.Seat(a.Key.ID())
		if !ok {
			continue
		}
		same := &r.Anchors[seat]
		a.Key = same.Key
		if a.Name == same.Name {
			a.Name = same.Name
		}
		if a.Peer == same.Peer {
			a.Peer = same.Peer
		}
	}
}
