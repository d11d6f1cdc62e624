package scope

import (
	"slices"

	"github.com/aweigh/aweigh"
)

// metered reports whether changes of something that quotas bound must be looked at: an entry of the policy has such a
// quota, or something is still charged under one of before.
func (x *execution) metered(what measure) bool {
	return x.epoch.meters[what] || what != byRate && *x.used.total.held(what) > 0
}

// entryFor chooses, of the entries that permit something, the one that it is charged to: none, if one of them has no
// such quota, and otherwise the first that has room. failure is why none has. permitted is false if no entry permits
// it.
func entryFor(all []*Author, what measure, permits, room func(*Author) bool) (entry *Author, permitted bool, failure error) {
	for _, a := range all {
		if !permits(a) {
			continue
		}
		permitted = true
		if a.Quota.most(what) == 0 {
			return nil, true, nil
		}
		if entry == nil && room(a) {
			entry = a
		}
		if failure == nil {
			failure = a.exhausted(what)
		}
	}
	if entry != nil {
		failure = nil
	}
	return entry, permitted, failure
}

// payers chooses, of the entries about its author, those that a mutation as a whole is charged to, by its form: one for
// each put and deletion, in both branches of its transactions, and for whatever else it asks for. Each that is chosen
// is charged once. What no entry permits, or a grant does not, is charged to none. A mutation that would so be charged
// to none is charged as if all entries permitted it, as long as its form is not denied: it changes nothing in some
// branch, or has an empty one.
func (m *CheckedMutation) payers(r Rights, what measure, room func(*Author) bool) (names []string, failure error) {
	all := r.entries
	if !slices.ContainsFunc(all, func(a *Author) bool { return a.Quota.most(what) > 0 }) {
		return nil, nil
	}
	pays := func(permits func(*Author) bool) bool {
		a, _, why := entryFor(all, what, permits, func(a *Author) bool { return slices.Contains(names, a.Name) || room(a) })
		if a != nil && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
		failure = why
		return why == nil
	}
	m.asks(func(verb string, key, end []byte) bool {
		of := func(a *Author) bool {
			if OfNoKey(verb) {
				return a.Permits(verb, nil)
			}
			return a.permits(verb, key, end)
		}
		return r.outside(verb, key, end) || pays(of)
	})
	if len(names) == 0 && failure == nil && r.forbids(m) == nil {
		pays(func(*Author) bool { return true })
	}
	return names, failure
}

// asks visits what entries must permit for a mutation, whichever branches its transactions take, until visit returns
// false.
func (m *CheckedMutation) asks(visit func(verb string, key, end []byte) bool) {
	switch n, verb := m.Naming, m.Class.verbOfAll(); {
	case verb != "":
		visit(verb, nil, nil)
	case m.Class == Act:
		visit(m.Action.Verb, m.Action.Key, nil)
	case m.Class == Write:
		m.Txn.writes(func(op *Op) bool { return m.asksFor(op, visit) })
	case m.Class == Name:
		verb := m.verb(OpPut)
		if len(n.Key) > 0 && !visit(verb, n.Key, nil) || len(n.makes()) == 0 {
			return
		}
		visit(verb, n.To, nil)
	}
}

// asksFor visits what entries must permit for a put or a deletion of a mutation, or for its action on a key.
func (m *CheckedMutation) asksFor(op *Op, visit func(verb string, key, end []byte) bool) bool {
	attaches := op.Kind == OpPut && op.Lease != 0 && !op.IgnoreLease
	return visit(m.verb(op.Kind), op.Key, op.End) && (!attaches || visit(VerbDelete, op.Key, nil))
}

// writes visits all puts and deletions of a transaction, of both branches, until visit returns false.
func (t *Txn) writes(visit func(*Op) bool) bool {
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			switch op := &branch[i]; op.Kind {
			case OpTxn:
				if !op.Txn.writes(visit) {
					return false
				}
			case OpPut, OpDelete:
				if !visit(op) {
					return false
				}
			}
		}
	}
	return true
}

// verb is the one that entries must permit for a put or a deletion of a mutation.
func (m *CheckedMutation) verb(kind OpKind) string {
	switch {
	case m.Class == Act:
		return m.Action.Verb
	case m.Class == Name && m.Naming.Kind != Rollback:
		return VerbAlias
	case kind == OpDelete:
		return VerbDelete
	}
	return VerbPut
}

