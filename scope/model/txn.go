package model

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// transact executes a transaction, or lets it wait for approval.
func (m *Model) transact(mut *scope.CheckedMutation, out *scope.Outcome) error {
	path, failure := m.allowed(mut)
	if failure != nil {
		return failure
	}
	asked, failure := m.askedFor(mut, m.flat(mut.Txn, path), path)
	if failure != nil {
		return failure
	}
	if asked != nil {
		return m.propose(mut, asked, path, out)
	}
	if mut.Patient {
		return scope.ErrPatient
	}
	rest := path
	out.Succeeded, out.Responses = path[0], m.run(mut.Txn, &rest)
	return nil
}

// allowed reports why a transaction cannot be executed, whether or not it takes approval, and which branches it
// takes.
func (m *Model) allowed(mut *scope.CheckedMutation) (path []bool, failure error) {
	if m.elsewhere(mut.Txn) {
		return nil, scope.ErrElsewhere
	}
	m.block.room, m.block.grows, m.block.reach = make(map[int64]volume), 0, mut.Txn.Reach
	if path, failure = m.plan(mut.Txn); failure != nil {
		return nil, failure
	}
	all := m.flat(mut.Txn, path)
	if m.crowded(all) {
		return nil, scope.ErrNoSpace
	}
	if failure := m.mayMerge(mut, path[0]); failure != nil {
		return nil, failure
	}
	return path, m.permitted(mut, all)
}

// mayMerge reports why an author may not merge what a transaction merges.
func (m *Model) mayMerge(mut *scope.CheckedMutation, yes bool) error {
	if mut.Txn == nil {
		return nil
	}
	for _, op := range branch(mut.Txn, yes) {
		if op.Kind == scope.OpMerge && !m.mayCopy(mut, op.Key) {
			return fmt.Errorf("%w, or to read it", m.denied(mut, ask{"alias", op.Key, nil}))
		}
	}
	return nil
}

// crowded reports whether the scope has no room for the puts of a transaction.
func (m *Model) crowded(all []change) bool {
	most := m.block.policy.Limits.ScopeBytes
	puts := slices.ContainsFunc(all, func(c change) bool { return !c.deletes })
	return most > 0 && puts && (m.full() || m.stored.bytes+m.block.grows > most)
}

// elsewhere reports whether another scope decides on some key of a transaction, whichever branch it takes.
func (m *Model) elsewhere(t *scope.Txn) bool {
	other := false
	t.Ranges(func(key, end []byte) bool {
		other = other || !m.owns(key, end)
		return true
	})
	return other
}

func (m *Model) owns(key, end []byte) bool {
	if !scope.Covers(m.genesis.Prefix(), key, end) {
		return false
	}
	none := len(end) > 0 && !scope.ToEnd(end) && string(key) >= string(end) // the range has no keys
	for _, d := range m.view.given {
		if !none && scope.Overlap(key, end, d.Prefix, scope.PrefixEnd(d.Prefix)) {
			return false
		}
	}
	return true
}

// plan evaluates all compares before anything is done, as etcd's compareToPath: which branch each transaction takes, an
// inner one after the one that it is in. Whatever can fail fails here, as in its checkTxn.
func (m *Model) plan(t *scope.Txn) (path []bool, failure error) {
	path = []bool{true}
	for i := range t.Compare {
		if path[0], failure = m.holds(&t.Compare[i]); failure != nil {
			return path, failure
		}
		if !path[0] {
			break
		}
	}
	ops := branch(t, path[0])
	for i := range ops {
		op := &ops[i]
		if l, looks := lookOf(op); looks && failure == nil {
			failure = m.pay(l)
		}
		var why error
		switch {
		case op.Kind == scope.OpTxn:
			var inner []bool
			inner, why = m.plan(op.Txn)
			path = append(path, inner...)
		case op.Kind == scope.OpRange && op.Range != nil:
			if why = m.readable(op.Range.Revision); op.Range.Revision > 0 && m.view.wasElsewhere(op.Key, op.End, op.Range.Revision) {
				why = cmp.Or(why, scope.ErrCompacted)
			}
		case (op.Kind == scope.OpPut || op.Kind == scope.OpDelete) && failure == nil && m.departs(op.Key, op.End, op.Kind == scope.OpDelete):
			why = scope.ErrSent
		case op.Kind == scope.OpPut && failure == nil:
			why = m.checkPut(op)
		}
		failure = cmp.Or(failure, why)
	}
	return path, failure
}

