package node

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// childGenesis is what a delegation founded.
func (n *Part) childGenesis(d scope.Delegation) (scope.Genesis, error) {
	s, err := n.views.own()
	if err != nil {
		return scope.Genesis{}, err
	}
	_, g, ok, err := s.Delegated(d.Prefix)
	if err == nil && !ok {
		err = fmt.Errorf("%w: nothing of the delegation of %q", scope.ErrCorrupt, d.Prefix)
	}
	return g, errors.Join(err, n.views.release(s))
}

// hearOrder tells the machine what the scope above has ordered, nil if nothing. It never waits, and is
// called by one at a time (Node.growing).
func (n *Part) hearOrder(r *scope.Revocation) {
	if r == nil || r.Equal(n.ordered.Load()) {
		return
	}
	n.ordered.Store(r)
	select {
	case <-n.runner.orders: // which it replaces
	default:
	}
	n.runner.orders <- r // there is room: nobody else sends
	if r.Entry >= n.runner.stand.Load().state.Head().Obeyed {
		n.log.Warn("the scope above has ordered that others shall govern this one", "from", r.Time.Add(n.genesis.Notice()).Time(), "anchors", namesOf(r.Child.Anchors))
	}
}

// namesOf are the names of anchors, for people.
func namesOf(anchors []scope.Anchor) (names []string) {
	for i := range anchors {
		names = append(names, anchors[i].Name)
	}
	return names
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
