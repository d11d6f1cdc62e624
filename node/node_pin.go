package node

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// ErrOtherHistory means that what a node holds, or was given, is another history than that of the roster which its
// operator trusts, as old keys of anchors can sign one.
var ErrOtherHistory = errors.New("node: another history than that of the trusted roster; nothing of it is served. If the roster is right, " +
	"remove this node's directory, and join again by nodes that you trust")

// Pin is the roster of the root scope that a node's operator trusts, and whether the node has come to it.
type Pin struct {
	Trusted scope.Trusted  // zero: none is trusted, and the genesis is enough
	Reached bool           // or there is none; until then the node serves nothing
	Since   aweigh.Instant // when the roster's epoch began, once it is reached
}

// None means that the operator trusts no roster.
func (p Pin) None() bool { return p.Trusted.Roster.IsZero() }

// pinned holds back what a node serves until its root scope has come to a roster that is trusted.
type pinned struct {
	want    scope.Trusted
	reached atomic.Pointer[scope.Epoch] // the epoch of the roster
}

func (p *pinned) set() bool { return !p.want.Roster.IsZero() }

// awaitsPin is ErrInstalling for as long as a node has not come to the trusted roster.
type awaitsPin struct{ scope.Trusted }

func (e awaitsPin) Error() string {
	return fmt.Sprintf("node: this node serves nothing until it has come to the roster of epoch %d that is trusted (--trusted), and no peer has shown it the way yet", e.Epoch)
}

func (awaitsPin) Is(target error) bool { return target == ErrInstalling }

// holds is an error while nothing may be served.
func (p *pinned) holds() error {
	if p.set() && p.reached.Load() == nil {
		return awaitsPin{p.want}
	}
	return nil
}

// meet looks at an epoch that the root scope has come to. The error wraps ErrOtherHistory if it came by another roster.
func (p *pinned) meet(s store.Store, g scope.Genesis, e *scope.Epoch) error {
	if p.holds() == nil || e.Number < p.want.Epoch {
		return nil
	}
	if e.Number > p.want.Epoch { // by a snapshot, or in an earlier run
		first, err := g.Epoch()
		if err == nil {
			e, err = follow(s, g.Hash(), first, p.want.Epoch, nil)
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

// trusts says why a part's epoch is of another history than the operator trusts. Scopes below the root descend from it.
func (n *Part) trusts(e *scope.Epoch) error {
	if n.genesis.Descent != nil {
		return nil
	}
	return n.of.pin.meet(n.cfg.Store, *n.genesis, e)
}

// way is follow by the trusted roster, if that lies between. What leads past another is forgotten: another peer may know better.
func (p *pinned) way(s store.Store, id aweigh.ScopeID, e *scope.Epoch, to aweigh.Epoch, ask func(above aweigh.Height) ([]byte, error)) (*scope.Epoch, error) {
	if p.holds() == nil || p.want.Epoch <= e.Number || p.want.Epoch > to {
		return follow(s, id, e, to, ask)
	}
	at, err := follow(s, id, e, p.want.Epoch, ask)
	if err != nil {
		return nil, err
	}
	if bad := p.want.Is(at); bad != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrSnapshot, bad), forget(s, id, e, at))
	}
	return follow(s, id, at, to, ask)
}

// forget drops the handovers that led from one epoch to another.
func forget(s store.Store, id aweigh.ScopeID, from, to *scope.Epoch) error {
	var ops []kv.Op
	for at := from.Start; at < to.Start; {
		hands, err := History{Reader: s, Scope: id}.Handovers(at, HandoversAtOnce)
		if err != nil || len(hands) == 0 {
			return err
		}
		for _, h := range hands {
			at = h.Final.Header.Height
			ops = append(ops, kv.Del(keyHandover(id, at)))
		}
	}
	return s.Commit(ops, false)
}

// Pin is what is trusted beside the genesis.
func (n *Part) Pin() Pin {
	pin := &n.of.pin
	p := Pin{Trusted: pin.want, Reached: pin.holds() == nil}
	if e := pin.reached.Load(); e != nil {
		p.Since = e.Time
	}
	return p
}

// recent is the roster of the epoch that the node is in, for those who join; none of the first epoch, which the genesis
// names, or while the node serves nothing.
func (n *Node) recent() string {
	e := n.Part.roll.epoch()
	if n.pin.holds() != nil || e.Number == 0 {
		return ""
	}
	return scope.TrustedOf(e).String()
}
