// Package sim runs whole networks of real node machines in virtual time, from a
// seed, in one goroutine. Only a node's sockets and its disk are simulated: the
// consensus, the state, the checks and the order of effects are those of package
// node.
//
// A scenario.Scenario describes a run; Run runs it, and returns a Result. Package
// sweep runs many, and package report draws the results. Adversaries change the
// frames that an honest machine wants to send, and sign with the keys of their own
// coalition alone. Faults are those of the environment. Invariants are checked at
// every step; once the faults are over, the honest nodes must answer all requests,
// and make progress, if they have the weight for it.
//
// A run is a function of its scenario: the same one gives the same trace, byte
// for byte, on every processor. Random streams are split by purpose, so that
// adding a use of one does not reshuffle another.
package sim
