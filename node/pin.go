package node

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// ErrOtherHistory means that what a node holds, or was given, belongs to another history than the roster that its
// operator trusts. Old keys of anchors can sign such a history.
var ErrOtherHistory = errors.New("node: another history than that of the trusted roster; nothing of it is served. If the roster is right, " +
	"remove this node's directory, and join again by nodes that you trust")

// Pin is the roster of the root scope that a node's operator trusts, and whether the node has reached it.
type Pin struct {
	Trusted scope.Trusted  // zero: none is trusted, and the genesis is enough
	Reached bool           // the node has reached it, or there is none; until then the node serves nothing
	Since   aweigh.Instant // when the roster's epoch began, once it is reached
}

// None reports whether the operator trusts no roster.
func (p Pin) None() bool { return p.Trusted.Roster.IsZero() }

// pinned keeps a node from serving anything until its root scope has reached a trusted roster.
type pinned struct {
	want    scope.Trusted
	reached atomic.Pointer[scope.Epoch] // the epoch of the roster
}

func (p *pinned) set() bool { return !p.want.Roster.IsZero() }

// awaitsPin is ErrInstalling for as long as a node has not reached the trusted roster.
type awaitsPin struct{ scope.Trusted }

func (e awaitsPin) Error() string {
	return fmt.Sprintf("node: this node serves nothing until it has come to the roster of epoch %d that is trusted (--trusted), and no peer has shown it the way yet", e.Epoch)
}

func (awaitsPin) Is(target error) bool { return target == ErrInstalling }

// holds returns an error while nothing may be served.
func (p *pinned) holds() error {
	if p.set() && p.reached.Load() == nil {
		return awaitsPin{p.want}
	}
	return nil
}

// meet examines an epoch that the root scope has reached. The error wraps ErrOtherHistory if the way to it is by
// another roster than the trusted one.
func (p *pinned) meet(s store.Store, g scope.Genesis, e *scope.Epoch) error {
	if p.holds() == nil || e.Number < p.want.Epoch {
		return nil
	}
	if e.Number > p.want.Epoch { // by a snapshot, or in an earlier run
		first, err := g.Epoch()
		if err == nil {
			e, err = referral.Follow(s, g.Hash(), first, p.want.Epoch, nil)
		}
		if err != nil {
			return err
		}
		if e.Number != p.want.Epoch {
			return fmt.Errorf("%w: the store does not show which roster led past epoch %d", ErrOtherHistory, p.want.Epoch)
		}
	}
	if err := p.want.Is(e); err != nil {
		return fmt.Errorf("%w: %w", ErrOtherHistory, err)
	}
	p.reached.Store(e)
	return nil
}

// trusts returns an error if a replica's epoch belongs to another history than the operator trusts. Scopes below the
// root descend from it.
func (n *Replica) trusts(e *scope.Epoch) error {
	if n.genesis.Descent != nil {
		return nil
	}
	return n.of.pin.meet(n.cfg.Store, *n.genesis, e)
}

// way is referral.Follow by way of the trusted roster, if that is between the two epochs. Handovers that bypass it are
// forgotten: another peer may have the right ones.
func (p *pinned) followPinned(s store.Store, id aweigh.ScopeID, e *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	if p.holds() == nil || p.want.Epoch <= e.Number || p.want.Epoch > to {
		return referral.Follow(s, id, e, to, ask)
	}
	at, err := referral.Follow(s, id, e, p.want.Epoch, ask)
	if err != nil {
		return nil, err
	}
	if bad := p.want.Is(at); bad != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", machine.ErrSnapshot, bad), forget(s, id, e, at))
	}
	return referral.Follow(s, id, at, to, ask)
}

// forget drops the handovers that led from one epoch to another.
func forget(s store.Store, id aweigh.ScopeID, from, to *scope.Epoch) error {
	var ops []kv.Op
	for at := from.Start; at < to.Start; {
		hands, err := machine.History{Reader: s, Scope: id}.Handovers(at, machine.HandoversAtOnce)
		if err != nil || len(hands) == 0 {
			return err
		}
		for _, h := range hands {
			at = h.Final.Header.Height
			ops = append(ops, kv.Del(machine.KeyHandover(id, at)))
		}
	}
	return s.Commit(ops, false)
}

// Pin returns the roster that is trusted besides the genesis.
func (n *Node) Pin() Pin {
	pin := &n.pin
	p := Pin{Trusted: pin.want, Reached: pin.holds() == nil}
	if e := pin.reached.Load(); e != nil {
		p.Since = e.Time
	}
	return p
}

// recent returns the roster of the node's present epoch, for invites. It returns an empty text for the first epoch,
// which the genesis names, and while the node serves nothing.
func (n *Node) recent() string {
	e := n.root.epochs.epoch()
	if n.pin.holds() != nil || e.Number == 0 {
		return ""
	}
	return scope.TrustedOf(e).String()
}
