package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Network is what all machines of one network share: prepared once from its
// genesis, immutable, and safe for concurrent use if its Verifier is.
type Network struct {
	genesis scope.Genesis
	stored  []byte // the genesis as every store of this network holds it
	id      aweigh.ScopeID
	roster  scope.Roster
	keyring *votes.Keyring
	checker *Checker
	anchors map[Peer]aweigh.AnchorID
	peers   map[aweigh.AnchorID]Peer
	ledger  aweigh.Hash // of the trust ledger at the start, which bars nobody
}

// NewNetwork prepares a genesis that a network can start from. Without a
// Verifier, signatures are verified directly (votes.Keyring.With).
func NewNetwork(g scope.Genesis, verify votes.Verifier) (*Network, error) {
	n := &Network{
		genesis: g, stored: g.Encode(), id: g.Hash(),
		anchors: make(map[Peer]aweigh.AnchorID, len(g.Anchors)),
		peers:   make(map[aweigh.AnchorID]Peer, len(g.Anchors)),
	}
	var err error
	if n.roster, err = g.Roster(); err != nil {
		return nil, err
	}
	if n.keyring, err = g.Keyring(); err != nil {
		return nil, err
	}
	ledger, err := g.Ledger()
	if err != nil {
		return nil, err
	}
	n.ledger = ledger.Digest()
	for _, a := range g.Anchors {
		id := a.Key.ID()
		n.anchors[Peer(a.Peer)], n.peers[id] = id, Peer(a.Peer)
	}
	n.checker = &Checker{Anchors: n.anchors, Keyring: n.keyring, Limits: g.Policy.Limits, Verify: votes.Verify}
	if verify != nil {
		n.keyring = n.keyring.With(verify)
		n.checker.Keyring, n.checker.Verify = n.keyring, verify
	}
	return n, nil
}

// ID is the network's identity.
func (n *Network) ID() aweigh.NetworkID { return n.id }

// Genesis is what the network started from.
func (n *Network) Genesis() scope.Genesis { return n.genesis }

// Checker verifies the frames of this network.
func (n *Network) Checker() *Checker { return n.checker }

// others are the peers of all anchors but one, in the order of anchors.
func (n *Network) others(self aweigh.AnchorID) []Peer {
	peers := make([]Peer, 0, len(n.genesis.Anchors))
	for _, a := range n.genesis.Anchors {
		if p := Peer(a.Peer); p != n.peers[self] {
			peers = append(peers, p)
		}
	}
	return peers
}
