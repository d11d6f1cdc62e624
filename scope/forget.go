package scope

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
)

// known reports whether a mutation is on record.
func (x *execution) known(id aweigh.Hash) (bool, error) {
	if x.recorded[id] {
		return true, nil
	}
	_, ok, err := x.next.r.Get(x.space.at(atReceipt, id[:]...))
	return ok, err
}

// remember puts a mutation on record until it is void.
func (x *execution) remember(m *CheckedMutation, out *Outcome) {
	c := Receipt{
		Code: out.Code, Succeeded: out.Succeeded, Height: x.block.Header.Height,
		Index: uint32(len(x.result.Outcomes)), Revision: out.Revision, Reason: out.Reason,
	}
	k, record := x.space.at(atReceipt, m.ID[:]...), c.record()
	x.ops = append(x.ops, kv.Set(k, record))
	x.addElement(k, record)
	x.recorded[m.ID] = true
	x.expiries.add(minute(m.ValidUntil), m.ID)
}

// minute is the minute in which an instant lies.
func minute(t aweigh.Instant) uint64 { return uint64(t) / uint64(time.Minute) }

// expiries are the mutations that a block records, by the minute in which they
// become void: few minutes, many mutations.
type expiries []expiry

type expiry struct {
	minute uint64
	ids    []byte
}

func (e *expiries) add(minute uint64, id aweigh.Hash) {
	at, ok := slices.BinarySearchFunc(*e, minute, func(e expiry, m uint64) int {
		switch {
		case e.minute < m:
			return -1
		case e.minute > m:
			return 1
		}
		return 0
	})
	if !ok {
		*e = slices.Insert(*e, at, expiry{minute: minute})
	}
	(*e)[at].ids = append((*e)[at].ids, id[:]...)
}

func (e expiries) ops(s *space, h aweigh.Height) []kv.Op {
	ops := make([]kv.Op, len(e))
	for i := range e {
		ops[i] = kv.Set(s.expiry(e[i].minute, h), e[i].ids)
	}
	return ops
}

// forget drops the receipts of mutations that are void at the block's time,
// oldest first, list by list until at least due of them are gone. Those that
// were written by one block with one minute make one list.
func (x *execution) forget(due int) error {
	var lists []kv.Op
	to := x.space.at(atExpiry, binary.BigEndian.AppendUint64(nil, minute(x.block.Header.Time))...)
	err := x.next.r.Scan(x.space.at(atExpiry), to, false, func(k, ids []byte) bool {
		lists = append(lists, kv.Set(slices.Clone(k), slices.Clone(ids)))
		due -= len(ids) / len(aweigh.Hash{})
		return due > 0
	})
	if err != nil {
		return err
	}
	for _, list := range lists {
		for id := range slices.Chunk(list.Value, len(aweigh.Hash{})) {
			k := x.space.at(atReceipt, id...)
			record, ok, err := x.next.r.Get(k)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("%w: no receipt of mutation %x", ErrCorrupt, id)
			}
			x.removeElement(k, record)
			x.ops = append(x.ops, kv.Del(k))
		}
		x.ops = append(x.ops, kv.Del(list.Key))
	}
	return nil
}
