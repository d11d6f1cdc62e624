package lineage

import (
	"fmt"
)

// Entry is the entry at an index, from 0, and whether the log has one there.
func (l *Log) Entry(index int64) (Entry, bool, error) {
	if index < 0 || index >= l.size {
		return Entry{}, false, nil
	}
	raw, err := l.entry(index)
	if err != nil {
		return Entry{}, false, fmt.Errorf("lineage: reading entry %d: %w", index, err)
	}
	e, err := DecodeEntry(raw)
	if err != nil {
		return Entry{}, false, fmt.Errorf("%w: entry %d: %w", ErrCorrupt, index, err)
	}
	return e, true, nil
}

// Chain visits an object's entries from the newest to the oldest, until visit
// returns false. It starts at last, which counts like Entry.Prev: the index
// plus one, 0 for an object without entries.
func (l *Log) Chain(last int64, visit func(index int64, e Entry) bool) error {
	for next := last; next != 0; {
		index := next - 1
		e, ok, err := l.Entry(index)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: entry %d of %d", ErrRange, index, l.size)
		}
		if e.Prev > index {
			return fmt.Errorf("%w: entry %d follows entry %d", ErrCorrupt, index, e.Prev-1)
		}
		if !visit(index, e) {
			return nil
		}
		next = e.Prev
	}
	return nil
}
