package scope

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

const (
	// mostIslands bounds the islands on record.
	mostIslands = 1024
	// maxPastTerms bounds the epochs of which an island may be taken: of shorter epochs, those of a shorter time.
	maxPastTerms = 4096
	// patienceOfIslands is for how many times its gathering a heavier island keeps others waiting.
	patienceOfIslands = 10
)

var (
	errNoAnchorsNode = errors.New("only the node of an anchor can bring in what another scope decided")
	errForeign       = errors.New("scope: the island is none of this scope")
	errOtherTerms    = errors.New("scope: the island was founded under other terms than those of this scope then, or too long ago")
	errIslandKnown   = errors.New("scope: the island is on record already")
	errChanged       = errors.New("it was changed in the scope meanwhile")
	errAfterAside    = errors.New("an earlier change of it in the island did not stand")
)

// Why a scope takes no more of an island, whatever its members do.
var (
	ErrIslandForked = errors.New("scope: the island's members certified two histories, and the scope took a part of the other one")
	ErrIslandOld    = errors.New("scope: so many islands of newer bases are on record that this one is too old to be taken: put its changes again")
)

// island is the island whose changes are being taken.
type island struct {
	id     aweigh.ScopeID
	reason string                  // of the lineage's entries: the island, the mutation and its author
	uids   map[string][]aweigh.UID // those that are left, by key
}

// islandReason begins the reason of a change that an island made first.
const islandReason = "island "

func reasonOfIsland(id aweigh.ScopeID, m *CheckedMutation) string {
	told := fmt.Sprintf("%s%s: %s by %s", islandReason, id, m.ID, m.Author)
	if m.Caller != "" {
		told += "; for " + m.Caller
	}
	if m.Justification != "" {
		told += "; " + m.Justification
	}
	return told
}

// ParseIsland reads the reason of an entry of a change that an island made first: the island, its mutation and the
// author of that.
func ParseIsland(reason string) (island aweigh.ScopeID, mutation, author aweigh.Hash, ok bool) {
	rest, ok := strings.CutPrefix(reason, islandReason)
	id, rest, found := strings.Cut(rest, ": ")
	of, by, split := strings.Cut(rest, " by ")
	by, _, _ = strings.Cut(by, "; ")
	var errs [3]error
	island, errs[0] = aweigh.ParseHash(id)
	mutation, errs[1] = aweigh.ParseHash(of)
	author, errs[2] = aweigh.ParseHash(by)
	return island, mutation, author, ok && found && split && errors.Join(errs[:]...) == nil
}

// newUID is the identity of an object that comes to be: that which an island gave it, or a new one.
func (x *execution) newUID(key []byte, sub uint32) (u aweigh.UID, err error) {
	if x.island != nil {
		if left := x.island.uids[string(key)]; len(left) > 0 {
			x.island.uids[string(key)] = left[1:]
			if _, was, err := x.r.Get(x.space.at(atObject, left[0][:]...)); err != nil {
				return u, err
			} else if !was && !x.islanders[left[0]] { // an island of liars may have given it to several
				if x.islanders == nil {
					x.islanders = make(map[aweigh.UID]bool)
				}
				x.islanders[left[0]] = true
				return left[0], nil
			}
		}
	}
	return x.unlike(aweigh.NewUID(x.mutation.ID, sub), sub)
}

