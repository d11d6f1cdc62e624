// Package sim runs whole networks of real node machines in virtual time, from a
// seed, in one goroutine. Nothing of a node is faked but its sockets and its
// disk: the consensus, the state, the checks and the order of effects are those
// of package node.
//
// A run is a function of its Config: the same Config gives the same trace, byte
// for byte. Random streams are split by purpose, so that adding a use of one
// does not reshuffle another.
package sim
