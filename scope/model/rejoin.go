package model

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// isle is an island on record, with what of it did not stand, by key.
type isle struct {
	scope.Islanded
	aside map[string]scope.SetAside
	taken map[aweigh.Hash]bool // mutations that changed something, or were set aside
}

// terms are those of an epoch in which islands could be founded, by their name.
type terms struct {
	start  aweigh.Height
	number aweigh.Epoch
	hash   aweigh.Hash // zero: none could
}

const (
	islandsUnits = 500  // for a look at the islands on record
	mostTerms    = 4096 // epochs of which an island may be taken
)

// begins puts the terms of an epoch on record with its first block.
func (m *Model) begins() {
	e := m.block.told.Epoch
	if n := len(m.terms); n > 0 && m.terms[n-1].number == e.Number {
		return
	}
	t := terms{start: e.Start, number: e.Number}
	if p := e.Policy.Partitions; len(p) > 0 && !m.genesis.IsIsland() {
		of := e.Terms()
		t.hash = of.Hash(e.Number)
	}
	m.terms = append(m.terms, t)
}

// termsOf are those of the epoch that follows a block of a height, or contains it.
func (m *Model) termsOf(at aweigh.Height) (t terms, known bool) {
	for _, o := range m.terms {
		if o.start <= at {
			t = o
		}
	}
	return t, !t.hash.IsZero() && m.block.told.Epoch.Number < t.number+mostTerms
}

// simple reports whether an island takes a mutation.
func simple(mut *scope.CheckedMutation) bool {
	if mut.Class != scope.Write || mut.Patient || len(mut.Grants) > 0 {
		return false
	}
	for _, c := range mut.Txn.Compare {
		if len(c.End) > 0 {
			return false
		}
	}
	for _, op := range slices.Concat(mut.Txn.Success, mut.Txn.Failure) {
		writes := op.Kind == scope.OpPut || op.Kind == scope.OpDelete
		if !writes || len(op.End) > 0 || op.Lease != 0 || op.IgnoreLease || op.IgnoreValue {
			return false
		}
	}
	return true
}

// askedFor is the approval that a mutation takes: a patient one of single keys of one partition takes one that the
// partition gives, if the policy asks for no other.
func (m *Model) askedFor(mut *scope.CheckedMutation, all []change, path []bool) (*scope.Approval, error) {
	needed, failure := m.asked(all, verbOf(mut))
	if needed != nil || failure != nil || !mut.Patient || len(path) > 1 || len(all) == 0 {
		return needed, failure
	}
	for i := range m.block.policy.Partitions {
		p := &m.block.policy.Partitions[i]
		outside := func(c change) bool { return len(c.end) > 0 || !bytes.HasPrefix(c.key, p.Prefix) }
		if !p.Island && !slices.ContainsFunc(all, outside) {
			return &scope.Approval{Matter: scope.Changes, Prefix: p.Prefix, Num: 1, Den: 2, Window: p.Window}, nil
		}
	}
	return nil, nil
}

// group is what one mutation changed in an island.
type group struct {
	mut     *scope.CheckedMutation
	entries []scope.Provisional
	root    aweigh.Hash // of the lineage up to the end of entries
}

// groups are the mutations of which a Rejoining shows the changes.
func groups(mut *scope.CheckedMutation) (all []group) {
	r := mut.Rejoins
	by := make(map[aweigh.Hash]*scope.CheckedMutation)
	for _, raw := range r.Bundles {
		b, err := scope.CheckBundle(raw, r.Origin.Policy.Limits, unverified)
		must.OK(err, "opening a bundle that was checked")
		for i := range b.Mutations() {
			by[b.Mutations()[i].ID] = &b.Mutations()[i]
		}
	}
	for i, p := range r.Changes {
		if before := i - 1; i == 0 || p.Entry.Mutation != r.Changes[before].Entry.Mutation || p.Entry.Height != r.Changes[before].Entry.Height {
			all = append(all, group{mut: by[p.Entry.Mutation]})
		}
		g := &all[len(all)-1]
		g.entries = append(g.entries, p)
	}
	for _, p := range slices.Concat(r.Changes, r.After) { // an entry tells the root of what is before it
		for j := range all {
			if g := &all[j]; g.entries[len(g.entries)-1].Place.Index+1 == p.Place.Index {
				g.root = p.Place.Before().Root
			}
		}
	}
	if g := len(all) - 1; g >= 0 && len(r.After) == 0 {
		all[g].root = r.Final.Header.LineageRoot
	}
	return all
}

