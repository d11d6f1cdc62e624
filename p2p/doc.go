// Package p2p moves bytes between the nodes of one network over libp2p. It has
// no notion of votes, blocks or scopes; its payloads are opaque.
//
// There are three ways to carry bytes, and each has its own promise:
//
//   - Frames go to one peer over a long-lived stream, one stream per direction.
//     Frames that arrive, arrive in order. Send never blocks: a full queue or a
//     broken stream loses frames, and every loss is counted.
//   - Requests ask one peer for something and wait for the answer, on a stream
//     of their own.
//   - Gossip spreads a message to every host that has joined its topic. It
//     loses messages by design; nothing may depend on gossip alone.
//
// A host connects to one network only. Names of protocols and topics are derived
// from the network's identity, so a peer of another network fails at negotiation
// and is disconnected. Names are public: a peer proves that it knows the
// identity before it gets or sends anything else.
//
// Everything here is bounded: queues, streams, connections, rates, remembered
// addresses. Every drop is a counter in Stats.
package p2p
