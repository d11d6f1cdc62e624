package p2p

import (
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// tracer counts what pubsub drops silently. It is a pubsub.RawTracer; the
// methods that count nothing are there to be one.
type tracer struct{ count *counters }

func (t tracer) RejectMessage(_ *pubsub.Message, reason string) {
	switch reason {
	case pubsub.RejectValidationQueueFull, pubsub.RejectValidationThrottled:
		t.count.GossipDropped.Add(1)
	case pubsub.RejectValidationFailed, pubsub.RejectValidationIgnored: // deliver has counted it
	default:
		t.count.GossipRejected.Add(1)
	}
}

func (t tracer) DropRPC(rpc *pubsub.RPC, _ peer.ID) {
	t.count.GossipDropped.Add(uint64(max(1, len(rpc.GetPublish()))))
}

func (t tracer) UndeliverableMessage(*pubsub.Message) { t.count.GossipDropped.Add(1) }
func (t tracer) DuplicateMessage(*pubsub.Message)     { t.count.GossipDuplicates.Add(1) }

func (tracer) OnNewOutboundStream(peer.ID, protocol.ID) {}
func (tracer) OnClosedOutboundStream(peer.ID)           {}
func (tracer) Join(string)                              {}
func (tracer) Leave(string)                             {}
func (tracer) Graft(peer.ID, string)                    {}
func (tracer) Prune(peer.ID, string)                    {}
func (tracer) ValidateMessage(*pubsub.Message)          {}
func (tracer) DeliverMessage(*pubsub.Message)           {}
func (tracer) ThrottlePeer(peer.ID)                     {}
func (tracer) RecvRPC(*pubsub.RPC)                      {}
func (tracer) SendRPC(*pubsub.RPC, peer.ID)             {}