// paced counts a mutation at the rates of the entries that it is charged to, or returns why none has room. It counts
// whatever becomes of the mutation.
func (x *execution) paced(m *CheckedMutation) (failure error) {
	if !x.epoch.meters[byRate] || !m.Class.needsAuthor() {
		return nil
	}
	r, now := x.rightsOf(m), x.block.Header.Time
	names, failure := m.payers(r, byRate, func(a *Author) bool {
		u := x.used.of[a.Name]
		return u.makes(&a.Quota, now)
	})
	if failure != nil {
		return failure
	}
	for _, a := range r.entries {
		if slices.Contains(names, a.Name) {
			x.use(a.Name, func(u *Usage) { u.makes(&a.Quota, now) })
		}
	}
	return nil
}

// Paces returns how many mutations of a bundle each entry would count at its rate in a block of a time, if as many as
// ahead has were executed before. Of a bundle of which some mutation would find no room, failure wraps ErrRate. A node
// refuses such a bundle before it spreads it; no block is invalid for it, since nodes know of different bundles.
func (s *State) Paces(b *CheckedBundle, at aweigh.Instant, ahead map[string]int64) (counts map[string]int64, failure, err error) {
	e, err := s.Epoch()
	if err != nil || !e.meters[byRate] {
		return nil, nil, err
	}
	used, err := s.usage()
	if err != nil {
		return nil, nil, err
	}
	counts = make(map[string]int64)
	for i := range b.mutations {
		m := &b.mutations[i]
		if !m.Class.needsAuthor() {
			continue
		}
		names, why := m.payers(e.rightsFor(m), byRate, func(a *Author) bool {
			u := used.of[a.Name]
			n := ahead[a.Name] + counts[a.Name] + 1
			return n <= a.Quota.Burst()-u.Made(&a.Quota, at)
		})
		if why != nil && failure == nil {
			failure = why
		}
		for _, name := range names {
			counts[name]++
		}
	}
	return counts, failure, nil
}

// countedFor returns the entries that a lease or a motion of the mutation being executed is charged to, or why none has
// room for one more.
func (x *execution) countedFor(what measure) (names []string, failure error) {
	m := x.mutation
	if !x.epoch.meters[what] {
		return nil, nil
	}
	return m.payers(x.rightsOf(m), what, func(a *Author) bool {
		u := x.used.of[a.Name]
		return *u.held(what) < a.Quota.most(what)
	})
}

// bill chooses the entry that pays for a key and its value from when the mutation being executed writes them, or
// returns why none has room. Each put of a mutation takes room beside what the key holds already under that entry;
// deletions of the same mutation make none.
func (x *execution) bill(key []byte, bytes int64) (failure, err error) {
	if !x.metered(heldBytes) {
		return nil, nil
	}
	var was charge
	if *x.used.total.held(heldBytes) > 0 {
		if _, err := x.view.record(x.space.chargeOfKey(key), &was); err != nil {
			return nil, err
		}
	}
	grows := func(a *Author) int64 {
		if slices.Contains(was.Entries, a.Name) {
			return bytes - was.Amount
		}
		return bytes
	}
	verb := x.mutation.verb(OpPut)
	a, _, failure := entryFor(x.rightsOf(x.mutation).entries, heldBytes,
		func(a *Author) bool { return a.permits(verb, key, nil) },
		func(a *Author) bool {
			n := grows(a)
			return n <= 0 || n <= a.Quota.Bytes-x.used.of[a.Name].Bytes-x.billed[a.Name]
		})
	if failure != nil {
		return failure, nil
	}
	if x.bills == nil {
		x.bills, x.billed = make(map[string]string), make(map[string]int64)
	}
	x.bills[string(key)] = ""
	if a != nil {
		x.bills[string(key)] = a.Name
		x.billed[a.Name] += max(grows(a), 0)
	}
	return nil, nil
}

// chargeFor charges a version that is written to the entry that pays for it. A key that is written without a bill, as
// without its lease, stays charged as it is, and a deleted one is charged no more.
func (x *execution) chargeFor(v *KeyValue) error {
	if !x.metered(heldBytes) {
		return nil
	}
	name, billed := x.bills[string(v.Key)]
	switch {
	case v.Version == 0 || billed && name == "":
		return x.discharge(x.space.chargeOfKey(v.Key), heldBytes)
	case !billed:
		return nil
	}
	return x.charge(x.space.chargeOfKey(v.Key), heldBytes, charge{Entries: []string{name}, Amount: v.size()})
}
