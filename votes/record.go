package votes

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// The record of a guard in the store: the letter g, the scope, the epoch and
// view (8 bytes each, big-endian) and the kind of a ballot, over the ballot's
// encoding. Views count from 1; under view 0 stand the guard's marks.
const (
	recordSpace = 'g'
	markFloor   = 0 // over the least view on record, 8 bytes
	markLost    = 1 // over the ballot that showed the loss
)

func recordPrefix(d Domain) []byte {
	k := append(make([]byte, 0, 1+len(d.Scope)+8+8+1), recordSpace)
	return binary.BigEndian.AppendUint64(append(k, d.Scope[:]...), uint64(d.Epoch))
}

// RecordsOf is the prefix of all records of guards in a scope. Without them, an anchor must never sign there again.
func RecordsOf(scope aweigh.ScopeID) []byte { return append([]byte{recordSpace}, scope[:]...) }

func recordKey(d Domain, v aweigh.View, kind byte) []byte {
	return append(binary.BigEndian.AppendUint64(recordPrefix(d), uint64(v)), kind)
}

func encodeView(v aweigh.View) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// load reads the record of the guard's epoch. The marks come first.
func (g *Guard) load(r kv.Reader) error {
	var bad error
	prefix := recordPrefix(g.domain)
	err := r.Scan(prefix, kv.PrefixEnd(prefix), false, func(key, value []byte) bool {
		bad = g.restore(key[len(prefix):], key, value)
		return bad == nil
	})
	if err != nil {
		return err
	}
	return bad
}

func (g *Guard) restore(place, key, value []byte) error {
	if len(place) != 9 {
		return fmt.Errorf("%w: key %x", ErrRecord, key)
	}
	view, kind := aweigh.View(binary.BigEndian.Uint64(place)), place[8]
	switch {
	case view == 0 && kind == markFloor && len(value) == 8:
		g.floor = aweigh.View(binary.BigEndian.Uint64(value))
	case view == 0 && kind == markLost:
		g.lost = true
	default:
		b, err := DecodeBallot(value)
		if err != nil {
			return fmt.Errorf("%w: view %d: %w", ErrRecord, view, err)
		}
		if !g.owns(&b, key) {
			return fmt.Errorf("%w: view %d: a ballot of anchor %s in %s", ErrRecord, view, b.Anchor.Short(), b.Domain)
		}
		if view >= g.floor {
			g.record = append(g.record, b)
		}
	}
	return nil
}
