package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// In returns the replica in a scope, named by its prefix or by the beginning of its identity in hex. The last slash of
// a prefix may be left out if that names no other scope.
func (n *Node) In(name string) (*Replica, error) {
	p, err := n.in(name)
	if errors.Is(err, ErrNoScope) && len(name) > 0 && !strings.HasSuffix(name, "/") {
		if p, e := n.in(name + "/"); !errors.Is(e, ErrNoScope) {
			return p, e
		}
	}
	return p, err
}

func (n *Node) in(name string) (*Replica, error) {
	var found *Replica
	for _, p := range n.Replicas() {
		switch {
		case string(p.prefix) == name:
			return p, nil
		case len(name) < leastPrefix || !bytes.HasPrefix([]byte(p.id.String()), []byte(name)):
		case found != nil:
			return nil, fmt.Errorf("%w: the identities of several begin with %s", ErrNoScope, name)
		default:
			found = p
		}
	}
	if found == nil && name == "/" { // which may be delegated, so it never means the root's
		return nil, fmt.Errorf("%w: %q; the root scope is named by how its ID begins, %s", ErrNoScope, name, n.root.id.Short())
	}
	if found == nil {
		if f := n.remotes.named(name); f != nil {
			return nil, f.notHeld()
		}
		return nil, fmt.Errorf("%w: %q; aweigh scope ls shows those that are", ErrNoScope, name)
	}
	return found, nil
}

// ScopeInfo is a scope as this node sees it.
type ScopeInfo struct {
	Genesis  scope.Genesis
	Head     scope.Head
	Epoch    *scope.Epoch
	Anchor   bool // this node holds an anchor there
	Failures int  // see Reach
	Behind   bool
	Held     bool              // this node has a replica there; of others, it knows what referrals and answers say
	Lost     bool              // the anchor lost its record of ballots, and signs nothing in this epoch (P9)
	Order    *scope.Revocation // of the scope above, that is yet to be carried out; nil if there is none
	// Mutations is how many became final here since the start, failed ones included.
	Mutations uint64
	// Rate is how many became final here a second, over the last seconds.
	Rate float64
}

// Scopes returns the scopes that this node holds, the root first and a child after its parent, and then those that it
// knows of. Scopes that came home are not among them.
func (n *Node) Scopes() (all []ScopeInfo) {
	for _, p := range n.Replicas() {
		s := p.Status()
		all = append(all, ScopeInfo{
			Genesis: *p.genesis, Head: s.Head, Epoch: p.epochs.epoch(), Anchor: !s.Self.IsZero(),
			Failures: p.reach(s).Failures, Behind: p.CatchingUp(), Held: true, Lost: s.Lost, Order: p.order(s.Head),
			Mutations: p.measured.inScope.Load(), Rate: n.sharing.Rate(p.id),
		})
	}
	return append(all, n.remotes.infos()...)
}

// network returns the identity of the network that the scope is part of.
func (n *Replica) network() aweigh.NetworkID { return n.genesis.Network() }

// Root is the node's part in the root scope.
func (n *Node) Root() *Replica { return n.root }

// Scope returns the identity of the replica's scope.
func (n *Replica) Scope() aweigh.ScopeID { return n.id }

// name returns the name of the scope for people.
func (n *Replica) name() string {
	if len(n.prefix) == 0 {
		return "/"
	}
	return fmt.Sprintf("%q", n.prefix)
}

// Prefix returns the prefix of all keys of the replica's scope.
func (n *Replica) Prefix() []byte { return n.prefix }

// topic returns the topic on which final blocks are announced.
func (n *Replica) topic() p2p.Topic { return p2p.Topic("final/" + n.id.String()) }
