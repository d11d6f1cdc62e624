package machine

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Network is what the machines of one scope of one network share. It keeps the terms of the newest epochs and has no
// lock: machines that share a Network must not be stepped concurrently.
type Network struct {
	genesis scope.Genesis
	id      aweigh.ScopeID
	verify  votes.Verifier // nil: votes.Verify
	terms   []*EpochView   // the last few, newest last
	bounds  *scope.Bounds  // nil: the defaults
}

// EpochView is what follows from an Epoch for the nodes that take part in it. It is immutable, and safe for concurrent
// use if the Network's Verifier is.
type EpochView struct {
	Epoch    *scope.Epoch
	keyring  *votes.Keyring
	Checker  *Checker
	electors votes.KeySet // the voters on motions that open now
	Anchors  map[Peer]aweigh.AnchorID
	authors  authors
}

// NewNetwork returns the Network of a genesis. It returns an error if no network can start from g. If verify is nil,
// signatures are verified directly (votes.Keyring.With).
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

// term returns the EpochView of an epoch, which it makes if the network does not keep it.
func (n *Network) term(e *scope.Epoch) (*EpochView, error) {
	for _, t := range n.terms {
		if t.Epoch.Number == e.Number && t.Epoch.Root == e.Root && t.Epoch.Domain() == e.Domain() {
			return t, nil
		}
	}
	t := &EpochView{
		Epoch:   e,
		Anchors: make(map[Peer]aweigh.AnchorID, len(e.Roster.Anchors)),
	}
	var err error
	if t.keyring, err = e.Keyring(); err != nil {
		return nil, err
	}
	for _, a := range e.Roster.Anchors {
		t.Anchors[Peer(a.Peer)] = a.Key.ID()
	}
	t.authors = authorsOf(e.Roster.Anchors)
	if t.electors, err = e.Electors(); err != nil {
		return nil, err
	}
	verify := votes.Verifier(votes.Verify)
	if n.verify != nil {
		t.keyring, verify = t.keyring.With(n.verify), n.verify
	}
	t.Checker = &Checker{
		Anchors: t.Anchors, Keyring: t.keyring, Electors: t.electors, Limits: e.Policy.Limits, Verify: verify,
		Proves: func(from Peer, author votes.PublicKey, _ int) error {
			if _, ok := t.Anchors[from]; ok { // it may be part of a proposal
				return nil
			}
			return e.Proves(author)
		},
	}
	if n.terms = append(n.terms, t); len(n.terms) > keptTerms {
		n.terms = n.terms[1:]
	}
	return t, nil
}

// epochs returns the epochs of the terms that are kept.
func (n *Network) epochs() (known []*scope.Epoch) {
	for _, t := range n.terms {
		known = append(known, t.Epoch)
	}
	return known
}

// ID returns the network's identity.
func (n *Network) ID() aweigh.NetworkID { return n.genesis.Network() }

// Genesis returns the genesis that the scope started from.
func (n *Network) Genesis() scope.Genesis { return n.genesis }

// Bounds returns the bounds of the scope's states, nil for the defaults.
func (n *Network) Bounds() *scope.Bounds { return n.bounds }

// Verifier returns the function that verifies signatures; nil stands for votes.Verify.
func (n *Network) Verifier() votes.Verifier { return n.verify }

// others returns the peers of all anchors except self, in the order of anchors.
func (t *EpochView) others(self aweigh.AnchorID) []Peer {
	peers, own := make([]Peer, 0, len(t.Epoch.Roster.Anchors)), t.peer(self)
	for _, a := range t.Epoch.Roster.Anchors {
		if p := Peer(a.Peer); p != own {
			peers = append(peers, p)
		}
	}
	return peers
}

// peer returns the peer of an anchor, "" if the anchor has no seat.
func (t *EpochView) peer(a aweigh.AnchorID) Peer {
	if seat, ok := t.Epoch.Roster.Seat(a); ok {
		return Peer(t.Epoch.Roster.Anchors[seat].Peer)
	}
	return ""
}

// authors holds the authors of what the anchors' nodes write, sorted.
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