// unverified takes every signature: those of a bundle that was checked before.
func unverified(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }

// ops is what the mutation put and deleted under the names that it named.
func (g *group) ops() (all []scope.Op) {
	for _, p := range g.entries {
		switch e := &p.Entry; e.Class {
		case lineage.Insert, lineage.Update:
			all = append(all, scope.Op{Kind: scope.OpPut, Key: e.Key, Value: p.Value.Value})
		case lineage.Delete, lineage.AliasUnbind:
			all = append(all, scope.Op{Kind: scope.OpDelete, Key: e.Key})
		}
	}
	return all
}

// named are the keys that the mutation names, to look at or to change.
func (g *group) named() (all []string) {
	for _, c := range g.mut.Txn.Compare {
		all = append(all, string(c.Key))
	}
	for _, op := range slices.Concat(g.mut.Txn.Success, g.mut.Txn.Failure) {
		all = append(all, string(op.Key))
	}
	return all
}

// fresh reports whether the island had nothing under a key, as far as the mutation looked: a put or a deletion that
// found something says so. What a compare found is not known.
func (g *group) fresh(key string) bool {
	if i := slices.IndexFunc(g.entries, func(p scope.Provisional) bool { return string(p.Entry.Key) == key }); i >= 0 {
		return g.entries[i].Entry.Class == lineage.Insert
	}
	return !slices.ContainsFunc(g.mut.Txn.Compare, func(c scope.Compare) bool { return string(c.Key) == key })
}

func (g *group) cost() int64 {
	units, ops := int64(16), g.ops()
	if len(ops) > 0 {
		units += 16 * int64(len(g.named()))
	}
	for _, op := range ops {
		units += 4 + 8 + lookCost(len(op.Value))
	}
	return units
}

// taken is the change of an island that is being taken.
type taken struct {
	id   aweigh.ScopeID
	told string // the reason of its entries
	uids map[string][]aweigh.UID
}

// rejoin puts an island on record, or takes the next of its changes.
func (m *Model) rejoin(mut *scope.CheckedMutation) error {
	r, h := mut.Rejoins, &m.block.Header
	if _, seated := m.seat(mut.Author); !seated {
		return fmt.Errorf("%w: only the node of an anchor can bring in what another scope decided", scope.ErrDenied)
	}
	if failure := m.spend(islandsUnits); failure != nil {
		return failure
	}
	d, above := r.Origin.Descent, m.genesis.Network()
	if d.Parent != m.id || d.Network != above || d.Revision > m.view.Revision || d.Height >= h.Height {
		return errors.New("scope: the island is none of this scope")
	}
	t, known := m.termsOf(d.Height)
	if !known || r.Terms.Hash(t.number) != t.hash {
		return errors.New("scope: the island was founded under other terms than those of this scope then, or too long ago")
	}
	is, size := m.islands[r.Island], r.Final.Header.LineageSize
	rejoined := lineage.Entry{Class: lineage.Rejoined, Key: d.Prefix, Posterior: r.Island}
	switch {
	case is == nil && len(r.Changes) > 0:
		return errors.New("scope: the island is not on record yet")
	case is == nil:
		return m.announce(mut, rejoined)
	case len(r.Changes) == 0 && size <= is.Size:
		return errors.New("scope: the island is on record already")
	case len(r.Changes) == 0:
		is.Size = size
		m.entry(rejoined, nil)
		return nil
	}
	if failure := m.comesNext(r, is); failure != nil {
		return failure
	}
	changed := len(m.revisions)
	for i, g := range groups(mut) {
		waits := m.takeGroup(is, r.Island, &g, changed)
		if waits != nil && i == 0 {
			return waits
		}
		if waits != nil {
			break
		}
	}
	is.Size = max(is.Size, size)
	if m.block.changes > 0 {
		m.view.Revision = m.next()
	}
	m.block.mutation, m.block.changes, m.block.events, m.block.keys = mut, 0, nil, nil
	return nil
}

