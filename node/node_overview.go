package node

import (
	"github.com/aweigh/aweigh/lineage"
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
}

// Overview looks at everything once; it is for people and costs accordingly.
func (n *Node) Overview() Overview {
	o := Overview{
		Status: n.Status(), Reach: n.Reach(), Name: n.Name(), Version: n.cfg.Version,
		Network: n.cfg.Genesis.Name, Peer: n.Peer(), Addrs: n.Addrs(), Dropped: n.Dropped(),
	}
	for _, p := range n.host.Peers() {
		o.Neighbours = append(o.Neighbours, Neighbour{Peer: Peer(p.ID.String()), Address: p.Addr, Inbound: p.Inbound})
	}
	o.Lineage = lineage.Head{Size: o.Head.LineageSize, Root: o.Head.LineageRoot}
	return o
}