// rejoin puts an island on record, or takes the next of its changes.
func (x *execution) rejoin(r *CheckedRejoining) (failure, err error) {
	if _, acts := x.epoch.seats[x.mutation.Author]; !acts {
		return denial{errNoAnchorsNode}, nil
	}
	if failure := x.spend(rejoinUnits); failure != nil {
		return failure, nil
	}
	d := r.Origin.Descent
	if d.Parent != x.next.head.Scope || d.Network != x.next.head.Network || d.Revision > x.next.head.Revision || d.Height > x.next.head.Height {
		return errForeign, nil
	}
	known, err := x.termsAt(d.Height)
	if err != nil {
		return nil, err
	}
	if known.Terms.IsZero() || r.Terms.Hash(known.Number) != known.Terms {
		return errOtherTerms, nil
	}
	k := x.space.island(r.Island)
	var is Islanded
	ok, err := x.view.record(k, &is)
	if err != nil {
		return nil, err
	}
	size := r.Final.Header.LineageSize
	switch {
	case !ok && len(r.Changes) > 0:
		return errors.New("scope: the island is not on record yet"), nil
	case !ok:
		return x.putIsland(r, k)
	case len(r.Changes) == 0 && size <= is.Size:
		return errIslandKnown, nil
	case len(r.Changes) == 0:
		is.Size = size
		x.enter(lineage.Entry{Class: lineage.Rejoined, Key: is.Prefix, Posterior: r.Island})
		return nil, x.replaceIsland(r.Island, &is)
	}
	if failure, err := x.turn(r, &is); failure != nil || err != nil {
		return failure, err
	}
	is.Size = max(is.Size, size)
	for i := range r.groups {
		waits, err := x.takeProvisional(r.Island, &is, &r.groups[i])
		if err != nil {
			return nil, err
		}
		if waits != nil && i == 0 {
			return waits, nil
		}
		if waits != nil {
			break
		}
	}
	if x.changes > 0 {
		x.next.head.Revision = x.revision()
	}
	return nil, x.replaceIsland(r.Island, &is)
}

// islandsNow are the islands on record as they are so far, by identity. They are read once in a block, as each attempt
// to bring an island in looks at all of them.
func (x *execution) islandsNow() (all []IslandRecord, err error) {
	if x.onRecord == nil {
		x.onRecord, err = x.islands()
	}
	return x.onRecord, err
}

// findIsland finds the place of an island among those that were read.
func (x *execution) findIsland(id aweigh.ScopeID) (at int, ok bool) {
	return slices.BinarySearchFunc(x.onRecord, id, func(r IslandRecord, id aweigh.ScopeID) int { return bytes.Compare(r.ID[:], id[:]) })
}

// replaceIsland changes the record of an island.
func (x *execution) replaceIsland(id aweigh.ScopeID, is *Islanded) error {
	if at, ok := x.findIsland(id); ok {
		x.onRecord[at].Islanded = *is
	}
	return x.replace(x.space.island(id), *is)
}

// putIsland puts an island on record. Its changes are taken once other islands had time to come on record, in the same
// order on all nodes.
func (x *execution) putIsland(r *CheckedRejoining, k []byte) (failure, err error) {
	all, err := x.islandsNow()
	if err != nil {
		return nil, err
	}
	ids := make([]aweigh.AnchorID, len(r.Origin.Anchors))
	for i := range r.Origin.Anchors {
		ids[i] = r.Origin.Anchors[i].Key.ID()
	}
	d, p := r.Origin.Descent, r.Terms.Policy.partition(r.Origin.Prefix())
	_, weight, _ := r.Terms.islanders(d.Prefix, ids)
	is := Islanded{
		Prefix: d.Prefix, Members: ids, Weight: weight, Height: d.Height, Revision: d.Revision, Size: r.Final.Header.LineageSize,
		Next: d.Keys, By: x.mutation.Author, Due: x.block.Header.Time.Add(p.Gather),
	}
	for _, w := range r.Terms.Weights {
		is.Total += w
	}
	for i := range all { // those that come while another one gathers are taken with it
		if o := &all[i].Islanded; o.Due > x.block.Header.Time && o.Due < is.Due {
			is.Due = o.Due
		}
	}
	if len(all) >= x.bounds.Islands {
		if failure, err := x.giveWay(all, d, r.Island); failure != nil || err != nil {
			return failure, err
		}
	}
	x.enter(lineage.Entry{Class: lineage.Rejoined, Key: d.Prefix, Posterior: r.Island})
	x.setRecord(k, canon.Encode(is))
	at, _ := x.findIsland(r.Island)
	x.onRecord = slices.Insert(x.onRecord, at, IslandRecord{ID: r.Island, Islanded: is})
	return nil, nil
}

