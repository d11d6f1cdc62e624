// Package machine decides what one node does in one scope.
//
// Machine.Step takes events and an instant and returns Effects: records to write, frames to send, replies to clients.
// It does no I/O, reads no clock, draws no random number and starts no goroutine, so a run is a function of its events:
// package node feeds it from a network and a disk, package sim from a seed.
//
// Perform carries Effects out in the one order that is safe: make durable, then send, then reply (docs/protocol.md,
// P8). A Checker verifies frames before the machine sees them, on any goroutine. History and Prover read what Step
// wrote.
package machine
