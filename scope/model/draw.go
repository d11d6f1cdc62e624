package model

import (
	"bytes"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Drawing draws contents of mutations that conflict with each other: they are about few keys and leases, and their
// compares and reads are about what is there, or nearly.
type Drawing struct {
	Pick   func(n int) int // a number below n
	View   *View           // after some block
	Keys   [][]byte        // in order
	Other  []byte          // now and then an operation is about this key; nil: never
	Leases []int64
	Policy *scope.Policy

	touched [][]byte // by the transaction that is being drawn
}

func (d *Drawing) one(in int) bool { return d.Pick(in) == 0 }

func (d *Drawing) key() []byte {
	if d.Other != nil && d.one(60) {
		return d.Other
	}
	return d.Keys[d.Pick(len(d.Keys))]
}

// keys is one key mostly, or a range of them.
func (d *Drawing) keys(in int) (key, end []byte) {
	if key = d.key(); !d.one(in) {
		return key, nil
	}
	first, last := d.Keys[0], d.Keys[len(d.Keys)-1]
	switch end = d.key(); {
	case d.one(3):
		return first, append(bytes.Clone(last), 0)
	case d.Other != nil && bytes.Equal(key, d.Other) != bytes.Equal(end, d.Other): // keys of others lie in between
		return key, nil
	case bytes.Compare(key, end) > 0:
		return end, key
	}
	return key, end
}

// revision is one that was, or the next.
func (d *Drawing) revision() int64 {
	n := d.Pick(len(d.View.model.revisions) + 2)
	if n == 0 {
		return d.View.Revision + 1
	}
	return d.View.model.revisions[min(n, len(d.View.model.revisions))-1].number
}

func (d *Drawing) value() []byte {
	return []byte([]string{"", "1", "2", "\x00", "long enough"}[d.Pick(5)])
}

// Txn is a transaction that is well-formed by some limits.
func (d *Drawing) Txn(lim scope.Limits) scope.Txn {
	if t := d.merge(); d.one(12) && t.Check(lim) == nil {
		return t
	}
	for range 8 {
		d.touched = nil
		if t := d.txn(0); t.Check(lim) == nil {
			return t
		}
	}
	return scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: d.key(), Value: d.value()}}}
}

// merge is one of two keys, on the condition that they are as they are, or nearly.
func (d *Drawing) merge() scope.Txn {
	now := d.View.model.asOf(d.View.Revision)
	from, to := d.key(), d.key()
	all := slices.DeleteFunc(slices.Clone(d.Keys), func(key []byte) bool { _, there := now[string(key)]; return !there })
	if len(all) > 1 {
		from, to = all[d.Pick(len(all))], all[d.Pick(len(all))]
	}
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpMerge, Key: from}, {Kind: scope.OpPut, Key: to, Value: d.value()}}}
	for _, key := range [][]byte{from, to} {
		t.Compare = append(t.Compare, scope.Compare{
			Target: scope.OnMod, Relation: scope.Equal, Key: key, Number: now[string(key)].ModRevision + int64(d.Pick(8)/7),
		})
	}
	return t
}

func (d *Drawing) txn(depth int) (t scope.Txn) {
	for range d.Pick(3) {
		t.Compare = append(t.Compare, d.compare())
	}
	for range d.Pick(5) {
		t.Success = append(t.Success, d.op(depth))
	}
	for range d.Pick(3) {
		t.Failure = append(t.Failure, d.op(depth))
	}
	if depth == 0 && d.one(8) {
		t.Reach = d.reach()
	}
	return t
}

// compare is about what is under a key now, or what is next to that.
func (d *Drawing) compare() scope.Compare {
	c := scope.Compare{Target: scope.Target(1 + d.Pick(int(scope.OnLease))), Relation: scope.Relation(1 + d.Pick(int(scope.NotEqual)))}
	if c.Key, c.End = d.keys(4); len(d.touched) > 0 && d.one(2) { // which makes no difference: compares look at what was before
		c.Key, c.End, c.Relation = d.touched[d.Pick(len(d.touched))], nil, scope.Equal
	}
	is := d.View.model.asOf(d.View.Revision)[string(c.Key)]
	switch c.Target {
	case scope.OnVersion:
		c.Number = is.Version
	case scope.OnCreate:
		c.Number = is.CreateRevision
	case scope.OnMod:
		c.Number = is.ModRevision
	case scope.OnLease:
		c.Number = is.Lease
	case scope.OnValue:
		if c.Value = is.Value; d.one(2) {
			c.Value = d.value()
		}
		return c
	}
	c.Number += int64(d.Pick(3) - 1)
	return c
}

func (d *Drawing) op(depth int) scope.Op {
	most := 15
	if depth > 1 {
		most = 12
	}
	switch n := d.Pick(most); {
	case n < 6:
		op := scope.Op{Kind: scope.OpPut, Key: d.key(), Prev: d.one(2)}
		d.touched = append(d.touched, op.Key)
		switch d.Pick(10) {
		case 0:
			op.IgnoreValue = true
		case 1:
			op.IgnoreLease, op.Value = true, d.value()
			if all := d.leased(); len(all) > 0 {
				op.Key = all[d.Pick(len(all))]
			}
		case 2, 3, 4:
			op.Lease, op.Value = d.lease(), d.value()
		default:
			op.Value = d.value()
		}
		return op
	case n < 9:
		op := scope.Op{Kind: scope.OpDelete, Prev: d.one(2)}
		op.Key, op.End = d.keys(2)
		return op
	case n < 12:
		op := scope.Op{Kind: scope.OpRange}
		op.Key, op.End = d.keys(2)
		if r := d.reading(); r != (scope.Range{}) {
			op.Range = &r
		}
		return op
	}
	inner := d.txn(depth + 1)
	return scope.Op{Kind: scope.OpTxn, Txn: &inner}
}

