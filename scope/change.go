package scope

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh/kv"
)

// change records that a key changed at a place in the order of all changes. The
// changes of a block are stored together, in runs: one pair for many.
type change struct {
	at  revision
	key []byte
}

// changesInRun bounds the changes stored as one pair.
const changesInRun = 128

// changeRuns is the ops that store a block's changes, at most so many in one pair. A run is, for each of them:
// the revision less that of the one before, the place within it, the length of
// the key, all as unsigned LEB128, and the key.
func (s *space) changeRuns(changes []change, most int) (ops []kv.Op) {
	for len(changes) > 0 {
		n := min(len(changes), most)
		var run []byte
		main := int64(0)
		for _, c := range changes[:n] {
			run = binary.AppendUvarint(run, uint64(c.at.main-main))
			run = binary.AppendUvarint(run, uint64(c.at.sub))
			run = binary.AppendUvarint(run, uint64(len(c.key)))
			run = append(run, c.key...)
			main = c.at.main
		}
		ops = append(ops, kv.Set(s.change(changes[n-1].at), run))
		changes = changes[n:]
	}
	return ops
}

// changes visits the changes from a place on, in their order, until visit returns
// false. ends marks the last change of a run. A key is valid until visit returns.
func (v *view) changes(from revision, visit func(c change, ends bool) bool) error {
	var bad error
	err := v.r.Scan(v.space.change(from), v.space.at(atChange+1), false, func(k, run []byte) bool {
		r := reader{data: run}
		main := int64(0)
		for len(r.data) > 0 {
			main += r.int64()
			sub, size := r.int64(), r.int64()
			c := change{revision{main, uint32(sub)}, r.bytes(int(size))}
			if r.bad {
				bad = fmt.Errorf("%w: a run of changes of %d bytes", ErrCorrupt, len(run))
				return false
			}
			if !c.at.before(from) && !visit(c, len(r.data) == 0) {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = bad
	}
	return err
}
