package scope

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// deletedKey is the newest version of a key that is about to be deleted, without its value:
// a deletion of many keys does not hold what they contained.
type deletedKey struct {
	KeyValue
	digest aweigh.Hash
	size   int64 // as KeyValue.size says of the version with its value
}

// longRecord is from how many bytes on it is cheaper to read the digest of a version
// from the lineage than to hash the version.
const longRecord = 16 << 10

// keysToDelete finds the keys that a deletion of [key, end) takes away, in order.
func (x *execution) keysToDelete(key, end []byte) (gone []deletedKey, err error) {
	if len(end) == 0 {
		v, ok, err := x.newest(key)
		if err != nil || !ok {
			return nil, err
		}
		return []deletedKey{{v, v.Digest(), v.size()}}, nil
	}
	err = x.each(key, end, math.MaxInt64, nil, func(k, record []byte) error {
		escaped, at, _ := x.space.splitVersion(k)
		d := deletedKey{KeyValue: KeyValue{ModRevision: at.main, Sub: at.sub}}
		if err := d.readRecord(record); err != nil {
			return err
		}
		d.Key = bytes.Clone(keyOf(escaped))
		d.size = d.KeyValue.size()
		d.Value = nil
		if d.digest, err = x.digestOf(k, record, &d.KeyValue); err != nil {
			return err
		}
		gone = append(gone, d)
		return nil
	})
	x.entries = slices.Grow(x.entries, len(gone))
	x.changed = slices.Grow(x.changed, len(gone))
	return gone, err
}

// digestOf is the digest of a version in the store: it is in the version's entry,
// unless this block made the entry, or this node took the state without it.
func (x *execution) digestOf(k, record []byte, v *KeyValue) (h aweigh.Hash, err error) {
	if len(record) >= x.bounds.LongRecord {
		e, ok, err := x.log.Entry(v.Entry)
		if err != nil {
			return h, err
		}
		if ok && e.Object == v.UID && e.Class.Shows() {
			return e.Posterior, nil
		}
	}
	h, x.scratch = element(x.scratch, k, record)
	return h, nil
}

// erase deletes a key.
func (x *execution) erase(d *deletedKey, why string) error {
	if err := x.unattach(&d.KeyValue, d.size); err != nil {
		return err
	}
	return x.retireAs(&d.KeyValue, d.digest, lineage.Delete, lineage.AliasUnbind, why)
}

// values are the newest versions of the keys [key, end), of which there are so many.
func (x *execution) values(key, end []byte, n int) ([]KeyValue, error) {
	if n == 0 {
		return nil, nil
	}
	if len(end) == 0 {
		v, ok, err := x.newest(key)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q was there", ErrCorrupt, key)
		}
		return []KeyValue{v}, err
	}
	res, err := x.rangeOf(key, end, Range{}, 0)
	return res.Kvs, err
}
