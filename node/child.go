package node

import (
	"errors"

	"github.com/aweigh/aweigh/scope"
)

// childGenesis returns the genesis that a delegation founded; ok is false while the store does not have it. A
// delegation is known before the block that makes it is written, and before a snapshot that contains it is in place;
// after that, grow runs again.
func (n *Replica) childGenesis(d scope.Delegation) (g scope.Genesis, ok bool, err error) {
	s, err := n.views.own()
	if errors.Is(err, ErrInstalling) {
		return g, false, nil
	}
	if err != nil {
		return g, false, err
	}
	_, g, ok, err = s.Delegated(d.Prefix)
	return g, ok, errors.Join(err, n.views.release(s))
}

// hearOrder passes the order of the scope above to the machine, nil if there is none. It never waits. Only one
// goroutine may call it at a time (Node.growing).
func (n *Replica) hearOrder(r *scope.Revocation) {
	if r == nil || r.Equal(n.ordered.Load()) {
		return
	}
	n.ordered.Store(r)
	select {
	case <-n.runner.orders: // an order that this one replaces
	default:
	}
	n.runner.orders <- r // there is room: nothing else sends
	switch {
	case r.Entry < n.runner.stand.Load().State.Head().Obeyed:
	case r.Folds():
		n.log.Info("the scope above has ordered that this one goes back to it", "from", r.Time.Add(n.genesis.Notice()).Time())
	default:
		n.log.Warn("the scope above has ordered that others shall govern this one", "from", r.Time.Add(n.genesis.Notice()).Time(), "anchors", namesOf(r.Child.Anchors))
	}
}

// namesOf returns the names of anchors, for people.
func namesOf(anchors []scope.Anchor) (names []string) {
	for i := range anchors {
		names = append(names, anchors[i].Name)
	}
	return names
}

// order returns the order of the scope above that a state has not carried out, nil if there is none.
func (n *Replica) order(h scope.Head) *scope.Revocation {
	if r := n.ordered.Load(); r != nil && r.Entry >= h.Obeyed {
		return r
	}
	return nil
}

// share replaces texts of anchors with the replica's own copies where they are equal: there may be thousands of scopes
// with the same few anchors.
func (n *Replica) share(anchors []scope.Anchor) {
	r := &n.epochs.epoch().Roster
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