// announce puts an island on record.
func (m *Model) announce(mut *scope.CheckedMutation, e lineage.Entry) error {
	r, now := mut.Rejoins, m.block.Header.Time
	d := r.Origin.Descent
	is := &isle{aside: make(map[string]scope.SetAside), taken: make(map[aweigh.Hash]bool), Islanded: scope.Islanded{
		Prefix: d.Prefix, Height: d.Height, Revision: d.Revision, Size: r.Final.Header.LineageSize, Next: d.Keys, By: mut.Author,
	}}
	for _, a := range r.Origin.Anchors {
		is.Members = append(is.Members, a.Key.ID())
	}
	for i, w := range r.Terms.Weights {
		if is.Total += w; slices.Contains(is.Members, r.Terms.Anchors[i].Key.ID()) {
			is.Weight += w
		}
	}
	for _, p := range r.Terms.Policy.Partitions {
		if bytes.Equal(p.Prefix, d.Prefix) {
			is.Due = now.Add(p.Gather)
		}
	}
	for _, o := range m.islands { // order-free: the least
		if o.Due > now {
			is.Due = min(is.Due, o.Due)
		}
	}
	if len(m.islands) >= m.bounds.Islands {
		if failure := m.giveWay(r.Island, is); failure != nil {
			return failure
		}
	}
	m.entry(e, nil)
	m.islands[r.Island] = is
	return nil
}

func (m *Model) islandIDs() []aweigh.ScopeID {
	return slices.SortedFunc(maps.Keys(m.islands), func(a, b aweigh.ScopeID) int { return bytes.Compare(a[:], b[:]) })
}

// comesNext reports why changes of an island are not those that the scope takes now: each in its turn, after the time
// for others to come on record, and after those of islands before it, which keep it waiting for ten times as long.
func (m *Model) comesNext(r *scope.CheckedRejoining, is *isle) error {
	now, first := m.block.Header.Time, r.Changes[0].Place.Index
	if first != is.Next {
		return fmt.Errorf("scope: entry %d of the island comes next, and not %d", is.Next, first)
	}
	if is.Taken != (aweigh.Hash{}) && r.Changes[0].Place.Before().Root != is.Taken {
		return errors.New("scope: the island's members certified two histories, and the scope took a part of the other one")
	}
	if now < is.Due {
		return fmt.Errorf("scope: other islands have until %s to come on record", is.Due.Time().UTC().Format(time.RFC3339))
	}
	for _, id := range m.islandIDs() {
		o := m.islands[id]
		waits := id != r.Island && o.Next < o.Size && o.Due <= is.Due && now < m.waitedFor(o)
		if waits && before(o, is, bytes.Compare(id[:], r.Island[:]) < 0) {
			return fmt.Errorf("scope: the changes of island %s come first", id.Short())
		}
	}
	return nil
}

// before reports whether one island goes before another: the heavier one, then that of the newer base, then that of the
// lesser identity.
func before(a, b *isle, lesser bool) bool {
	if a.Weight != b.Weight {
		return a.Weight > b.Weight
	}
	if a.Height != b.Height {
		return a.Height > b.Height
	}
	return lesser
}

