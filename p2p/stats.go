package p2p

import (
	"reflect"
	"sync/atomic"
)

// Stats are totals since New, except fields with "now".
type Stats = Tally[uint64]

// Tally lists a host's counters. It exists in two forms: of atomic counters
// inside the host, and of plain numbers as Stats.
type Tally[T any] struct {
	Peers T // connected now
	Known T // peers whose address is remembered now

	FramesSent         T // handed to the transport
	FramesReceived     T
	FrameBytesSent     T
	FrameBytesReceived T
	DroppedFull        T // not queued: the peer's queue was full
	DroppedNoPeer      T // not queued: the peer is not connected
	DroppedTooLong     T // not queued: above MaxFrame
	FramesLost         T // queued, then lost with a stream or a peer
	StreamsBroken      T // outgoing frame streams that failed
	StreamsRefused     T // incoming streams of peers that open too many
	Unproven           T // incoming streams of peers that did not prove that they know the network
	BadFrames          T // incoming streams cut for a frame too long or malformed
	Slowed             T // times a peer exceeded its rates and its reader waited

	RequestsSent    T
	RequestsFailed  T // of those sent
	RequestsServed  T
	RequestsRefused T // over the limit, malformed, or the handler failed

	GossipPublished  T
	GossipReceived   T // given to the handler
	GossipRelayed    T // of topics not joined here, passed on
	GossipIgnored    T // by the handler
	GossipRejected   T // by the handler, or malformed
	GossipDuplicates T
	GossipDropped    T // by a full queue or a peer's rate limit, in or out
	GossipExcess     T // packets of gossip thrown away unread, of peers far above their rate

	Dials        T
	DialsFailed  T
	Foreign      T // connections closed because the peer is not of this network
	Silent       T // connections closed because a member gave no sign of life
	GateRefusals T // connections refused because the peer was blocked, or its address
	Blamed       T // acts of peers that no honest node commits
	Blocked      T // times a peer was disconnected and kept out for them
}

// counters is the form that the host updates.
type counters = Tally[atomic.Uint64]

// snapshot copies counters field by field. Reflection keeps one list of fields;
// this runs a few times a minute.
func snapshot(c *counters) Stats {
	var s Stats
	from, to := reflect.ValueOf(c).Elem(), reflect.ValueOf(&s).Elem()
	for i := range from.NumField() {
		to.Field(i).SetUint(from.Field(i).Addr().Interface().(*atomic.Uint64).Load())
	}
	return s
}