// leased are the keys that have a lease.
func (d *Drawing) leased() (all [][]byte) {
	now := d.View.model.asOf(d.View.Revision)
	for _, key := range d.Keys {
		if now[string(key)].Lease != 0 {
			all = append(all, key)
		}
	}
	return all
}

// reading draws a Range: as of some revision, so many, in some order, within bounds.
func (d *Drawing) reading() scope.Range {
	r := scope.Range{
		Limit: int64(d.Pick(5)), Sort: scope.SortBy(d.Pick(int(scope.ByValue) + 1)), Order: scope.Order(d.Pick(int(scope.Descending) + 1)),
		KeysOnly: d.one(4), CountOnly: d.one(5),
	}
	switch d.Pick(6) {
	case 0:
		r.MinMod = d.revision()
	case 1:
		r.MaxMod = d.revision()
	case 2:
		r.MinCreate, r.MaxCreate = d.revision(), d.revision()
	}
	if d.one(3) {
		r.Revision = d.revision()
	}
	return r
}

func (d *Drawing) lease() int64 { return d.Leases[d.Pick(len(d.Leases))] }

// Lease is a request for leases, that is asked for about now.
func (d *Drawing) Lease() scope.LeaseRequest {
	r := scope.LeaseRequest{Kind: scope.LeaseKind([]int{1, 1, 2, 3}[d.Pick(4)]), IDs: []int64{d.lease()}}
	if r.Kind == scope.LeaseGrant {
		r.TTL = []int64{-1, 1, 3, 10, 1000}[d.Pick(5)]
	}
	if r.Kind == scope.LeaseKeepAlive && d.one(2) {
		r.IDs = d.Leases
	}
	if r.Kind != scope.LeaseRevoke {
		r.Asked = max(0, d.View.Time.Add(time.Duration(d.Pick(19)-9)*time.Second))
	}
	return r
}

// compaction is one up to a revision: every other time, one that may be the newest when it is executed.
func (d *Drawing) compaction() scope.Compaction {
	if d.one(2) {
		return scope.Compaction{Revision: d.View.Revision + int64(d.Pick(4))}
	}
	return scope.Compaction{Revision: d.revision()}
}

// Naming is one of what is there, or nearly: some are refused.
func (d *Drawing) Naming() scope.Naming {
	n := scope.Naming{Kind: scope.NameKind(1 + d.Pick(int(scope.Send))), Key: d.key()}
	v := d.version(n.Key)
	if n.Kind == scope.Send {
		return d.sending(n, v)
	}
	if n.Kind > scope.Unbind || !d.one(2) {
		n.Object = v.UID
	}
	if n.Kind == scope.Bind || n.Kind == scope.Move || n.Kind == scope.Fork {
		if n.To = d.key(); bytes.Equal(n.To, n.Key) {
			n.To = append(bytes.Clone(n.To), 0)
		}
	}
	if n.Kind == scope.Move && d.one(2) {
		n.Until = d.View.Time.Add(time.Duration(d.Pick(9)) * time.Second)
	}
	if n.Kind == scope.Fork || n.Kind == scope.Rollback {
		if n.From, n.Revision, n.Sub = v.Key, v.ModRevision, v.Sub; n.Object.IsZero() {
			return scope.Naming{Kind: scope.Unbind, Key: n.Key}
		}
	}
	if n.Kind == scope.Fork {
		n.Key = nil
	}
	return n
}

// sending sends what a key names to another scope, if that can be: of other keys, by a name that is not of this scope.
func (d *Drawing) sending(n scope.Naming, v scope.KeyValue) scope.Naming {
	n.To, n.Until = d.Other, d.View.Time.Add(time.Duration(d.Pick(40)-2)*time.Second)
	if now := d.View.model.asOf(d.View.Revision); v.Lease != 0 { // most have one
		for _, key := range d.Keys {
			if is, there := now[string(key)]; there && is.Lease == 0 {
				n.Key, v = key, is
			}
		}
	}
	if n.To == nil || bytes.Equal(n.To, n.Key) || d.one(8) {
		n.To = append(bytes.Clone(n.Key), 1)
	}
	if n.Object = v.UID; n.Object.IsZero() || d.one(8) {
		n.Object = aweigh.UID{1}
	}
	return n
}

// version is one that some key has, or had: of the key itself as of now, every other time.
func (d *Drawing) version(key []byte) (v scope.KeyValue) {
	if v = d.View.model.asOf(d.View.Revision)[string(key)]; d.one(2) {
		return v
	}
	all := d.View.model.revisions
	if of := all[d.Pick(len(all))].events; len(of) > 0 {
		v = of[d.Pick(len(of))].kv
	}
	return v
}
