package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// charge is what counts under quotas, by names of entries: each counts the amount.
type charge struct {
	entries []string
	amount  int64
}

// What charges are for begins their keys.
const (
	ofKey    = "key "
	ofLease  = "lease "
	ofMotion = "motion "
)

func leaseCharge(id int64) string { return fmt.Sprint(ofLease, id) }

// held is what an entry has of something: all charges of it.
func (v *View) held(name, of string) (n int64) {
	for k, c := range v.charges { // order-free: sums
		if slices.Contains(c.entries, name) && strings.HasPrefix(k, of) {
			n += c.amount
		}
	}
	return n
}

// usages is what all entries have.
func (v *View) usages() (all []scope.EntryUsage) {
	names := make(map[string]bool)
	for _, c := range v.charges { // order-free: a set
		for _, name := range c.entries {
			names[name] = true
		}
	}
	for name := range v.full { // order-free: a set
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, scope.EntryUsage{Name: name, Usage: scope.Usage{
			Full: v.full[name], Bytes: v.held(name, ofKey), Leases: v.held(name, ofLease), Motions: v.held(name, ofMotion),
		}})
	}
	return all
}

// ask is something that an entry must permit.
type ask struct {
	verb     string
	key, end []byte
}

// does reports whether an entry permits what is asked for.
func (q ask) does(a scope.Author) bool {
	if len(a.Verbs) > 0 && !slices.Contains(a.Verbs, q.verb) {
		return false
	}
	return q.verb == "lease" || len(a.Prefixes) == 0 ||
		len(q.key) > 0 && slices.ContainsFunc(a.Prefixes, func(prefix []byte) bool { return scope.Covers(prefix, q.key, q.end) })
}

// asks is all that a mutation asks for, in both branches of its transactions.
func asks(mut *scope.CheckedMutation) (all []ask) {
	switch mut.Class {
	case scope.Compact:
		return []ask{{verb: "compact"}}
	case scope.Permit:
		return []ask{{verb: "users"}}
	case scope.Lease:
		return []ask{{verb: "lease"}}
	case scope.Act:
		return []ask{{verb: mut.Action.Verb, key: mut.Action.Key}}
	case scope.Name:
		verb := "alias"
		if mut.Naming.Kind == scope.Rollback {
			verb = "put"
		}
		for _, key := range [][]byte{mut.Naming.Key, mut.Naming.To} {
			if len(key) > 0 && (mut.Naming.Kind != scope.Send || string(key) == string(mut.Naming.Key)) {
				all = append(all, ask{verb: verb, key: key})
			}
		}
		return all
	case scope.Write:
		return asksOf(mut.Txn)
	}
	return nil
}

func asksOf(t *scope.Txn) (all []ask) {
	for _, op := range slices.Concat(t.Success, t.Failure) {
		switch op.Kind {
		case scope.OpTxn:
			all = append(all, asksOf(op.Txn)...)
		case scope.OpPut:
			all = append(all, ask{"put", op.Key, op.End})
			if op.Lease != 0 && !op.IgnoreLease {
				all = append(all, ask{"delete", op.Key, nil})
			}
		case scope.OpDelete:
			all = append(all, ask{"delete", op.Key, op.End})
		}
	}
	return all
}

// bound is one of the bounds of a quota, and what fails above it.
type bound struct {
	of   func(scope.Quota) int64
	over func(a scope.Author) error
}

var (
	byRate = bound{func(q scope.Quota) int64 { return q.Rate }, func(a scope.Author) error {
		return fmt.Errorf("%w: the entry %s may make %d a second; try again later, or ask for more", scope.ErrRate, a.Name, a.Quota.Rate)
	}}
	byBytes = bound{func(q scope.Quota) int64 { return q.Bytes }, func(a scope.Author) error {
		size := fmt.Sprintf("%d bytes", a.Quota.Bytes)
		for i, unit := range []string{"KiB", "MiB", "GiB"} {
			if one := int64(1024) << (10 * i); a.Quota.Bytes%one == 0 {
				size = fmt.Sprintf("%d %s", a.Quota.Bytes/one, unit)
			}
		}
		return fmt.Errorf("%w: the entry %s may hold %s; delete something, or ask for more", scope.ErrQuotaSpace, a.Name, size)
	}}
	byLeases = bound{func(q scope.Quota) int64 { return q.Leases }, func(a scope.Author) error {
		return fmt.Errorf("%w: the entry %s may have %d lease%s; revoke one, or ask for more", scope.ErrQuota, a.Name, a.Quota.Leases, plural(a.Quota.Leases))
	}}
	byMotions = bound{func(q scope.Quota) int64 { return q.Motions }, func(a scope.Author) error {
		return fmt.Errorf("%w: the entry %s may have %d open motion%s; withdraw one, or ask for more", scope.ErrQuota, a.Name, a.Quota.Motions, plural(a.Quota.Motions))
	}}
)

// pays is the entry, of some that permit something, that it is charged to: "" if one of them is without the bound.
func (b bound) pays(all []scope.Author, room func(scope.Author) bool) (name string, failure error) {
	if slices.ContainsFunc(all, func(a scope.Author) bool { return b.of(a.Quota) == 0 }) || len(all) == 0 {
		return "", nil
	}
	i := slices.IndexFunc(all, room)
	if i < 0 {
		return "", b.over(all[0])
	}
	return all[i].Name, nil
}

