package metrics

import "github.com/aweigh/aweigh/node"

var (
	storeCommits = counter("store_commits_total", "Commits to the store.")
	storeOps     = counter("store_ops_total", "Keys written or deleted in them.")
	storeBytes   = counter("store_written_bytes_total", "Bytes of their keys and values.")
	storeSyncs   = counter("store_syncs_total", "Times that the log was made durable.")
	storeSync    = gauge("store_sync_seconds", "Time that this took.")
	storeMax     = gauge("store_sync_max_seconds", "Longest time that this took since the start.")
	storeDisk    = gauge("store_disk_bytes", "Bytes of the store's files, without what its log reserves ahead.")
	storeFree    = gauge("store_disk_free_bytes", "Bytes that the disk has left for this process.")
	storeFailed  = gauge("store_failed", "1 if the store failed: nothing more is signed.")
)

func ofStore(s Store) source {
	return func(to emit) {
		m := s.Metrics()
		send(to, storeCommits, m.Commits)
		send(to, storeOps, m.Ops)
		send(to, storeBytes, m.Bytes)
		send(to, storeSyncs, m.Syncs)
		syncs := node.Latencies{Count: m.Syncs, Sum: m.SyncTotal, AtMost: m.SyncAtMost}
		sendLatencies(to, storeSync, syncs)
		send(to, storeMax, m.SyncMax.Seconds())
		send(to, storeDisk, m.Disk)
		if free, err := s.Free(); err == nil {
			send(to, storeFree, free)
		}
		sendBool(to, storeFailed, s.Err() != nil)
		etcdOfStore(to, m, syncs)
	}
}
