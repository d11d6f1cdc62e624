// Package etcd serves etcd's client API, version 3.6, over gRPC, so that clients
// of etcd work with a node as they are: the same services, messages, error codes
// and texts. A scope's key space is etcd's already (see package scope); here it
// gets etcd's messages, without any decisions.
//
// docs/etcd.md lists what is served, what differs and what is refused. The
// messages are generated from files of this module, because etcd's own cannot be
// linked into a process that also links libp2p's pubsub: both register a protobuf
// file called rpc.proto.
package etcd
