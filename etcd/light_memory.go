package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits of a rangeMemory. Each range may hold what one proof shows, and keptBytes of changes.
const (
	mostRanges   = 64  // that no watch follows
	mostFollowed = 256 // that watches follow
)

// rangeMemory holds the ranges of a Light. The zero value is ready.
type rangeMemory struct {
	mu     sync.Mutex
	ranges map[string]*provenRange // by key and end
	idle   int                     // of these no watch follows
	made   uint64                  // ranges, ever
}

// remembered returns what is known of a range.
func (s *light) remembered(key, end []byte) *provenRange {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	x := s.find(key, end)
	m.forget()
	return x
}

// followed is remembered for a watch, which has it proven anew until left; nil if watches follow too many ranges.
func (s *light) followed(key, end []byte) *provenRange {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	x := s.find(key, end)
	defer m.forget()
	if x.watches == 0 {
		if len(m.ranges)-m.idle >= mostFollowed {
			return nil
		}
		m.idle--
		ctx, cancel := context.WithCancel(s.ctx)
		x.unfollow = cancel
		s.background(func() { x.follow(ctx) })
	}
	x.watches++
	return x
}

// find returns a range, a new one if it is not known. The lock is held.
func (s *light) find(key, end []byte) *provenRange {
	m, name := &s.memory, fmt.Sprintf("%q %q", key, end)
	x := m.ranges[name]
	if x == nil {
		if m.ranges == nil {
			m.ranges = make(map[string]*provenRange)
		}
		m.made++
		x = &provenRange{key: key, end: end, light: s, id: m.made, changed: make(chan struct{})}
		m.ranges[name] = x
		m.idle++
	}
	x.used = time.Now()
	return x
}

// left notes that a watch follows a range no more.
func (m *rangeMemory) left(x *provenRange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.watches--; x.watches == 0 {
		x.unfollow()
		m.idle++
		m.forget()
	}
}

// forget drops ranges that no watch follows, those that were not used for longest, while there are too many.
func (m *rangeMemory) forget() {
	for ; m.idle > mostRanges; m.idle-- {
		oldest := ""
		for name, x := range m.ranges {
			if x.watches == 0 && (oldest == "" || x.used.Before(m.ranges[oldest].used)) {
				oldest = name
			}
		}
		delete(m.ranges, oldest)
	}
}
