package metrics

import (
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store/diskstore"
)

// Names that etcd gave, for the alerts and dashboards that know them. The rule: such a
// name is used only where it means the same, with etcd's labels and of etcd's
// type, even where that is a gauge that never falls; and its value is one that is
// counted here anyway. A name whose value would have to be invented is missing, so
// that an alert on it stays silent and a panel empty, instead of lying.
// docs/operations.md lists the missing ones, with the reasons. Values of etcd's one
// key space are those of the root scope.
var (
	etcdHasLeader   = foreignGauge("etcd_server_has_leader", "1 if anchors enough to decide in the root scope are in reach.")
	etcdLearner     = foreignGauge("etcd_server_is_learner", "1 if this node has no seat in the root scope.")
	etcdCommitted   = foreignGauge("etcd_server_proposals_committed_total", "Height of the root scope's highest block proven to be final.")
	etcdApplied     = foreignGauge("etcd_server_proposals_applied_total", "Height of the root scope's final block here.")
	etcdPending     = foreignGauge("etcd_server_proposals_pending", "Mutations that wait to become final in the root scope.")
	etcdFailed      = foreignCounter("etcd_server_proposals_failed_total", "Mutations whose clients stopped waiting.")
	etcdReadsFailed = foreignCounter("etcd_server_read_indexes_failed_total", "Linearizable reads whose clients stopped waiting.")
	etcdRevision    = foreignGauge("etcd_debugging_mvcc_current_revision", "Revision of the root scope's key space.")
	etcdCompacted   = foreignGauge("etcd_debugging_mvcc_compact_revision", "Revision of the root scope's last compaction, -1 before the first.")

	etcdDisk  = foreignGauge("etcd_mvcc_db_total_size_in_bytes", "Bytes of the store's files, without what its log reserves ahead.")
	etcdLive  = foreignGauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes of those that are needed.")
	etcdSyncs = foreignGauge("etcd_disk_wal_fsync_duration_seconds", "Time that it took to make the store's log durable.")

	etcdVersion  = foreignGauge("etcd_server_version", "1, with the version of etcd whose API is served.", "server_version")
	etcdCluster  = foreignGauge("etcd_cluster_version", "1, with the version of etcd whose API the network serves.", "cluster_version")
	etcdID       = foreignGauge("etcd_server_id", "1, with the node's number in etcd's API, in hex.", "server_id")
	etcdWatchers = foreignGauge("etcd_debugging_mvcc_watcher_total", "Watches of clients of etcd's API.")
	etcdPeers    = foreignGauge("etcd_network_active_peers", "1 if this node is connected with an anchor of the root scope, by their numbers in etcd's API, in hex.", "Local", "Remote")
	etcdReceived = foreignCounter("etcd_network_client_grpc_received_bytes_total", "Bytes of messages from clients of etcd's API.")
	etcdSent     = foreignCounter("etcd_network_client_grpc_sent_bytes_total", "Bytes of messages to clients of etcd's API.")
	grpcStarted  = foreignCounter("grpc_server_started_total", "Calls of etcd's API that began.", "grpc_type", "grpc_service", "grpc_method")
	grpcHandled  = foreignCounter("grpc_server_handled_total", "Calls of etcd's API that ended, by code.", "grpc_type", "grpc_service", "grpc_method", "grpc_code")
)

func etcdOfNode(to emit, o node.Overview, c node.Counts) {
	sendBool(to, etcdHasLeader, o.Reach.Weight >= o.Reach.Needed)
	sendBool(to, etcdLearner, o.Self.IsZero())
	send(to, etcdCommitted, uint64(o.Known))
	send(to, etcdApplied, uint64(o.Head.Height))
	send(to, etcdPending, o.Pool+c.Submits)
	send(to, etcdFailed, c.Undecided)
	send(to, etcdReadsFailed, c.Unanswered)
	send(to, etcdRevision, o.Head.Revision)
	compacted := o.Head.Compacted
	if compacted == 0 {
		compacted = -1
	}
	send(to, etcdCompacted, compacted)
}

func etcdOfStore(to emit, m diskstore.Metrics, syncs node.Latencies) {
	send(to, etcdDisk, m.Disk)
	send(to, etcdLive, m.Live)
	sendLatencies(to, etcdSyncs, syncs)
}

// etcdOfPort emits what only a node has that serves etcd's API. As in etcd, every code
// of every method is there from the start, so that the first failure is a rise.
func etcdOfPort(to emit, o node.Overview, c etcd.Counts) {
	send(to, etcdVersion, 1, c.Version)
	send(to, etcdCluster, 1, c.ClusterVersion)
	send(to, etcdID, 1, hex(c.Member))
	send(to, etcdWatchers, c.Watches)
	send(to, etcdReceived, c.Received)
	send(to, etcdSent, c.Sent)
	connected := make(map[machine.Peer]bool, len(o.Neighbours))
	for _, x := range o.Neighbours {
		connected[x.Peer] = true
	}
	for _, a := range o.Roster.Anchors {
		if machine.Peer(a.Peer) != o.Peer {
			sendBool(to, etcdPeers, connected[machine.Peer(a.Peer)], hex(c.Member), hex(etcd.MemberOf(a.Key.ID())))
		}
	}
	for _, m := range c.Methods {
		send(to, grpcStarted, m.Started, m.Kind, m.Service, m.Method)
		for code, n := range m.Handled {
			send(to, grpcHandled, n, m.Kind, m.Service, m.Method, codes.Code(code).String())
		}
	}
}

// hex is how etcd writes its numbers.
func hex(n uint64) string { return strconv.FormatUint(n, 16) }
