package model

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// stored is the versions of keys that compaction has left.
type stored struct {
	of    map[string][]version // by key, the oldest first
	bytes int64

	changes   []place // all, in order
	collected place   // the next that compaction looks at
}

// place is a change of a key.
type place struct {
	revision int64
	sub      uint32
	key      string
}

func (p place) before(o place) bool {
	return p.revision < o.revision || p.revision == o.revision && p.sub < o.sub
}

// version is a version of a key, or a deletion.
type version struct {
	place
	size    int // bytes of its record, and of the key under which that stands, without the scope's prefix
	content int // bytes of its key and value
	lives   bool
}

// spaceBytes is how many bytes of a record's key name the scope.
const spaceBytes = 17

// add stores a version.
func (s *stored) add(kv *scope.KeyValue) {
	number := func(n uint64) int { return len(binary.AppendUvarint(nil, n)) }
	v := version{place: place{kv.ModRevision, kv.Sub, string(kv.Key)}, lives: kv.Version > 0, content: len(kv.Key) + len(kv.Value)}
	v.size = 1 + len(kv.Key) + bytes.Count(kv.Key, []byte{0}) + 2 + 12 + // a kind, the escaped key and its end, the place
		number(uint64(kv.Version)) + number(uint64(kv.Entry)) + len(kv.UID) + len(kv.Value)
	if v.lives {
		v.size += number(uint64(kv.CreateRevision)) + number(uint64(kv.Lease))
	}
	s.of[v.key] = append(s.of[v.key], v)
	s.bytes += int64(v.size)
}

// within is the keys in a range of which something is stored, in order.
func (s *stored) within(key, end []byte) (keys []string) {
	for k := range s.of { // order-free: sorted below
		if scope.Within([]byte(k), key, end) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// newestUntil is the newest of some versions as of a revision.
func newestUntil(all []version, revision int64) *version {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].revision <= revision {
			return &all[i]
		}
	}
	return nil
}

// collect takes away what compaction has closed: of so many changes at most, in their order, the versions that they
// replaced, and the deletions themselves, but for the changes of the revision compacted to.
func (m *Model) collect(due int) {
	s, upTo := &m.stored, m.view.Compacted
	if s.collected.revision > upTo {
		return
	}
	before := s.bytes
	i, _ := slices.BinarySearchFunc(s.changes, s.collected, func(p, at place) int {
		if p.before(at) {
			return -1
		}
		return 1
	})
	s.collected = place{revision: upTo + 1}
	for n := 1; i < len(s.changes) && s.changes[i].revision <= upTo; i, n = i+1, n+1 {
		at := s.changes[i]
		s.drop(at, at.revision < upTo)
		if n == due || before-s.bytes >= m.bounds.CollectBytes {
			s.collected = place{revision: at.revision, sub: at.sub + 1}
			break
		}
	}
}

// drop takes away the versions that a change replaced, and itself if it is a deletion that goes.
func (s *stored) drop(at place, goes bool) {
	var rest []version
	for _, v := range s.of[at.key] {
		older := v.before(at)
		if !goes {
			older = v.revision < at.revision
		}
		if older || goes && !at.before(v.place) && !v.lives {
			s.bytes -= int64(v.size)
			continue
		}
		rest = append(rest, v)
	}
	if s.of[at.key] = rest; len(rest) == 0 {
		delete(s.of, at.key)
	}
}

// recollect lets compaction look again at the changes of the revision compacted to before.
func (s *stored) recollect(compacted int64) {
	if again := (place{revision: compacted}); compacted > 0 && again.before(s.collected) {
		s.collected = again
	}
}

// full reports whether the scope holds so much that nothing more is put, but for a 64th of what the policy allows.
func (m *Model) full() bool {
	most := m.block.policy.Limits.ScopeBytes
	return most > 0 && m.stored.bytes >= most-max(257, min(most/64, 3<<19))
}

// grows is what a put of a key counts before it is done.
func grows(key, value []byte) int64 { return 256 + int64(len(key)+len(value)) }
