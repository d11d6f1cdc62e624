// Package quorum decides when enough weight has spoken, and orders blocks by it.
//
// It has two halves. The arithmetic: Weights are the integer weights of one
// epoch, Rule and Rules say what share of them each kind of vote needs, Tally
// counts. The machine: Engine runs the consensus of one epoch of one scope, of
// the Simplex family (Chan and Pass, "Simplex Consensus: A Simple and Fast
// Consensus Protocol", TCC 2023), with weights in place of head counts.
// docs/protocol.md numbers its rules; P1 to P19 are implemented here.
//
// Everything is pure: no I/O, clock, goroutine or randomness. The Engine knows
// nothing of signatures. It asks for votes to be signed, carries the signature
// bytes of others without looking at them, and trusts that whatever it is given
// was checked (package votes) before.
package quorum