// takeGroup takes what a mutation changed, all or nothing. Those of one Rejoining are of one revision; changed is how
// many there were before it. What lacks units waits.
func (m *Model) takeGroup(is *isle, id aweigh.ScopeID, g *group, changed int) (waits error) {
	x, next := m.block, g.entries[len(g.entries)-1].Place.Index+1
	ops := g.ops()
	if len(ops) == 0 || is.taken[g.mut.ID] {
		is.Next, is.Taken = next, g.root
		return nil
	}
	entered := x.entered
	by, outer := x.mutation, x.purse
	x.purse = purse{allowed: g.cost(), reserve: outer.reserve}
	x.bills, x.billed, x.keys, x.reach = nil, nil, maps.Clone(m.keys()), g.mut.Txn.Reach
	x.isle = &taken{id: id, told: toldOf(id, g.mut), uids: make(map[string][]aweigh.UID)}
	for _, p := range g.entries {
		if p.Entry.Class == lineage.Insert {
			x.isle.uids[string(p.Entry.Key)] = append(x.isle.uids[string(p.Entry.Key)], p.Entry.Object)
		}
	}
	as := *g.mut
	as.Txn = &scope.Txn{Success: ops, Reach: g.mut.Txn.Reach}
	x.mutation = &as
	var path []bool
	failure := m.authorized(&as)
	if failure == nil {
		path, failure = m.allowed(&as)
	}
	if failure == nil {
		var needed *scope.Approval
		all := m.flat(as.Txn, path)
		if needed, failure = m.asked(all, ""); needed != nil && failure == nil {
			failure = fmt.Errorf("the policy asks for approval of %s", nameOf(needed))
		}
	}
	if failure == nil {
		failure = m.stillThere(is, id, g)
	}
	x.mutation = by
	told := x.isle.told
	if failure == nil {
		m.run(as.Txn, &path)
		is.Stands++
		m.revisions = append(m.revisions[:changed], revision{m.next(), x.keys, x.events})
	}
	if !x.purse.empty {
		outer.reserve = x.purse.reserve
	}
	x.purse, x.isle = outer, nil
	if errors.Is(failure, scope.ErrTooMuch) {
		return failure
	}
	is.Next, is.Taken = next, g.root
	is.taken[g.mut.ID] = failure != nil || x.entered > entered
	if failure == nil {
		return nil
	}
	is.Aside++
	a := scope.SetAside{Entry: g.entries[0].Place.Index, Mutation: g.mut.ID, Author: g.mut.Author, Reason: reason(failure), Time: m.block.Header.Time}
	for _, p := range g.entries {
		is.aside[string(p.Entry.Key)] = a
	}
	m.entry(lineage.Entry{Class: lineage.SetAside, Key: g.entries[0].Entry.Key, Posterior: g.mut.ID, Reason: told + "; " + a.Reason}, nil)
	return nil
}

// toldOf is how the reason of each entry of a mutation begins that an island made first.
func toldOf(id aweigh.ScopeID, mut *scope.CheckedMutation) string {
	told := fmt.Sprintf("island %s: %s by %s", id, mut.ID, mut.Author)
	for _, more := range []string{"; for " + mut.Caller, "; " + mut.Justification} {
		if more != "; for " && more != "; " {
			told += more
		}
	}
	return told
}

// nameOf is how an approval of keys is named in words.
func nameOf(a *scope.Approval) string {
	what := "changes"
	if a.Matter == scope.Deletions {
		what = "deletions"
	}
	return fmt.Sprintf("%s below %q", what, a.Prefix)
}

// stillThere reports what a mutation of an island named that is not as the island found it, but for what the island
// changed itself.
func (m *Model) stillThere(is *isle, id aweigh.ScopeID, g *group) error {
	for _, key := range g.named() {
		if failure := m.spend(2); failure != nil {
			return failure
		}
		if _, dirty := is.aside[key]; dirty {
			return errors.New("an earlier change of it in the island did not stand")
		}
		if m.changedSince(is, id, key, g.fresh(key)) {
			return errors.New("it was changed in the scope meanwhile")
		}
	}
	return nil
}

// changedSince reports whether the newest change of a key that is on record is of the scope, and newer than what an
// island found. Of what is not there any more, and was deleted, a compaction may leave nothing.
func (m *Model) changedSince(is *isle, id aweigh.ScopeID, key string, fresh bool) bool {
	if len(m.stored.of[key]) == 0 {
		return !fresh && m.view.Compacted > is.Revision
	}
	for i := len(m.revisions) - 1; i > 0 && m.revisions[i].number > is.Revision; i-- {
		for j := len(m.revisions[i].events) - 1; j >= 0; j-- {
			if c := &m.revisions[i].events[j]; string(c.kv.Key) == key {
				return c.isle != id
			}
		}
	}
	return false
}
