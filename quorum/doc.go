// Package quorum decides when votes have enough weight, and orders blocks by them.
//
// It has two halves. The arithmetic: Weights are the integer weights of one
// epoch, Rule and Rules are the share of them that each kind of vote needs,
// Tally counts. The machine: Engine runs the consensus of one epoch of one
// scope, of the Simplex family (Chan and Pass, "Simplex Consensus: A Simple and
// Fast Consensus Protocol", TCC 2023), with weights in place of head counts.
// docs/protocol.md numbers its rules; P1 to P19 are implemented here.
//
// Everything is pure: no I/O, clock, goroutine or randomness. The Engine does
// not handle signatures. It asks for votes to be signed, carries the signature
// bytes of others without looking at them, and trusts that all its inputs were
// checked before (package votes).
package quorum
