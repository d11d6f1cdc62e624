package node

import (
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Neighbour is a connected node of this network.
type Neighbour struct {
	Peer    Peer
	Address string // multiaddr of the connection
	Inbound bool   // it dialled this node
}

// Overview is all that a node can say of itself at once.
type Overview struct {
	Status
	Reach      Reach
	Name       string
	Version    string
	Network    string // name
	Peer       Peer
	Addrs      []string
	Neighbours []Neighbour
	Dropped    uint64
	Lineage    lineage.Head
	Snapshot   *SnapshotProgress // nil while none is fetched
}

// Overview looks at everything once; it is for people and costs accordingly.
func (n *Part) Overview() Overview {
	s := n.Status()
	o := Overview{
		Status: s, Reach: n.reach(s), Name: n.Name(), Version: n.cfg.Version,
		Network: n.of.cfg.Genesis.Name, Peer: n.Peer(), Addrs: n.Addrs(), Dropped: n.Dropped(),
	}
	for _, p := range n.host.Peers() {
		o.Neighbours = append(o.Neighbours, Neighbour{Peer: Peer(p.ID.String()), Address: p.Addr, Inbound: p.Inbound})
	}
	o.Snapshot = n.fetching.Load()
	o.Lineage = lineage.Head{Size: o.Head.LineageSize, Root: o.Head.LineageRoot}
	return o
}

// AuthorOf is the author of what the node with a peer ID admits: the identity
// of its Ed25519 key, which the peer ID holds. It is zero for other peer IDs, and for
// keys that votes.PublicKey.Check refuses.
func AuthorOf(p Peer) aweigh.Hash {
	id, err := peer.Decode(string(p))
	if err != nil {
		return aweigh.Hash{}
	}
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return aweigh.Hash{}
	}
	raw, err := key.Raw()
	if err != nil {
		return aweigh.Hash{}
	}
	author := votes.PublicKey{Scheme: votes.Ed25519, Bytes: raw}
	if author.Check() != nil {
		return aweigh.Hash{}
	}
	return author.ID()
}
