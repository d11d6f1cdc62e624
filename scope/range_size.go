package scope

import (
	"bytes"
	"math"

	"github.com/aweigh/aweigh/kv"
)

// lookBytes is how many bytes of a value that is read, and is not in the answer, cost as much as a look at one more
// version.
const lookBytes = 2 << 10

// RangeSize is how many bytes the records have that an answer of Range about the keys [key, end), in the sense of Op,
// has, or their keys if it has no values, and how many versions have to be looked at for that. Values that are read for
// an answer without values count as more looks; what is only counted is not read. It stops with ErrTooMuch where either
// exceeds its bound.
func (s *State) RangeSize(key, end []byte, r *Range, most, visits int) (size, seen int, err error) {
	rev, room := r.Revision, int64(math.MaxInt64)
	if rev <= 0 {
		rev = math.MaxInt64
	}
	if r.CountOnly {
		room = 0
	} else if r.Heads() && r.Limit < room {
		room = r.Limit + 1
	}
	keys := r.KeysOnly && r.Sort != ByValue
	over := func() bool { return size > most || seen > visits }
	pair := func(k []byte, record int) {
		switch {
		case room == 0:
			return
		case keys:
			size += len(k)
			seen += record / lookBytes
		default:
			size += len(k) + record
		}
		room--
	}
	from, to := s.space.versions(key, end)
	var done []byte
	want := func(k []byte, record int) bool {
		seen++
		escaped, at, ok := s.space.splitVersion(k)
		if !ok || at.main > rev || bytes.Equal(escaped, done) {
			return over()
		}
		done = append(done[:0], escaped...)
		if record <= longestTombstone { // it may be one
			return true
		}
		pair(k, record)
		return over()
	}
	err = kv.Sift(s.r, from, to, want, func(k, record []byte) bool {
		if len(record) <= longestTombstone && !isTombstone(record) {
			pair(k, len(record))
		}
		return !over()
	})
	if err == nil && over() {
		err = ErrTooMuch
	}
	return size, seen, err
}
