package scope

import (
	"slices"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// compact closes the revisions below rev to readers at once. Their content goes
// bit by bit, in collect.
func (x *execution) compact(rev int64) (failure error) {
	head := &x.next.head
	switch {
	case rev <= head.Compacted:
		return ErrCompacted
	case rev > head.Revision:
		return ErrFutureRevision
	}
	// The changes of the revision compacted to before stayed, to be watched;
	// now they are to be looked at again.
	if again := first(head.Compacted); again.before(x.next.cursor) && head.Compacted > 0 {
		x.next.cursor = again
	}
	head.Compacted = rev
	x.enter(lineage.Entry{Class: lineage.Compact})
	return nil
}

// collectBytes is the number of bytes of compacted versions that a block removes, up to one change more. It is twice
// what the bundles of a block hold at most, so that the work does not pile up where aliases do not multiply it.
const collectBytes = 2 * mostBlockBytes

// collect removes content that no reader can reach any more: it takes the next
// due changes up to the revision compacted to, in their order, or fewer if their content is large, and for each
// removes the versions of its key that it replaced; the version itself if it
// marks a deletion; and the change. The changes of the very revision compacted
// to stay, as they do in etcd: it can be read, and watched from.
func (x *execution) collect(due int) error {
	s := &x.next
	if s.cursor.main > s.head.Compacted {
		return nil
	}
	var changes []change
	var runs []revision // that end with one of them
	err := s.changes(s.cursor, func(c change, ends bool) bool {
		if c.at.main > s.head.Compacted {
			return false
		}
		changes = append(changes, change{c.at, slices.Clone(c.key)})
		if ends && c.at.main < s.head.Compacted {
			runs = append(runs, c.at)
		}
		return len(changes) < due
	})
	if err != nil {
		return err
	}
	s.cursor = first(s.head.Compacted + 1)
	before := s.head.Bytes
	for i, c := range changes {
		if err := x.drop(c.key, c.at, c.at.main < s.head.Compacted); err != nil {
			return err
		}
		if i+1 == due || before-s.head.Bytes >= s.bounds.CollectBytes {
			s.cursor = c.at.next()
			break
		}
	}
	for _, at := range runs {
		if at.before(s.cursor) {
			x.ops = append(x.ops, kv.Del(x.space.change(at)))
		}
	}
	return nil
}

// drop removes the versions of a key that its change at a place replaced. If the
// change itself goes, so do versions of the same transaction before it, and the
// one at the place if it marks a deletion.
func (x *execution) drop(key []byte, at revision, gone bool) error {
	newest := at
	if !gone {
		newest = last(at.main - 1)
	}
	var drops []kv.Op
	from, to := x.space.version(key, newest), x.space.appendKey(nil, key, escapeEnd+1)
	err := x.r.Scan(from, to, false, func(k, record []byte) bool {
		if _, rev, _ := x.space.splitVersion(k); rev != at || isTombstone(record) {
			x.removeElement(k, record)
			x.next.head.Bytes -= recordBytes(k, record)
			drops = append(drops, kv.Del(slices.Clone(k)))
		}
		return true
	})
	x.versions.Apply(drops...)
	return err
}