// take is the branch of the next transaction of a path.
func take(t *scope.Txn, path *[]bool) []scope.Op {
	yes := (*path)[0]
	*path = (*path)[1:]
	return branch(t, yes)
}

func branch(t *scope.Txn, yes bool) []scope.Op {
	if yes {
		return t.Success
	}
	return t.Failure
}

// holds follows etcd's applyCompare.
func (m *Model) holds(c *scope.Compare) (bool, error) {
	kvs := pairs(m.keys(), c.Key, c.End)
	if len(c.End) > 0 {
		if failure := m.pay(look{key: c.Key, end: c.End, revision: math.MaxInt64, price: lookCost, gives: true}); failure != nil {
			return false, failure
		}
	} else {
		size := len(c.Key)
		if len(kvs) > 0 {
			size += len(kvs[0].Value)
		}
		if failure := m.spend(lookCost(size)); failure != nil {
			return false, failure
		}
	}
	if len(kvs) == 0 {
		return c.Target != scope.OnValue && holdsOf(c, &scope.KeyValue{}), nil
	}
	for i := range kvs {
		if !holdsOf(c, &kvs[i]) {
			return false, nil
		}
	}
	return true, nil
}

func holdsOf(c *scope.Compare, v *scope.KeyValue) bool {
	n := map[scope.Target]int{
		scope.OnVersion: cmp.Compare(v.Version, c.Number),
		scope.OnCreate:  cmp.Compare(v.CreateRevision, c.Number),
		scope.OnMod:     cmp.Compare(v.ModRevision, c.Number),
		scope.OnLease:   cmp.Compare(v.Lease, c.Number),
		scope.OnValue:   bytes.Compare(v.Value, c.Value),
	}[c.Target]
	return map[scope.Relation]bool{scope.Equal: n == 0, scope.NotEqual: n != 0, scope.Greater: n > 0, scope.Less: n < 0}[c.Relation]
}

// readable reports why a transaction cannot read a revision.
func (m *Model) readable(rev int64) error {
	before := *m.view
	before.Time = m.blocks[len(m.blocks)-1].Time
	return before.readable(rev)
}

// volume is room in a lease.
type volume struct{ keys, bytes int64 }

// roomIn takes room for a version of a key in the lease that it names. Every put of a transaction takes room beside
// what was there before, even one of a key that it has put already.
func (m *Model) roomIn(v *scope.KeyValue) error {
	if v.Lease == 0 {
		return nil
	}
	if _, there := m.view.leases[v.Lease]; !there {
		return scope.ErrLeaseNotFound
	}
	room, asked := m.block.room[v.Lease]
	if !asked {
		room = volume{m.bounds.LeaseKeys, m.bounds.LeaseBytes}
		for _, kv := range m.keys() { // order-free: sums
			if kv.Lease == v.Lease {
				room = volume{room.keys - 1, room.bytes - int64(len(kv.Key)+len(kv.Value))}
			}
		}
	}
	keys, size := int64(1), int64(len(v.Key)+len(v.Value))
	if was, there := m.keys()[string(v.Key)]; there && was.Lease == v.Lease {
		keys, size = 0, size-int64(len(was.Key)+len(was.Value))
	}
	room = volume{room.keys - keys, room.bytes - size}
	m.block.room[v.Lease] = room
	if (room.keys < 0 || room.bytes < 0) && (keys > 0 || size > 0) {
		return scope.ErrLeaseFull
	}
	return nil
}

