// Package node is one Aweigh node: the goroutines that let a machine.Machine act, and what surfaces call.
//
// A runner steps the machine of one scope with what comes from the network, the clock and local clients; all that waits
// shares one step and one sync. A Replica is a scope that the node holds. Node is all of them: it finds the replica, or
// the nodes elsewhere, that a request concerns. The API, etcd, DNS and console surfaces use Node.
//
// What asks scopes that the node does not hold is package referral.
package node