// giveWay drops the island of the oldest base, then of the least identity, for a newer one, or returns why that one
// cannot come on record. Islands on record are newer than all that were dropped, so that none of those comes back.
func (x *execution) giveWay(all []IslandRecord, d *Descent, id aweigh.ScopeID) (failure, err error) {
	oldest := slices.MinFunc(all, func(a, b IslandRecord) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), bytes.Compare(a.ID[:], b.ID[:]))
	})
	if cmp.Or(cmp.Compare(d.Height, oldest.Height), bytes.Compare(id[:], oldest.ID[:])) < 0 {
		return ErrIslandOld, nil
	}
	if until := x.waitsUntil(&oldest.Islanded); !oldest.done() && x.block.Header.Time < until {
		return fmt.Errorf("scope: %d islands are on record, and the oldest is not complete: bring its rest, or try again after %s",
			len(all), until.Time().UTC().Format(time.RFC3339)), nil
	}
	drop, dear := [][]byte{x.space.island(oldest.ID)}, 0
	// What was taken costs nothing here: it was paid for, and its record is small.
	for _, prefix := range [][]byte{x.space.aside(oldest.ID, nil), x.space.at(atTaken, oldest.ID[:]...)} {
		if err == nil {
			dear = max(dear, len(drop))
			err = x.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
				drop = append(drop, bytes.Clone(k))
				return true
			})
		}
	}
	if err != nil {
		return nil, err
	}
	if failure := x.spend(deleteUnits * int64(dear)); failure != nil {
		return failure, nil
	}
	for _, k := range drop {
		if err := x.dropRecord(k); err != nil {
			return nil, err
		}
	}
	if at, ok := x.findIsland(oldest.ID); ok {
		x.onRecord = slices.Delete(x.onRecord, at, at+1)
	}
	return nil, nil
}

// waitsUntil is until when lighter islands wait for an island.
func (x *execution) waitsUntil(o *Islanded) aweigh.Instant {
	gather := time.Minute
	if p := x.policy.partition(o.Prefix); p != nil {
		gather = p.Gather
	}
	return o.Due.Add(patienceOfIslands * gather)
}

// turn returns why the changes of a Rejoining are not those to take now.
func (x *execution) turn(r *CheckedRejoining, is *Islanded) (failure, err error) {
	now := x.block.Header.Time
	switch first := r.Changes[0].Place.Index; {
	case first != is.Next:
		return fmt.Errorf("scope: entry %d of the island comes next, and not %d", is.Next, first), nil
	case !is.Taken.IsZero() && r.groups[0].before != is.Taken:
		return ErrIslandForked, nil
	case now < is.Due:
		return fmt.Errorf("scope: other islands have until %s to come on record", is.Due.Time().UTC().Format(time.RFC3339)), nil
	}
	all, err := x.islandsNow()
	if err != nil {
		return nil, err
	}
	for i := range all {
		o := &all[i]
		if o.ID == r.Island || o.done() || o.Due > is.Due || !o.before(o.ID, is, r.Island) {
			continue
		}
		if now < x.waitsUntil(&o.Islanded) {
			return fmt.Errorf("scope: the changes of island %s come first", o.ID.Short()), nil
		}
	}
	return nil, nil
}

// takeProvisional takes the changes of one mutation of an island, all or none. It returns why they have to wait for a
// Rejoining that reserves more. Then nothing has changed.
func (x *execution) takeProvisional(id aweigh.ScopeID, is *Islanded, g *provisional) (waits, err error) {
	if len(g.ops) == 0 {
		is.Next, is.Taken = g.after, g.root
		return nil, nil
	}
	taken := x.space.taken(id, g.mutation.ID)
	if _, again, err := x.r.Get(taken); err != nil {
		return nil, err
	} else if again { // an island of liars may say that it did something twice
		is.Next, is.Taken = g.after, g.root
		return nil, nil
	}
	entered, outer := len(x.entries), x.purse
	x.purse = purse{allowed: g.cost(), reserve: outer.reserve}
	x.room, x.grows, x.gives, x.bills, x.billed = nil, 0, 0, nil, nil // each for itself, as mutations are
	x.island = &island{id: id, reason: reasonOfIsland(id, g.mutation), uids: maps.Clone(g.uids)}
	told := x.island.reason
	p, failure, err := x.holdsStill(id, is, g)
	if err == nil && failure == nil {
		_, err = x.run(p)
		is.Stands++
	}
	if left := x.purse; !left.empty {
		outer.reserve = left.reserve
	}
	x.purse, x.island = outer, nil
	if errors.Is(failure, ErrTooMuch) {
		return failure, err
	}
	is.Next, is.Taken = g.after, g.root
	if err != nil {
		return nil, err
	}
	if failure != nil || len(x.entries) > entered {
		x.setRecord(taken, nil)
	}
	if failure == nil {
		return nil, nil
	}
	is.Aside++
	rec := SetAside{Entry: g.first, Mutation: g.mutation.ID, Author: g.mutation.Author, Reason: reason(failure), Time: x.block.Header.Time}
	// The newest change of a key is what the island ended with.
	for _, key := range g.keys {
		if err := x.replace(x.space.aside(id, key), rec); err != nil {
			return nil, err
		}
	}
	x.enter(lineage.Entry{Class: lineage.SetAside, Key: g.keys[0], Posterior: g.mutation.ID, Reason: told + "; " + rec.Reason})
	return nil, nil
}

