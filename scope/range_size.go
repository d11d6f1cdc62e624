package scope

import (
	"bytes"
	"math"
)

// RangeSize is how many bytes the records have that Range loads for an answer about the keys [key, end), in the sense
// of Op, and how many versions have to be looked at for that. Records that are only counted, or of which the answer has
// the keys alone, are a tenth. It stops with ErrTooMuch where either exceeds its bound.
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
	from, to := s.space.versions(key, end)
	var done []byte
	err = s.r.Scan(from, to, false, func(k, record []byte) bool {
		escaped, at, ok := s.space.splitVersion(k)
		if seen++; ok && at.main <= rev && !bytes.Equal(escaped, done) {
			done = append(done[:0], escaped...)
			if room--; room >= 0 && !keys {
				size += len(k) + len(record)
			} else {
				size += len(k) + len(record)/10
			}
		}
		return size <= most && seen <= visits
	})
	if err == nil && (size > most || seen > visits) {
		err = ErrTooMuch
	}
	return size, seen, err
}
