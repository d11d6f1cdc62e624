package metrics

import "github.com/aweigh/aweigh/p2p"

var (
	peers      = gauge("p2p_peers", "Nodes of this network that are connected.")
	peersKnown = gauge("p2p_known_peers", "Nodes whose address is remembered.")
)

// totals are the counters of the network, each with how to read it.
var totals = []struct {
	metric
	of func(p2p.Stats) uint64
}{
	{counter("p2p_frames_sent_total", "Frames written to peers."), func(s p2p.Stats) uint64 { return s.FramesSent }},
	{counter("p2p_frames_received_total", "Frames read from peers."), func(s p2p.Stats) uint64 { return s.FramesReceived }},
	{counter("p2p_sent_bytes_total", "Bytes of frames written to peers."), func(s p2p.Stats) uint64 { return s.FrameBytesSent }},
	{counter("p2p_received_bytes_total", "Bytes of frames read from peers."), func(s p2p.Stats) uint64 { return s.FrameBytesReceived }},
	{counter("p2p_frames_lost_total", "Frames queued, then lost with a stream or a peer."), func(s p2p.Stats) uint64 { return s.FramesLost }},
	{counter("p2p_streams_broken_total", "Outgoing frame streams that failed."), func(s p2p.Stats) uint64 { return s.StreamsBroken }},
	{counter("p2p_streams_refused_total", "Incoming streams refused, of peers that open too many."), func(s p2p.Stats) uint64 { return s.StreamsRefused }},
	{
		counter("p2p_streams_unproven_total", "Incoming streams of peers that did not prove to know the network."),
		func(s p2p.Stats) uint64 { return s.Unproven },
	},
	{counter("p2p_bad_frames_total", "Incoming streams cut for a frame too long or malformed."), func(s p2p.Stats) uint64 { return s.BadFrames }},
	{counter("p2p_slowed_total", "Times that a peer exceeded its rates and had to wait."), func(s p2p.Stats) uint64 { return s.Slowed }},
	{counter("p2p_requests_sent_total", "Requests to peers."), func(s p2p.Stats) uint64 { return s.RequestsSent }},
	{counter("p2p_requests_failed_total", "Requests to peers that failed."), func(s p2p.Stats) uint64 { return s.RequestsFailed }},
	{counter("p2p_requests_served_total", "Requests of peers that were answered."), func(s p2p.Stats) uint64 { return s.RequestsServed }},
	{counter("p2p_requests_refused_total", "Requests of peers that were refused."), func(s p2p.Stats) uint64 { return s.RequestsRefused }},
	{counter("p2p_gossip_published_total", "Gossip messages published."), func(s p2p.Stats) uint64 { return s.GossipPublished }},
	{counter("p2p_gossip_received_total", "Gossip messages received of topics joined."), func(s p2p.Stats) uint64 { return s.GossipReceived }},
	{counter("p2p_gossip_relayed_total", "Gossip messages of other topics passed on."), func(s p2p.Stats) uint64 { return s.GossipRelayed }},
	{counter("p2p_gossip_ignored_total", "Gossip messages not passed on, without blame."), func(s p2p.Stats) uint64 { return s.GossipIgnored }},
	{counter("p2p_gossip_rejected_total", "Gossip messages that were invalid."), func(s p2p.Stats) uint64 { return s.GossipRejected }},
	{counter("p2p_gossip_duplicates_total", "Gossip messages that came again."), func(s p2p.Stats) uint64 { return s.GossipDuplicates }},
	{counter("p2p_gossip_dropped_total", "Gossip messages lost to a full queue or a rate limit."), func(s p2p.Stats) uint64 { return s.GossipDropped }},
	{counter("p2p_gossip_excess_total", "Packets of gossip thrown away unread, of peers far above their rate."), func(s p2p.Stats) uint64 { return s.GossipExcess }},
	{counter("p2p_dials_total", "Dials."), func(s p2p.Stats) uint64 { return s.Dials }},
	{counter("p2p_dials_failed_total", "Dials that failed."), func(s p2p.Stats) uint64 { return s.DialsFailed }},
	{counter("p2p_foreign_peers_total", "Connections closed because the peer is not of this network."), func(s p2p.Stats) uint64 { return s.Foreign }},
	{counter("p2p_silent_peers_total", "Connections closed because an anchor gave no sign of life."), func(s p2p.Stats) uint64 { return s.Silent }},
	{counter("p2p_gate_refusals_total", "Connections refused because the peer was blocked."), func(s p2p.Stats) uint64 { return s.GateRefusals }},
	{counter("p2p_blamed_total", "Acts of peers that no honest node commits."), func(s p2p.Stats) uint64 { return s.Blamed }},
	{counter("p2p_blocked_total", "Times that a peer was disconnected and kept out for them."), func(s p2p.Stats) uint64 { return s.Blocked }},
}

// unsent are frames that did not get into a peer's queue.
var unsent = counter("p2p_frames_unsent_total", "Frames not queued, by why.", "reason")

func ofNetwork(n Node) source {
	return func(to emit) {
		s := n.NetworkStats()
		send(to, peers, s.Peers)
		send(to, peersKnown, s.Known)
		for _, t := range totals {
			send(to, t.metric, t.of(s))
		}
		send(to, unsent, s.DroppedFull, "queue full")
		send(to, unsent, s.DroppedNoPeer, "not connected")
		send(to, unsent, s.DroppedTooLong, "too long")
	}
}
