package model

import (
	"math"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// purse is what a mutation may still cost: what its form allows, and then what its bundle reserves.
type purse struct {
	allowed, reserve int64
	empty            bool // more was asked for
	gives            int64
}

// spend charges a mutation for work.
func (m *Model) spend(units int64) error {
	p := &m.block.purse
	fromForm := min(p.allowed, units)
	p.allowed -= fromForm
	if p.reserve -= units - fromForm; p.reserve < 0 {
		p.reserve, p.empty = 0, true
	}
	if p.empty {
		return scope.ErrTooMuch
	}
	return nil
}

// Costs of a look at a version of so many bytes, and at one that is given to the client.
func lookCost(bytes int) int64 { return 1 + int64(bytes)/4096 }
func given(bytes int) int64    { return 1 + int64(bytes)/1024 }

// form is what a mutation may cost by its form. That of a decision is not reckoned.
func form(mut *scope.CheckedMutation) int64 {
	units := 16 + 64*int64(len(mut.Grants))
	switch {
	case mut.Txn != nil:
		units += 4 * statements(mut.Txn)
	case mut.Lease != nil:
		units += int64(len(mut.Lease.IDs))
	case mut.Access != nil:
		units += 1024
	case mut.Class == scope.Withdraw:
		units += 1000
	case mut.Class == scope.Rejoin:
		units += islandsUnits
		for _, g := range groups(mut) {
			units += g.cost()
		}
	case mut.Class == scope.Bring:
		units += bringCost(mut)
	case mut.Class == scope.Carry:
		units += carryCost(mut) + given(len(mut.Content))
	}
	return units
}

// statements counts the compares and operations of a transaction and of those within.
func statements(t *scope.Txn) int64 {
	n := int64(len(t.Compare))
	for _, op := range append(t.Success[:len(t.Success):len(t.Success)], t.Failure...) {
		if n++; op.Txn != nil {
			n += statements(op.Txn)
		}
	}
	return n
}

// look is a look at the keys of an operation or a compare.
type look struct {
	key, end []byte
	revision int64 // as of which
	price    func(bytes int) int64
	gives    bool // what is found is held in memory
}

// lookOf is how an operation looks at its keys; ok is false for one that does not.
func lookOf(op *scope.Op) (l look, ok bool) {
	l = look{key: op.Key, end: op.End, revision: math.MaxInt64, price: given, gives: true}
	switch op.Kind {
	case scope.OpRange:
		if r := op.Range; r != nil {
			if r.Revision > 0 {
				l.revision = r.Revision
			}
			if r.KeysOnly || r.CountOnly {
				l.price, l.gives = lookCost, false
			}
		}
		return l, true
	case scope.OpMerge:
		l.price, l.gives = lookCost, false
		return l, true
	case scope.OpPut:
		return l, op.Prev
	case scope.OpDelete:
		if l.gives = op.Prev; op.Prev {
			l.price = func(bytes int) int64 { return 8 + given(bytes) }
		} else {
			l.price = func(bytes int) int64 { return 8 + lookCost(bytes) }
		}
		return l, true
	}
	return l, false
}

// pay charges a mutation for a look: at one key, or at all stored versions of the keys of a range.
func (m *Model) pay(l look) error {
	p := &m.block.purse
	found := func(bytes int) int64 {
		if l.gives {
			p.gives += int64(bytes)
		}
		return l.price(bytes)
	}
	var failure error
	if len(l.end) == 0 {
		failure = m.spend(m.priceOne(l, found))
	} else {
		for _, key := range m.stored.within(l.key, l.end) {
			if failure = m.payVersions(m.stored.of[key], l.revision, found); failure != nil {
				break
			}
		}
	}
	if failure == nil && p.gives > m.bounds.GivenMost {
		failure = scope.ErrTooMuch
	}
	return failure
}

func (m *Model) priceOne(l look, found func(int) int64) int64 {
	if v := newestUntil(m.stored.of[string(l.key)], l.revision); v != nil && v.lives {
		return found(v.content)
	}
	return 1
}

// payVersions charges for the versions of one key, the newest first.
func (m *Model) payVersions(all []version, revision int64, found func(int) int64) error {
	is := newestUntil(all, revision)
	for i := len(all) - 1; i >= 0; i-- {
		v := &all[i]
		units := lookCost(v.size + spaceBytes)
		if v == is && v.lives {
			units = found(v.size + spaceBytes)
		}
		if failure := m.spend(units); failure != nil {
			return failure
		}
	}
	return nil
}

// steps is what asking about a verb costs. How many steps a predicate may take is taken from package action.
func (m *Model) steps(verb string) int64 {
	return int64(action.Prepare(m.block.policy.Actions).Cost(verb)) / 100
}
