package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// grantsOf are the grants of a mutation.
func grantsOf(mut *scope.CheckedMutation) (all []scope.Grant) {
	for _, raw := range mut.Grants {
		var g scope.Grant
		must.OK(canon.Decode(raw, &g), "decoding a grant that was checked")
		all = append(all, g)
	}
	return all
}

// granted reports why the grants of a mutation do not hold.
func (m *Model) granted(mut *scope.CheckedMutation) error {
	for _, g := range grantsOf(mut) {
		if g.NotAfter < m.block.Header.Time {
			return fmt.Errorf("%w: the grant %q has expired", scope.ErrDenied, g.Name)
		}
		if len(g.Record) == 0 {
			continue
		}
		if failure := m.pay(look{key: g.Record, revision: math.MaxInt64, price: lookCost}); failure != nil {
			return failure
		}
		kv, there := m.keys()[string(g.Record)]
		if there && kv.Lease != 0 {
			return fmt.Errorf("%w: the record of the grant %q has a lease; put it without one", scope.ErrDenied, g.Name)
		}
		if !there || kv.UID != g.Object {
			return fmt.Errorf("%w: the grant %q is revoked", scope.ErrDenied, g.Name)
		}
	}
	return nil
}

// principal is the author of a mutation, or of its first grant.
func principal(mut *scope.CheckedMutation) aweigh.Hash {
	if grants := grantsOf(mut); len(grants) > 0 {
		return grants[0].By.ID()
	}
	return mut.Author
}

// entriesFor are those of the policy's authors that are about the principal of a mutation, without those that are about
// readers alone.
func (m *Model) entriesFor(mut *scope.CheckedMutation) []scope.Author {
	return slices.DeleteFunc(m.entriesAbout(mut), func(a scope.Author) bool { return slices.Equal(a.Verbs, []string{"read"}) })
}

// entriesAbout are those of the policy's authors that are about the principal of a mutation.
func (m *Model) entriesAbout(mut *scope.CheckedMutation) (all []scope.Author) {
	author := principal(mut)
	_, seated := m.seat(author)
	for _, a := range m.block.policy.Authors {
		if a.Who == scope.Anyone || a.Who == scope.Anchors && seated || a.Who == scope.OneKey && a.Key.ID() == author {
			all = append(all, a)
		}
	}
	return all
}

// mayDo reports whether an entry permits the author of a mutation to use a verb on a range of keys; no key stands for
// the whole scope.
func (m *Model) mayDo(mut *scope.CheckedMutation, verb string, key, end []byte) bool {
	q := ask{verb, key, end}
	return m.granting(mut, q) && slices.ContainsFunc(m.entriesFor(mut), q.does)
}

// granting reports whether all grants of a mutation permit what is asked for. None permits a change of the record of
// one of them, or of what the policy lists peers by, unless it names that.
func (m *Model) granting(mut *scope.CheckedMutation, q ask) bool {
	type kept struct{ key, end []byte }
	var all []kept
	for _, g := range grantsOf(mut) {
		if len(g.Record) > 0 {
			all = append(all, kept{g.Record, nil})
		}
	}
	for _, a := range m.block.policy.Authors {
		if len(a.List) > 0 {
			all = append(all, kept{a.List, scope.PrefixEnd(a.List)})
		}
	}
	for _, g := range grantsOf(mut) {
		if !q.does(scope.Author{Prefixes: g.Prefixes, Verbs: g.Verbs}) {
			return false
		}
		for _, k := range all {
			named := slices.ContainsFunc(g.Prefixes, func(p []byte) bool { return strings.HasPrefix(string(p), string(k.key)) })
			if q.verb != "lease" && q.verb != "compact" && q.verb != "users" && !named && scope.Overlap(q.key, q.end, k.key, k.end) {
				return false
			}
		}
	}
	return true
}

// authorized reports why the policy's authors do not permit a mutation, whatever its keys.
func (m *Model) authorized(mut *scope.CheckedMutation) error {
	if slices.Contains([]scope.Class{scope.Govern, scope.Withdraw, scope.Rejoin, scope.Bring, scope.Carry}, mut.Class) {
		return nil
	}
	if failure := m.granted(mut); failure != nil {
		return failure
	}
	all := m.entriesFor(mut)
	if len(all) == 0 {
		return fmt.Errorf("%w: the policy does not list this author", scope.ErrDenied)
	}
	if mut.Class == scope.Compact && !m.mayDo(mut, "compact", nil, nil) {
		return m.denied(mut, ask{verb: "compact"})
	}
	if mut.Class == scope.Permit && !m.mayDo(mut, "users", nil, nil) {
		return m.denied(mut, ask{verb: "users"})
	}
	leases := func(a scope.Author) bool { return len(a.Verbs) == 0 || slices.Contains(a.Verbs, "lease") }
	bounded := func(g scope.Grant) bool { return !leases(scope.Author{Verbs: g.Verbs}) }
	if mut.Class == scope.Lease && (!slices.ContainsFunc(all, leases) || slices.ContainsFunc(grantsOf(mut), bounded)) {
		return m.denied(mut, ask{verb: "lease"})
	}
	return nil
}

// authorizes reports why the policy's authors do not permit one change of a mutation.
func (m *Model) authorizes(mut *scope.CheckedMutation, c change) error {
	verb := "put"
	if c.deletes {
		verb = "delete"
	}
	if mut.Class == scope.Name && mut.Naming.Kind != scope.Rollback {
		verb = "alias"
	}
	if mut.Class == scope.Act {
		verb = mut.Action.Verb
	}
	switch {
	case !m.mayDo(mut, verb, c.key, c.end):
		return m.denied(mut, ask{verb, c.key, c.end})
	case c.attaches && !m.mayDo(mut, "delete", c.key, nil): // the end of the lease deletes it
		return m.denied(mut, ask{"delete", c.key, nil})
	}
	return nil
}

// denied is the failure of what no entry for the author permits, or an entry does and a grant does not.
func (m *Model) denied(mut *scope.CheckedMutation, q ask) error {
	who, key := "the policy does not permit this author", ""
	if slices.ContainsFunc(m.entriesFor(mut), q.does) {
		who = "the token does not permit"
	}
	switch {
	case q.key != nil && mut.Class == scope.Lease:
		key = " a key of the lease"
	case q.key != nil && !stated(mut, q.key, q.end):
		key = " another alias of the object"
	case len(q.key) > 64:
		key = fmt.Sprintf(" %q…", q.key[:64])
	case q.key != nil:
		key = fmt.Sprintf(" %q", q.key)
	}
	return fmt.Errorf("%w: %s to %s%s", scope.ErrDenied, who, q.verb, key)
}

// stated reports whether a mutation has a range of keys among its own.
func stated(mut *scope.CheckedMutation, key, end []byte) bool {
	is := func(k, e []byte) bool { return string(k) == string(key) && string(e) == string(end) }
	if a := mut.Action; a != nil && is(a.Key, nil) {
		return true
	}
	if n := mut.Naming; n != nil && (is(n.Key, nil) || is(n.To, nil) || is(n.From, nil)) {
		return true
	}
	var in func(t *scope.Txn) bool
	in = func(t *scope.Txn) bool {
		return slices.ContainsFunc(t.Compare, func(c scope.Compare) bool { return is(c.Key, c.End) }) ||
			slices.ContainsFunc(slices.Concat(t.Success, t.Failure), func(op scope.Op) bool {
				return op.Kind == scope.OpTxn && in(op.Txn) || op.Kind != scope.OpTxn && is(op.Key, op.End)
			})
	}
	return mut.Class == scope.Write && in(mut.Txn)
}
