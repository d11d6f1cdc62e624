package store

import (
	"fmt"
	"time"
)

// Metrics are counters since the store was opened, for commits that returned nil.
type Metrics struct {
	Commits uint64 // calls of Commit
	Ops     uint64 // ops in them
	Bytes   uint64 // of their keys and values
	Syncs   uint64 // fsyncs of the log: fewer than commits, when these share one

	Disk uint64 // bytes of the store's files now

	SyncTotal, SyncMin, SyncMax time.Duration // how long the fsyncs took
}

// Metrics returns the counters.
func (p *Pebble) Metrics() Metrics {
	var disk uint64
	if !p.closed.Load() {
		disk = p.db.Metrics().DiskSpaceUsage()
	}
	d := p.fs
	d.mu.Lock()
	defer d.mu.Unlock()
	return Metrics{
		Disk:    disk,
		Commits: p.commits.Load(), Ops: p.ops.Load(), Bytes: p.bytes.Load(),
		Syncs: d.syncs, SyncTotal: d.total, SyncMin: d.min, SyncMax: d.max,
	}
}

// Free is how many bytes the disk of the store has left for this process.
func (p *Pebble) Free() (uint64, error) {
	usage, err := p.fs.GetDiskUsage(p.dir)
	if err != nil {
		return 0, fmt.Errorf("store: space left for %s: %w", p.dir, err)
	}
	return usage.AvailBytes, nil
}
