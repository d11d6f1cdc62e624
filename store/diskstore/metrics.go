package diskstore

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Metrics are counters since the store was opened, for commits that returned nil.
type Metrics struct {
	Commits uint64 // calls of Commit
	Ops     uint64 // ops in them
	Bytes   uint64 // of their keys and values
	Syncs   uint64 // fsyncs of the log: fewer than commits, when these share one

	Disk uint64 // bytes of the store's files now, without space that the log reserves
	Live uint64 // those of them in tables and logs that are needed; the others go by themselves

	SyncTotal, SyncMin, SyncMax time.Duration // how long the fsyncs took
	// SyncAtMost is how many took at most so long, for each bound of a histogram.
	SyncAtMost map[time.Duration]uint64
}

// syncs counts the fsyncs of the log.
type syncs struct {
	count           uint64
	total, min, max time.Duration
	buckets         [syncBounds + 1]uint64 // by how long they took; the last has those beyond the bounds
}

// The bounds are those in which etcd counts its own: from 1 ms to 8.192 s, each
// twice the one before.
const (
	syncBounds   = 14
	syncShortest = time.Millisecond
)

func (s *syncs) add(took time.Duration) {
	if s.count == 0 || took < s.min {
		s.min = took
	}
	s.max = max(s.max, took)
	s.total += took
	s.count++
	i := 0
	for i < syncBounds && took > syncShortest<<i {
		i++
	}
	s.buckets[i]++
}

func (s *syncs) atMost() map[time.Duration]uint64 {
	all, sum := make(map[time.Duration]uint64, syncBounds), uint64(0)
	for i := range syncBounds {
		sum += s.buckets[i]
		all[syncShortest<<i] = sum
	}
	return all
}

// Metrics returns the counters.
func (s *Store) Metrics() Metrics {
	m := Metrics{Commits: s.commits.Load(), Ops: s.ops.Load(), Bytes: s.bytes.Load()}
	if !s.closed.Load() {
		m.Disk, m.Live = space(s.db.Metrics())
	}
	d := s.fs
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &d.syncs
	m.Syncs, m.SyncTotal, m.SyncMin, m.SyncMax, m.SyncAtMost = c.count, c.total, c.min, c.max, c.atMost()
	return m
}

// space is the size of the files, and the part of it that is needed. Pebble counts the log
// that it writes to with the size that it had when it was opened: none, or that of the old
// log that it replaces; the logs may hold more. And of files of values it counts as local
// only changes since the store was opened: all are local.
func space(m *pebble.Metrics) (disk, live uint64) {
	disk = m.DiskSpaceUsage() - m.WAL.PhysicalSize + max(m.WAL.PhysicalSize, m.WAL.Size)
	disk += m.BlobFiles.LiveSize - m.BlobFiles.Local.LiveSize // either may be the larger: it adds up
	return disk, m.Table.Local.LiveSize + m.BlobFiles.LiveSize + m.WAL.Size
}

// Free is how many bytes the disk of the store has left for this process.
func (s *Store) Free() (uint64, error) {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		return 0, fmt.Errorf("store: space left for %s: %w", s.dir, err)
	}
	return usage.AvailBytes, nil
}