// holdsStill plans the changes of an island's mutation; failure is the reason why they do not stand. The author must
// have the right to them, and each key that the mutation named, to look at or to change, must be as the island found
// it, but for what the island itself changed.
func (x *execution) holdsStill(id aweigh.ScopeID, is *Islanded, g *provisional) (p plan, failure, err error) {
	m := *g.mutation
	m.Txn = &Txn{Success: g.ops, Reach: m.Txn.Reach}
	by := x.mutation
	x.mutation = &m // whose author has the rights, and pays
	defer func() { x.mutation = by }()
	if failure, err = x.authorized(&m); failure == nil && err == nil {
		failure = x.next.own.ownsAll(m.Txn)
	}
	if failure == nil && err == nil {
		p, failure, err = x.plan(m.Txn)
	}
	var needed *Approval
	if failure == nil && err == nil {
		needed, failure, err = x.asked(&m, &p)
	}
	if needed != nil {
		failure = fmt.Errorf("the policy asks for approval of %s", needed.name())
	}
	if failure != nil || err != nil {
		return p, failure, err
	}
	g.mutation.Txn.Ranges(func(key, _ []byte) bool {
		failure, err = x.foundBy(id, is, key, g.sawNothing(key))
		return failure == nil && err == nil
	})
	return p, failure, err
}

// sawNothing reports whether an island's entries show that it found nothing under a key that its mutation named, or did
// not look: what it deleted and put there has entries, and what it compared may have been anything.
func (g *provisional) sawNothing(key []byte) bool {
	if fresh, changed := g.fresh[string(key)]; changed {
		return fresh
	}
	return !slices.ContainsFunc(g.mutation.Txn.Compare, func(c Compare) bool { return bytes.Equal(c.Key, key) })
}

// foundBy returns why a key is not as an island found it; empty means that it found nothing there. Where there is
// nothing now, and a compaction has dropped what the scope did meanwhile, any other key may have been deleted.
func (x *execution) foundBy(id aweigh.ScopeID, is *Islanded, key []byte, empty bool) (failure, err error) {
	if failure := x.spend(2 * lookUnits); failure != nil {
		return failure, nil
	}
	if _, aside, err := x.r.Get(x.space.aside(id, key)); err != nil {
		return nil, err
	} else if aside {
		return errAfterAside, nil
	}
	v, ok, err := x.upTo(key, math.MaxInt64)
	if err == nil && !ok && !empty && x.next.head.Compacted > is.Revision {
		return errChanged, nil
	}
	if err != nil || !ok || v.ModRevision <= is.Revision {
		return nil, err
	}
	e, err := x.entryAt(v.Entry)
	if err != nil {
		return nil, err
	}
	if by, _, _, ok := ParseIsland(e.Reason); !ok || by != id {
		return errChanged, nil
	}
	return nil, nil
}

// entryAt is an entry of the lineage, those of this block included.
func (x *execution) entryAt(index int64) (e lineage.Entry, err error) {
	if n := index - x.next.head.LineageSize; n >= 0 && n < int64(len(x.entries)) {
		return x.entries[n], nil
	}
	e, ok, err := x.log.Entry(index)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no entry %d in the lineage", ErrCorrupt, index)
	}
	return e, err
}
