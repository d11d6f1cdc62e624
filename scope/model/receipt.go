package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// receipt is what is on record of a mutation, or of a bundle that exceeded what it declares.
type receipt struct {
	scope.Receipt
	forgotten aweigh.Height // by the block of this height; 0: by none
}

// list is the receipts of one block that become void in one minute: they are forgotten together.
type list struct {
	minute uint64
	height aweigh.Height
	ids    []aweigh.Hash
}

func minute(t aweigh.Instant) uint64 { return uint64(t) / uint64(time.Minute) }

// remember puts a receipt on record.
func (m *Model) remember(id aweigh.Hash, until aweigh.Instant, r scope.Receipt) {
	m.receipts[id] = &receipt{Receipt: r}
	at := list{minute: minute(until), height: r.Height}
	i, ok := slices.BinarySearchFunc(m.lists, at, func(a, b list) int {
		return cmp.Or(cmp.Compare(a.minute, b.minute), cmp.Compare(a.height, b.height))
	})
	if !ok {
		m.lists = slices.Insert(m.lists, i, at)
	}
	m.lists[i].ids = append(m.lists[i].ids, id)
}

// forget drops the lists of minutes that are over, the oldest first, until so many receipts are gone.
func (m *Model) forget(due int) {
	now := minute(m.block.Header.Time)
	for len(m.lists) > 0 && m.lists[0].minute < now && due > 0 {
		for _, id := range m.lists[0].ids {
			m.receipts[id].forgotten = m.view.Height
		}
		due -= len(m.lists[0].ids)
		m.lists = m.lists[1:]
	}
}

// receipt is what is on record of a mutation as of the view's block.
func (v *View) receipt(id aweigh.Hash) (scope.Receipt, bool) {
	r := v.model.receipts[id]
	if r == nil || r.Height > v.Height || r.forgotten != 0 && r.forgotten <= v.Height {
		return scope.Receipt{}, false
	}
	return r.Receipt, true
}
