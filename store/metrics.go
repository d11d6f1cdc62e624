package store

import "time"

// Metrics are counters since the store was opened, for commits that returned nil.
type Metrics struct {
	Commits uint64 // calls of Commit
	Ops     uint64 // ops in them
	Bytes   uint64 // of their keys and values
	Syncs   uint64 // fsyncs of the log: fewer than commits, when these share one

	SyncTotal, SyncMin, SyncMax time.Duration // how long the fsyncs took
}

// Metrics returns the counters.
func (p *Pebble) Metrics() Metrics {
	d := p.fs
	d.mu.Lock()
	defer d.mu.Unlock()
	return Metrics{
		Commits: p.commits.Load(), Ops: p.ops.Load(), Bytes: p.bytes.Load(),
		Syncs: d.syncs, SyncTotal: d.total, SyncMin: d.min, SyncMax: d.max,
	}
}