// checkPut reports why a put cannot be done, under each name of the object.
func (m *Model) checkPut(op *scope.Op) error {
	v, there := m.keys()[string(op.Key)]
	if !there && (op.IgnoreValue || op.IgnoreLease) {
		return scope.ErrKeyNotFound
	}
	value := op.Value
	if op.IgnoreValue {
		value = v.Value
	}
	lease := op.Lease
	if op.IgnoreLease {
		lease = v.Lease
	}
	if failure := m.roomIn(&scope.KeyValue{Key: op.Key, Value: value, Lease: lease}); failure != nil {
		return failure
	}
	m.block.grows += grows(op.Key, value)
	if failure := m.bill(op.Key, value); failure != nil {
		return failure
	}
	if _, named := m.view.objects[v.UID]; !there || !named {
		return nil
	}
	held := m.view.objects[v.UID].held
	for _, h := range held {
		reach := m.block.reach
		if len(reach) > 0 && !slices.ContainsFunc(reach, func(r scope.Reach) bool { return scope.Within([]byte(h.key), r.Key, r.End) }) {
			return scope.ErrReach
		}
	}
	if failure := m.spend(int64(len(held)-1) * given(max(len(op.Value), len(v.Value)))); failure != nil {
		return failure
	}
	for _, h := range held {
		if h.key == string(op.Key) {
			continue
		}
		other := m.keys()[h.key]
		other.Value = value
		m.block.grows += grows(other.Key, value)
		if failure := m.bill(other.Key, value); failure != nil {
			return failure
		}
		if failure := m.roomIn(&other); failure != nil {
			return failure
		}
	}
	return nil
}

// run executes the operations of the branches of a path.
func (m *Model) run(t *scope.Txn, path *[]bool) []scope.Response {
	ops := take(t, path)
	out := make([]scope.Response, len(ops))
	for i := range ops {
		op, r := &ops[i], &out[i]
		switch r.Kind = op.Kind; op.Kind {
		case scope.OpRange:
			var how scope.Range
			if op.Range != nil {
				how = *op.Range
			}
			keys := m.block.keys
			if how.Revision > 0 {
				keys = m.asOf(how.Revision)
			}
			r.Range = ranged(keys, m.revision(), op.Key, op.End, how)
		case scope.OpMerge:
			v := m.keys()[string(op.Key)]
			r.UID = v.UID
			m.block.merged = fmt.Sprintf("merged %s %d.%d %+q", v.UID, v.ModRevision, v.Sub, v.Key)
		case scope.OpPut:
			m.put(op, r)
			m.block.merged = ""
		case scope.OpDelete:
			m.delete(op, r)
		case scope.OpTxn:
			r.Succeeded = (*path)[0]
			r.Responses = m.run(op.Txn, path)
		}
		r.Revision = m.revision()
	}
	return out
}

// compact closes the revisions below one to readers.
func (m *Model) compact(rev int64) error {
	switch v := m.view; {
	case rev <= v.Compacted:
		return scope.ErrCompacted
	case rev > v.Revision:
		return scope.ErrFutureRevision
	}
	m.stored.recollect(m.view.Compacted)
	m.view.Compacted = rev
	m.entry(compacted, nil)
	return nil
}

// at is where the next change of the mutation stands.
func (m *Model) at() (rev int64, sub uint32) { return m.next(), m.block.changes }

// uid is that of an object which the next change creates under a key: that which an island gave it, or a new one.
func (m *Model) uid(key string) aweigh.UID {
	if t := m.block.isle; t != nil {
		if left := t.uids[key]; len(left) > 0 {
			t.uids[key] = left[1:]
			if m.chains[left[0]] == 0 { // liars may have given it to several
				return left[0]
			}
		}
	}
	u := aweigh.NewUID(m.block.mutation.ID, m.block.changes)
	for len(m.view.received) > 0 && m.chains[u] != 0 { // liars of another scope sent an object with it
		u = aweigh.NewUID(aweigh.Sum(u[:]), m.block.changes)
	}
	return u
}
