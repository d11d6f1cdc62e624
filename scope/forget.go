package scope

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// receipt is one that is on record.
func (x *execution) receipt(id aweigh.Hash) (Receipt, bool, error) {
	if c, ok := x.recorded[id]; ok {
		return c, true, nil
	}
	return x.next.Outcome(id)
}

// remember puts a receipt on record until its mutation is void.
func (x *execution) remember(id aweigh.Hash, until aweigh.Instant, c Receipt) {
	record := c.record()
	x.ops = append(x.ops, kv.Set(x.space.at(atReceipt, id[:]...), record))
	x.recorded[id] = c
	x.expiries.add(minute(until), id, record)
}

// minute is the minute in which an instant lies.
func minute(t aweigh.Instant) uint64 { return uint64(t) / uint64(time.Minute) }

// expiries are the mutations that a block records, by the minute in which they
// become void: few minutes, many mutations. All of one list go together, so they
// count as one element of the state's digest.
type expiries []expiry

type expiry struct {
	minute   uint64
	ids      []byte
	receipts []byte // what the element is made of
}

func (e *expiries) add(minute uint64, id aweigh.Hash, receipt []byte) {
	at, ok := slices.BinarySearchFunc(*e, minute, func(e expiry, m uint64) int { return cmp.Compare(e.minute, m) })
	if !ok {
		*e = slices.Insert(*e, at, expiry{minute: minute})
	}
	list := &(*e)[at]
	list.ids = append(list.ids, id[:]...)
	list.receipts = appendReceipt(list.receipts, id[:], receipt)
}

// appendReceipt appends what the element of a list holds of one mutation.
func appendReceipt(b, id, receipt []byte) []byte {
	return append(binary.AppendUvarint(append(b, id...), uint64(len(receipt))), receipt...)
}

// expire writes the lists.
func (x *execution) expire() {
	for i := range x.expiries {
		e := &x.expiries[i]
		k := x.space.expiry(e.minute, x.block.Header.Height)
		x.ops = append(x.ops, kv.Set(k, e.ids))
		x.addElement(k, e.receipts)
	}
}

// forget drops the receipts of mutations that are void at the block's time,
// oldest first, list by list until at least due of them are gone. Those that
// were written by one block with one minute make one list.
func (x *execution) forget(due int) error {
	now := minute(x.block.Header.Time)
	if x.next.head.Swept == now { // what this block adds is not void yet
		return nil
	}
	var lists []kv.Op
	to := x.space.at(atExpiry, binary.BigEndian.AppendUint64(nil, now)...)
	err := x.next.r.Scan(x.space.at(atExpiry), to, false, func(k, ids []byte) bool {
		lists = append(lists, kv.Set(slices.Clone(k), slices.Clone(ids)))
		due -= len(ids) / len(aweigh.Hash{})
		return due > 0
	})
	if err != nil {
		return err
	}
	if due > 0 {
		x.next.head.Swept = now
	}
	for _, list := range lists {
		var receipts []byte
		for id := range slices.Chunk(list.Value, len(aweigh.Hash{})) {
			k := x.space.at(atReceipt, id...)
			record, ok, err := x.next.r.Get(k)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("%w: no receipt of mutation %x", ErrCorrupt, id)
			}
			receipts = appendReceipt(receipts, id, record)
			x.ops = append(x.ops, kv.Del(k))
		}
		x.removeElement(list.Key, receipts)
		x.ops = append(x.ops, kv.Del(list.Key))
	}
	return nil
}
