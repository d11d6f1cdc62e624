package node

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
)

// Neighbour is a connected node of this network.
type Neighbour struct {
	Peer    machine.Peer
	Address string // multiaddr of the connection
	Inbound bool   // it dialled this node
}

// Overview is everything that a node reports of itself at once.
type Overview struct {
	machine.Status
	Reach      Reach
	Name       string
	Version    string
	Network    string // name
	Peer       machine.Peer
	Addrs      []string
	Neighbours []Neighbour
	Dropped    uint64
	Lineage    lineage.Head
	Snapshot   *SnapshotProgress // nil while none is fetched

	// ClockBehind is by how much this node's clock is behind those of most other anchors, negative if it is ahead; 0:
	// it is not found off.
	ClockBehind time.Duration
	Now         aweigh.Instant // by the clock that this node counts by: the wall clock at its start, and the time since
}

// Overview collects everything once. It is for people, and is expensive.
func (n *Replica) Overview() Overview {
	s := n.Status()
	o := Overview{
		Status: s, Reach: n.reach(s), Name: n.cfg.Name, Version: n.cfg.Version,
		Network: n.of.cfg.Genesis.Name, Peer: n.of.Peer(), Addrs: n.host.Addrs(), Dropped: n.of.Dropped(),
		ClockBehind: n.ClockBehind(), Now: n.runner.now(),
	}
	for _, p := range n.host.Peers() {
		o.Neighbours = append(o.Neighbours, Neighbour{Peer: machine.Peer(p.ID.String()), Address: p.Addr, Inbound: p.Inbound})
	}
	o.Snapshot = n.fetching.Load()
	o.Lineage = lineage.Head{Size: o.Head.LineageSize, Root: o.Head.LineageRoot}
	return o
}