// payers are the entries that a mutation as a whole is charged to.
func (m *Model) payers(mut *scope.CheckedMutation, b bound, room func(scope.Author) bool) (names []string, failure error) {
	all := m.entriesFor(mut)
	for _, q := range asks(mut) {
		if !m.granting(mut, q) {
			continue
		}
		if permit := slices.DeleteFunc(slices.Clone(all), func(a scope.Author) bool { return !q.does(a) }); len(permit) > 0 {
			name, failure := b.pays(permit, func(a scope.Author) bool { return slices.Contains(names, a.Name) || room(a) })
			if failure != nil {
				return nil, failure
			}
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 || !m.formed(mut) {
		return names, nil
	}
	name, failure := b.pays(all, room)
	if name != "" {
		names = []string{name}
	}
	return names, failure
}

// formed reports whether the entries and grants permit what a mutation asks for, in one branch of each transaction.
func (m *Model) formed(mut *scope.CheckedMutation) bool {
	may := func(all []ask) bool {
		return !slices.ContainsFunc(all, func(q ask) bool { return !m.mayDo(mut, q.verb, q.key, q.end) })
	}
	if mut.Class != scope.Write {
		return may(asks(mut))
	}
	var txn func(t *scope.Txn) bool
	branch := func(ops []scope.Op) bool {
		return !slices.ContainsFunc(ops, func(op scope.Op) bool {
			if op.Kind == scope.OpTxn {
				return !txn(op.Txn)
			}
			if op.Kind == scope.OpMerge {
				return !m.mayCopy(mut, op.Key)
			}
			return !may(asksOf(&scope.Txn{Success: []scope.Op{op}}))
		})
	}
	txn = func(t *scope.Txn) bool { return branch(t.Success) || len(t.Compare) > 0 && branch(t.Failure) }
	return txn(mut.Txn)
}

// paced counts a mutation at the rates of the entries that it is charged to, or says why none has room.
func (m *Model) paced(mut *scope.CheckedMutation) error {
	if slices.Contains([]scope.Class{scope.Govern, scope.Withdraw, scope.Rejoin, scope.Bring, scope.Carry}, mut.Class) {
		return nil
	}
	now := m.block.Header.Time
	full := func(a scope.Author) aweigh.Instant {
		return max(m.view.full[a.Name], now).Add(time.Second / time.Duration(a.Quota.Rate))
	}
	names, failure := m.payers(mut, byRate, func(a scope.Author) bool { return full(a) <= now.Add(10*time.Second) })
	if failure != nil {
		return failure
	}
	for _, a := range m.block.policy.Authors {
		if slices.Contains(names, a.Name) {
			m.view.full[a.Name] = full(a)
		}
	}
	return nil
}

// counted are the entries that a lease or a motion is charged to, or why none has room.
func (m *Model) counted(mut *scope.CheckedMutation, b bound, of string) ([]string, error) {
	return m.payers(mut, b, func(a scope.Author) bool { return m.view.held(a.Name, of) < b.of(a.Quota) })
}

// charge charges something to entries; without entries it is charged to none.
func (m *Model) charge(of string, entries []string, amount int64) {
	if delete(m.view.charges, of); len(entries) > 0 {
		m.view.charges[of] = charge{entries, amount}
	}
}

// bill chooses the entry that pays for what the mutation puts under a key, or says why none has room.
func (m *Model) bill(key, value []byte) error {
	x, q := m.block, ask{verb: "put", key: key}
	switch mut := x.mutation; {
	case mut.Class == scope.Act:
		q.verb = mut.Action.Verb
	case mut.Class == scope.Name && mut.Naming.Kind != scope.Rollback:
		q.verb = "alias"
	}
	was := m.view.charges[ofKey+string(key)]
	grows := func(name string) int64 {
		n := int64(len(key) + len(value))
		if slices.Contains(was.entries, name) {
			n -= was.amount
		}
		return max(n, 0)
	}
	all := slices.DeleteFunc(m.entriesFor(x.mutation), func(a scope.Author) bool { return !q.does(a) })
	name, failure := byBytes.pays(all, func(a scope.Author) bool {
		n := grows(a.Name)
		return n == 0 || m.view.held(a.Name, ofKey)+x.billed[a.Name]+n <= a.Quota.Bytes
	})
	if failure != nil {
		return failure
	}
	if x.bills == nil {
		x.bills, x.billed = make(map[string]string), make(map[string]int64)
	}
	x.bills[string(key)] = name
	x.billed[name] += grows(name)
	return nil
}

// repay charges what was written under a key to the entry that pays for it.
func (m *Model) repay(c *event) {
	of := ofKey + string(c.kv.Key)
	switch name, billed := m.block.bills[string(c.kv.Key)]; {
	case c.deleted || billed && name == "":
		m.charge(of, nil, 0)
	case billed:
		m.charge(of, []string{name}, int64(len(c.kv.Key)+len(c.kv.Value)))
	}
}

// dropUnusedRates forgets the rates that are used no more.
func (v *View) dropUnusedRates() {
	maps.DeleteFunc(v.full, func(_ string, full aweigh.Instant) bool { return full <= v.Time })
}

// compareUsages compares what entries have.
func (v *View) compareUsages(d *Differences, s *scope.State) {
	if got, err := s.Usages(); !d.fail(err, "usages") {
		want := v.usages()
		d.look(slices.Equal(got, want), "entries have %+v; want %+v", got, want)
	}
}

// plural is the ending of a noun after a number.
func plural(n int64) string {
	if n == 1 {
		return ""
	}
	return "s"
}
