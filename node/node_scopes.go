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

// In is the part in a scope by its prefix, or by how its identity begins, in hex. Where there is none, the last slash of a prefix
// may be left out.
func (n *Node) In(name string) (*Part, error) {
	p, err := n.in(name)
	if errors.Is(err, ErrNoScope) && len(name) > 0 && !strings.HasSuffix(name, "/") {
		if p, e := n.in(name + "/"); !errors.Is(e, ErrNoScope) {
			return p, e
		}
	}
	return p, err
}

func (n *Node) in(name string) (*Part, error) {
	var found *Part
	for _, p := range n.Parts() {
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
		return nil, fmt.Errorf("%w: %q; the root scope is meant where none is named", ErrNoScope, name)
	}
	if found == nil {
		if f := n.foreigners.named(name); f != nil {
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
	Held     bool              // this node has a part there; of others, it knows what referrals and answers told
	Lost     bool              // the anchor lost its record of ballots, and signs nothing in this epoch (P9)
	Order    *scope.Revocation // of the scope above, that is to be obeyed yet; nil if there is none
	// Mutations is how many became final here since the start, failed ones included.
	Mutations uint64
	// Rate is how many became final here a second, over the last seconds.
	Rate float64
}

// Scopes are those that this node holds, the root's first, and a child after its
// parent; and then those that it knows of.
func (n *Node) Scopes() (all []ScopeInfo) {
	for _, p := range n.Parts() {
		s := p.Status()
		all = append(all, ScopeInfo{
			Genesis: *p.genesis, Head: s.Head, Epoch: p.roll.epoch(), Anchor: !s.Self.IsZero(),
			Failures: p.reach(s).Failures, Behind: p.CatchingUp(), Held: true, Lost: s.Lost, Order: p.order(s.Head),
			Mutations: p.measured.inScope.Load(), Rate: n.sharing.rate(p.id),
		})
	}
	return append(all, n.foreigners.infos()...)
}

// network is the identity of the network that the scope is part of.
func (n *Part) network() aweigh.NetworkID { return n.genesis.Network() }

// Root is the node's part in the root scope.
func (n *Node) Root() *Part { return n.Part }

// Scope is the identity of the part's scope.
func (n *Part) Scope() aweigh.ScopeID { return n.id }

// name is what people call the scope.
func (n *Part) name() string {
	if len(n.prefix) == 0 {
		return "/"
	}
	return fmt.Sprintf("%q", n.prefix)
}

// Prefix is that of all keys of the part's scope.
func (n *Part) Prefix() []byte { return n.prefix }

// topic is where final blocks are announced.
func (n *Part) topic() p2p.Topic { return p2p.Topic("final/" + n.id.String()) }
