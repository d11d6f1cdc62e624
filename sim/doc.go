// Package sim runs whole networks of real node machines in virtual time, from a
// seed, in one goroutine. Nothing of a node is faked but its sockets and its
// disk: the consensus, the state, the checks and the order of effects are those
// of package node.
//
// A scenario.Scenario says what happens; Run plays it, and gives a Result. Package
// sweep runs many, and package report draws what came of them. Adversaries
// bend what an honest machine wants to send, and sign with the keys of their own
// coalition alone. Faults are the world's. Invariants are watched at every step;
// once the faults are over, the honest nodes must answer what they were asked, and
// make progress, if they have the weight for it.
//
// A run is a function of its scenario: the same one gives the same trace, byte
// for byte, on every processor. Random streams are split by purpose, so that
// adding a use of one does not reshuffle another.
package sim
