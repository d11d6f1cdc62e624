package node

import (
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
)

// A node has one libp2p host, which all of its replicas share.

// Name returns the name of this node for people.
func (n *Node) Name() string { return n.cfg.Name }

// Peer returns this node's libp2p peer ID.
func (n *Node) Peer() machine.Peer { return machine.Peer(n.host.ID().String()) }

// Addrs returns the full multiaddrs at which other nodes can reach this node.
func (n *Node) Addrs() []string { return n.host.Addrs() }

// Peers returns the nodes of this network that this node is connected to.
func (n *Node) Peers() []p2p.PeerInfo { return n.host.Peers() }

// NetworkStats returns the network's counters since the start.
func (n *Node) NetworkStats() p2p.Stats { return n.host.Stats() }
