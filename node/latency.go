package node

import (
	"sync/atomic"
	"time"
)

// latencyBounds are the upper ends of the buckets in which latencies are counted:
// from a commit on one machine to one that waited for an anchor to come back.
var latencyBounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// latency counts durations. Safe for concurrent use; the zero value works.
type latency struct {
	buckets [len(latencyBounds) + 1]atomic.Uint64
	sum     atomic.Int64
}

// since counts the time from begin to now.
func (l *latency) since(begin time.Time) {
	d, i := time.Since(begin), 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	l.buckets[i].Add(1)
	l.sum.Add(int64(d))
}

// Latencies is a histogram of durations.
type Latencies struct {
	Count  uint64
	Sum    time.Duration
	AtMost map[time.Duration]uint64 // how many took at most so long, for each bound
}

func (l *latency) snapshot() Latencies {
	s := Latencies{Sum: time.Duration(l.sum.Load()), AtMost: make(map[time.Duration]uint64, len(latencyBounds))}
	for i := range l.buckets {
		s.Count += l.buckets[i].Load()
		if i < len(latencyBounds) {
			s.AtMost[latencyBounds[i]] = s.Count
		}
	}
	return s
}
