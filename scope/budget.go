package scope

import (
	"bytes"
	"math"
)

// The cost of executing a mutation is counted in units of about a microsecond of
// one processor. Every node executes every mutation, so each is declared before it
// is ordered: by its form, which allows a little for every operation
// (CheckedMutation.allowance), and by what its bundle reserves beyond that
// (Bundle.Reserve). A block declares no more than Limits.BlockCost altogether, and
// no mutation takes more than was declared for it, so that none can use up what
// another needs. Counts are 64 bits wide on all machines.
const (
	lookUnits    = 1       // a version of a key is looked at
	readBytes    = 4 << 10 // so many bytes of its record are read for a unit more,
	givenBytes   = 1 << 10 // or so many if the value is given to the client
	deleteUnits  = 8       // a key is deleted
	mutationUnit = 16      // a mutation, whatever it does
	opUnits      = 4       // an operation or a compare: what it takes to look at one key of a few KiB
)

// lookCost is the cost of a look at a version whose record has so many bytes.
func lookCost(bytes int) int64 { return lookUnits + int64(bytes)/readBytes }

// given is the cost of a look at a version that the client gets.
func given(bytes int) int64 { return lookUnits + int64(bytes)/givenBytes }

// deleted is the cost of the deletion of a key.
func deleted(bytes int) int64 { return deleteUnits + lookCost(bytes) }

// What mutations that are no transactions may cost by their form.
const (
	linesAUnit    = 8      // lines of the docket are looked at for a unit
	governUnits   = 2500   // the docket of open motions is looked through
	delegateUnits = 20_000 // on top: what would be handed over is looked at
	withdrawUnits = 1000   // a motion of any size is read
	accessUnits   = maxAccess / givenBytes
)

// allowance is what a mutation may cost by its form.
func (m *CheckedMutation) allowance() int64 {
	n := mutationUnit + grantUnits*int64(len(m.grants))
	if m.Txn != nil {
		n += opUnits * m.Txn.count()
	}
	switch {
	case m.Decision != nil:
		n += governUnits
		if m.Decision.Child != nil {
			n += delegateUnits
		}
	case m.Lease != nil:
		n += lookUnits * int64(len(m.Lease.IDs))
	case m.Access != nil:
		n += accessUnits
	case m.Class == Withdraw:
		n += withdrawUnits
	case m.Rejoins != nil:
		n += m.Rejoins.cost()
	case m.Brings != nil:
		n += m.Brings.cost()
	case m.Carries != nil:
		n += m.Carries.cost()
	}
	return n
}

// plain is the part of the allowance that is for its bytes: each put, and the mutation
// itself.
func (m *CheckedMutation) plain() int64 {
	n := int64(mutationUnit)
	if m.Txn != nil {
		n += opUnits * m.Txn.puts()
	}
	return n
}

// puts is how many operations only put.
func (t *Txn) puts() (n int64) {
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			if op := &branch[i]; op.Txn != nil {
				n += op.Txn.puts()
			} else if op.Kind == OpPut && !op.Prev {
				n++
			}
		}
	}
	return n
}

// count is how many compares and operations there are, those of inner transactions included.
func (t *Txn) count() int64 {
	n := int64(len(t.Compare) + len(t.Success) + len(t.Failure))
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			if branch[i].Txn != nil {
				n += branch[i].Txn.count()
			}
		}
	}
	return n
}

// purse is what may still be spent on a mutation: what its form allows, and then
// what its bundle reserves.
type purse struct {
	allowed, reserve int64
	empty            bool // more was asked for
}

func (p *purse) take(units int64) bool {
	p.allowed -= units
	if p.allowed < 0 {
		p.reserve += p.allowed
		p.allowed = 0
	}
	if p.reserve < 0 {
		p.reserve, p.empty = 0, true
	}
	return !p.empty
}

// spend charges a mutation for work, before it is done.
func (x *execution) spend(units int64) (failure error) {
	if !x.purse.take(units) {
		return ErrTooMuch
	}
	return nil
}

// givenMost bounds the bytes of keys and values that a mutation holds in memory at once: those of its responses, and of
// the ranges that it compares. The same key counts each time that it is asked for.
const givenMost = 256 << 20

// giving wraps a price so that it also counts the bytes held in memory.
func (x *execution) giving(price func(bytes int) int64) func(bytes int) int64 {
	return func(bytes int) int64 {
		x.gives += int64(bytes)
		return price(bytes)
	}
}

// tooLarge reports that a mutation would hold more than givenMost.
func (x *execution) tooLarge() (failure error) {
	if x.gives > x.bounds.GivenMost {
		return ErrTooMuch
	}
	return nil
}

// afford charges a mutation for looking at the versions of the keys [key, end), old
// ones included, before it does; price is the cost of one as of a revision that is
// there, by its bytes.
func (x *execution) afford(key, end []byte, rev int64, price func(bytes int) int64) (failure, err error) {
	if len(end) == 0 {
		v, ok, err := x.asOf(key, rev)
		if !ok {
			return x.spend(lookUnits), err
		}
		return x.spend(price(len(key) + len(v.Value))), err
	}
	from, to := x.space.versions(key, end)
	var done []byte // escaped key whose version was found
	err = x.r.Scan(from, to, false, func(k, record []byte) bool {
		cost := lookCost(len(k) + len(record))
		escaped, at, ok := x.space.splitVersion(k)
		if ok && at.main <= rev && !bytes.Equal(escaped, done) {
			done = append(done[:0], escaped...)
			if !isTombstone(record) {
				cost = price(len(k) + len(record))
			}
		}
		failure = x.spend(cost)
		return failure == nil
	})
	return failure, err
}

// asOf is the version of a key as of a revision, and whether it has one.
func (v *view) asOf(key []byte, rev int64) (KeyValue, bool, error) {
	if rev == math.MaxInt64 {
		return v.newest(key)
	}
	return v.before(key, rev)
}
