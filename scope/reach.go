package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// ErrReach means that a put names an object which has an alias outside of its transaction's Reach.
var ErrReach = errors.New("scope: the object has an alias outside of the keys that the transaction may change")

// MaxReach bounds the ranges of one transaction's Reach. One of more operations may have as many ranges as operations.
const MaxReach = 64

// checkReach reports whether the reach of a transaction is well-formed, so that one meaning has one encoding: ranges
// that are not empty, in order, with keys between each two; and every put, whichever branch it is in, lies within.
// ops is how many operations the transaction has.
func (t *Txn) checkReach(ops int) error {
	if len(t.Reach) == 0 {
		return nil
	}
	if most := max(MaxReach, ops); len(t.Reach) > most {
		return fmt.Errorf("a reach of %d ranges, at most %d are taken", len(t.Reach), most)
	}
	for i := range t.Reach {
		r := &t.Reach[i]
		if len(r.Key) == 0 || len(r.End) == 0 || !ToEnd(r.End) && bytes.Compare(r.Key, r.End) >= 0 {
			return errors.New("a range of a reach without keys")
		}
		if i > 0 && (ToEnd(t.Reach[i-1].End) || bytes.Compare(t.Reach[i-1].End, r.Key) >= 0) {
			return errors.New("the ranges of a reach overlap, touch, or are not in order")
		}
	}
	return t.putsWithin(t.Reach)
}

// putsWithin reports whether all puts of a transaction are of keys within a reach.
func (t *Txn) putsWithin(all []Reach) error {
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			op := &branch[i]
			if op.Kind == OpTxn {
				if err := op.Txn.putsWithin(all); err != nil {
					return err
				}
			}
			if op.Kind == OpPut && !reaches(all, op.Key) {
				return fmt.Errorf("a put of %q, outside of the transaction's reach", op.Key)
			}
		}
	}
	return nil
}

// reaches reports whether a key lies in one of some ranges in order.
func reaches(all []Reach, key []byte) bool {
	i, ok := slices.BinarySearchFunc(all, key, func(r Reach, key []byte) int { return bytes.Compare(r.Key, key) })
	if !ok {
		i--
	}
	return i >= 0 && Within(key, all[i].Key, all[i].End)
}

// reachesAll reports whether all aliases of an object lie within the reach of a transaction, if it has one.
func (t *Txn) reachesAll(list *aliases) bool {
	return len(t.Reach) == 0 || !slices.ContainsFunc(list.Held, func(h held) bool { return !reaches(t.Reach, h.Key) })
}
