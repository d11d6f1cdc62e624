package node

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Network is what machines of one scope of one network share. It keeps the terms of the
// newest epochs, so machines that share one must be stepped in turn.
type Network struct {
	genesis scope.Genesis
	id      aweigh.ScopeID
	verify  votes.Verifier // nil: directly
	terms   []*term        // the last few, newest last
	bounds  *scope.Bounds  // nil: the defaults
}

// term is what follows from an Epoch for those who take part in it: immutable,
// and safe for concurrent use if the Network's Verifier is.
type term struct {
	epoch    *scope.Epoch
	keyring  *votes.Keyring
	checker  *Checker
	electors votes.KeySet // who may vote on motions that open now
	anchors  map[Peer]aweigh.AnchorID
	authors  authors
}

// NewNetwork prepares a genesis that a network can start from. Without a
// Verifier, signatures are verified directly (votes.Keyring.With).
func NewNetwork(g scope.Genesis, verify votes.Verifier) (*Network, error) {
	n := &Network{genesis: g, id: g.Hash(), verify: verify}
	e, err := g.Epoch()
	if err != nil {
		return nil, err
	}
	_, err = n.term(e)
	return n, err
}

// keptTerms is how many terms a Network keeps: machines that share it may be in
// neighbouring epochs.
const keptTerms = 4

// term prepares an epoch.
func (n *Network) term(e *scope.Epoch) (*term, error) {
	for _, t := range n.terms {
		if t.epoch.Number == e.Number && t.epoch.Root == e.Root && t.epoch.Domain() == e.Domain() {
			return t, nil
		}
	}
	t := &term{
		epoch:   e,
		anchors: make(map[Peer]aweigh.AnchorID, len(e.Roster.Anchors)),
	}
	var err error
	if t.keyring, err = e.Keyring(); err != nil {
		return nil, err
	}
	for _, a := range e.Roster.Anchors {
		t.anchors[Peer(a.Peer)] = a.Key.ID()
	}
	t.authors = authorsOf(e.Roster.Anchors)
	if t.electors, err = e.Electors(); err != nil {
		return nil, err
	}
	verify := votes.Verifier(votes.Verify)
	if n.verify != nil {
		t.keyring, verify = t.keyring.With(n.verify), n.verify
	}
	t.checker = &Checker{Anchors: t.anchors, Keyring: t.keyring, Electors: t.electors, Limits: e.Policy.Limits, Verify: verify}
	if n.terms = append(n.terms, t); len(n.terms) > keptTerms {
		n.terms = n.terms[1:]
	}
	return t, nil
}

// epochs are those of the terms that are kept.
func (n *Network) epochs() (known []*scope.Epoch) {
	for _, t := range n.terms {
		known = append(known, t.epoch)
	}
	return known
}

// ID is the network's identity.
func (n *Network) ID() aweigh.NetworkID { return n.genesis.Network() }

// Genesis is what the scope started from.
func (n *Network) Genesis() scope.Genesis { return n.genesis }

// others are the peers of all anchors but one, in the order of anchors.
func (t *term) others(self aweigh.AnchorID) []Peer {
	peers, own := make([]Peer, 0, len(t.epoch.Roster.Anchors)), t.peer(self)
	for _, a := range t.epoch.Roster.Anchors {
		if p := Peer(a.Peer); p != own {
			peers = append(peers, p)
		}
	}
	return peers
}

// peer is the node of an anchor, "" if it has no seat.
func (t *term) peer(a aweigh.AnchorID) Peer {
	if seat, ok := t.epoch.Roster.Seat(a); ok {
		return Peer(t.epoch.Roster.Anchors[seat].Peer)
	}
	return ""
}

// authors are those in whose name the anchors' nodes write, in order.
type authors []aweigh.Hash

func authorsOf(anchors []scope.Anchor) authors {
	all := make(authors, len(anchors))
	for i := range anchors {
		all[i] = AuthorOf(Peer(anchors[i].Peer))
	}
	slices.SortFunc(all, compareHashes)
	return all
}

func (a authors) has(author aweigh.Hash) bool {
	_, ok := slices.BinarySearchFunc(a, author, compareHashes)
	return ok
}

func compareHashes(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) }
