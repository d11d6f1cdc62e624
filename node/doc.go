// Package node is one Aweigh node: the pure Machine that decides, and the
// goroutines that let it act.
//
// Machine.Step takes events and an instant and returns Effects: writes, frames
// to send, replies. Perform carries Effects out in the one order that is safe:
// make durable, then send, then reply (docs/protocol.md, P8). The Runner feeds a
// Machine from the network, the clock and the local clients, stepping all that
// waits together so that it shares one sync. Node is what surfaces (API, later
// etcd and DNS) use.
//
// Only files named run*.go, and node.go on top of them, may use goroutines,
// clocks or randomness. The simulator drives the same Machine without them.
package node
