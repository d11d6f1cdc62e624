package model

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// change is a put or a deletion of a range, as the policy's approvals look at it.
type change struct {
	key, end []byte
	lease    int64 // of a put
	attaches bool  // and the put attaches the key to it
	deletes  bool
}

// flat is what the branches of a path put and delete. A put stands for one of every name of its object.
func (m *Model) flat(t *scope.Txn, path []bool) []change {
	path = slices.Clone(path)
	return m.flatBranch(t, &path)
}

func (m *Model) flatBranch(t *scope.Txn, path *[]bool) (all []change) {
	for _, op := range take(t, path) {
		switch op.Kind {
		case scope.OpPut:
			lease := op.Lease
			if op.IgnoreLease {
				lease = m.keys()[string(op.Key)].Lease
			}
			puts := m.puts(op.Key, lease)
			puts[0].attaches = op.Lease != 0 && !op.IgnoreLease
			all = append(all, puts...)
		case scope.OpDelete:
			all = append(all, change{key: op.Key, end: op.End, deletes: true})
		case scope.OpTxn:
			all = append(all, m.flatBranch(op.Txn, path)...)
		}
	}
	return all
}

// puts is what a put of a key changes.
func (m *Model) puts(key []byte, lease int64) []change {
	all := []change{{key: key, lease: lease}}
	if v, ok := m.keys()[string(key)]; ok {
		for _, h := range m.view.objects[v.UID].held {
			if h.key != string(key) {
				all = append(all, change{key: []byte(h.key)})
			}
		}
	}
	return all
}

// asked is the one approval that changes take, nil if they take none.
func (m *Model) asked(all []change, verb string) (needed *scope.Approval, failure error) {
	for _, c := range all {
		if !c.deletes && c.lease != 0 && m.guards(c.key) {
			return nil, scope.ErrLeased
		}
		a, failure := m.longest(c, verb)
		if failure == nil && a != nil && needed != nil && a != needed {
			failure = scope.ErrManyApprovals
		}
		if failure != nil {
			return nil, failure
		}
		if a != nil {
			needed = a
		}
	}
	return needed, nil
}

// longest is the approval with the longest prefix of those that a change may fall under; of two with one prefix, that
// of deletions.
func (m *Model) longest(c change, verb string) (needed *scope.Approval, failure error) {
	n := 0
	for i := range m.block.policy.Approvals {
		a := &m.block.policy.Approvals[i]
		if a.Matter != scope.Changes && (a.Matter != scope.Deletions || !c.deletes) {
			continue
		}
		if len(a.Verbs) > 0 && !slices.Contains(a.Verbs, verb) || !overlaps(c, a.Prefix) {
			continue
		}
		n++
		if needed == nil || len(a.Prefix) > len(needed.Prefix) || len(a.Prefix) == len(needed.Prefix) && (a.Matter == scope.Deletions || len(a.Verbs) > 0) {
			needed = a
		}
	}
	if n > 1 && len(c.end) > 0 && !scope.Covers(needed.Prefix, c.key, c.end) {
		return nil, scope.ErrManyApprovals
	}
	return needed, nil
}

// overlaps reports whether a change may touch a key with a prefix.
func overlaps(c change, prefix []byte) bool {
	if len(c.end) == 0 {
		return bytes.HasPrefix(c.key, prefix)
	}
	return len(prefix) == 0 || scope.Overlap(c.key, c.end, prefix, scope.PrefixEnd(prefix))
}

// guards reports whether the deletion of a key takes approval.
func (m *Model) guards(key []byte) bool {
	a, failure := m.longest(change{key: key, deletes: true}, "")
	return a != nil || failure != nil
}

// verbOf is the verb of an action, "" for every other mutation.
func verbOf(mut *scope.CheckedMutation) string {
	if mut.Action == nil {
		return ""
	}
	return mut.Action.Verb
}
