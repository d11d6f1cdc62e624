package model

import (
	"bytes"
	"cmp"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// transact executes a transaction, or lets it wait for approval.
func (m *Model) transact(mut *scope.CheckedMutation, out *scope.Outcome) error {
	t := mut.Txn
	if m.elsewhere(t) {
		return scope.ErrElsewhere
	}
	path := m.path(t)
	out.Succeeded = false
	if failure := m.check(t, append([]bool(nil), path...)); failure != nil {
		return failure
	}
	asked, failure := m.asked(m.flat(t, append([]bool(nil), path...)))
	if failure != nil {
		return failure
	}
	if asked != nil {
		m.propose(mut, t, path, out)
		return nil
	}
	rest := path
	out.Succeeded, out.Responses = path[0], m.run(t, &rest)
	return nil
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
	for _, d := range m.view.given {
		if scope.Overlap(key, end, d.Prefix, scope.PrefixEnd(d.Prefix)) {
			return false
		}
	}
	return true
}

// path evaluates all compares before anything is done, as etcd's compareToPath: which branch each transaction takes, an
// inner one after the one that it is in.
func (m *Model) path(t *scope.Txn) []bool {
	path := []bool{true}
	for i := range t.Compare {
		path[0] = path[0] && m.holds(&t.Compare[i])
	}
	for _, op := range branch(t, path[0]) {
		if op.Kind == scope.OpTxn {
			path = append(path, m.path(op.Txn)...)
		}
	}
	return path
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
func (m *Model) holds(c *scope.Compare) bool {
	kvs := pairs(m.keys(), c.Key, c.End)
	if len(kvs) == 0 {
		return c.Target != scope.OnValue && holdsOf(c, &scope.KeyValue{})
	}
	for i := range kvs {
		if !holdsOf(c, &kvs[i]) {
			return false
		}
	}
	return true
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

// check follows etcd's checkTxn: whatever can fail fails here, before anything is done.
func (m *Model) check(t *scope.Txn, path []bool) error {
	return m.checkBranch(t, &path, t.Reach)
}

func (m *Model) checkBranch(t *scope.Txn, path *[]bool, reach []scope.Reach) error {
	ops := take(t, path)
	for i := range ops {
		op := &ops[i]
		var failure error
		switch op.Kind {
		case scope.OpRange:
			if op.Range != nil {
				failure = m.readable(op.Range.Revision)
			}
		case scope.OpPut:
			failure = m.checkPut(op, reach)
		case scope.OpTxn:
			failure = m.checkBranch(op.Txn, path, reach)
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// readable says why a transaction cannot read a revision.
func (m *Model) readable(rev int64) error {
	before := *m.view
	before.Time = m.blocks[len(m.blocks)-1].Time
	return before.readable(rev)
}

func (m *Model) checkPut(op *scope.Op, reach []scope.Reach) error {
	v, there := m.keys()[string(op.Key)]
	if !there && (op.IgnoreValue || op.IgnoreLease) {
		return scope.ErrKeyNotFound
	}
	if _, granted := m.view.leases[op.Lease]; op.Lease != 0 && !granted {
		return scope.ErrLeaseNotFound
	}
	if !there || len(reach) == 0 {
		return nil
	}
	for _, h := range m.view.objects[v.UID].held {
		in := false
		for _, r := range reach {
			in = in || scope.Within([]byte(h.key), r.Key, r.End)
		}
		if !in {
			return scope.ErrReach
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
		case scope.OpPut:
			m.put(op, r)
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
	m.view.Compacted = rev
	m.entry(compacted, nil)
	return nil
}

// at is where the next change of the mutation stands.
func (m *Model) at() (rev int64, sub uint32) { return m.next(), m.block.changes }

// uid is that of an object which the next change creates.
func (m *Model) uid() aweigh.UID { return aweigh.NewUID(m.block.mutation.ID, m.block.changes) }
