package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/lthash"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

const (
	// handKeys and handBytes bound what one delegation hands over: it is done in one block, by all anchors that vote
	// on the block.
	handKeys  = 50_000
	handBytes = 32 << 20
)

// Child is the scope that a decision to delegate a prefix founds.
type Child struct {
	_       struct{} `cbor:",toarray"`
	Prefix  []byte
	Name    string // for people
	Policy  Policy
	Anchors []Anchor // ordered by the IDs of their keys
}

// Check reports whether such a scope can be founded, as far as the Child alone shows.
func (c *Child) Check() error {
	if len(c.Name) > maxAnchorName {
		return fmt.Errorf("a scope's name has at most %d bytes", maxAnchorName)
	}
	if err := plain.Name(c.Name); err != nil {
		return fmt.Errorf("a scope: %w", err)
	}
	if string(c.Prefix) == "\x00" { // as the end of a range it would mean all keys
		return fmt.Errorf("the prefix %q cannot be delegated", c.Prefix)
	}
	peers := make(map[string]bool, len(c.Anchors))
	for i := range c.Anchors {
		a := &c.Anchors[i]
		if len(a.Name) == 0 || len(a.Name) > maxAnchorName || len(a.Peer) > maxPeerName {
			return fmt.Errorf("an anchor needs a name of 1 to %d bytes and a peer of at most %d", maxAnchorName, maxPeerName)
		}
		if a.Peer != "" && peers[a.Peer] {
			return fmt.Errorf("the node %s cannot hold two anchors", a.Peer)
		}
		peers[a.Peer] = true
	}
	_, err := c.some().Check()
	return err
}

// some is a genesis of such a scope, wherever and whenever it is founded.
func (c *Child) some() Genesis {
	return c.genesis(1, Descent{Network: aweigh.Hash{1}, Parent: aweigh.Hash{1}, Depth: 1, Height: 1, Revision: 1})
}

func (c *Child) genesis(at aweigh.Instant, d Descent) Genesis {
	d.Prefix = c.Prefix
	return Genesis{Format: Format, Name: c.Name, Time: at, Policy: c.Policy, Anchors: c.Anchors, Descent: &d}
}

// delegable reports why a prefix cannot be handed to a child as things stand.
func (s *State) delegable(c *Child, own *region, p *Policy) (failure, err error) {
	switch {
	case !bytes.HasPrefix(c.Prefix, own.prefix) || len(c.Prefix) == len(own.prefix):
		return fmt.Errorf("%w: %q is not a part of %q", ErrElsewhere, c.Prefix, own.prefix), nil
	case len(own.given.touching(c.Prefix, PrefixEnd(c.Prefix))) > 0:
		return fmt.Errorf("%w: a scope has a prefix of %q, or that begins so, already; fold that first to put one between", ErrElsewhere, c.Prefix), nil
	}
	b, failure, err := s.binds(p)
	if failure == nil && err == nil {
		failure = b.admits(&c.Policy)
	}
	return failure, err
}

// binds returns the bound on the children that a scope founds under a policy;
// failure is the reason why it can found none.
func (s *State) binds(p *Policy) (b Bound, failure, err error) {
	g, err := s.Genesis()
	if err != nil {
		return b, nil, err
	}
	b, failure = g.bound().below()
	return b.with(p.Children), failure, nil
}

// handover is the content that goes to a child with a prefix.
type handover struct {
	keys      []KeyValue // newest versions, as they stand in the parent
	lists     map[aweigh.UID]*aliases
	named     []aweigh.UID // of lists, in order of a first key
	redirects []Redirect
	received  []receivedAt
	leases    map[int64]*lease // with what is handed over attached
	order     []int64          // of leases
	charges   passedOn
}

// delegate hands a prefix to a child, or records why it cannot be done any more.
func (x *execution) delegate(d *decided) error {
	_, err := x.give(d)
	return err
}

// give is delegate, and tells the recorded reason.
func (x *execution) give(d *decided) (failure, err error) {
	child := d.Decision.Child
	x.begin(&CheckedMutation{ID: aweigh.Hash(d.Motion), Mutation: Mutation{Author: d.By, Class: Govern}})
	own, err := x.region()
	if err != nil {
		return nil, err
	}
	failure, err = x.next.delegable(child, own, x.policy)
	if failure == nil && err == nil { // decisions that take effect together apply together
		failure, err = x.next.delegable(child, own, &x.next.epoch.Policy)
	}
	if err != nil {
		return nil, err
	}
	var h handover
	if failure == nil {
		if failure, err = h.gather(x, child.Prefix, func(int, int) error { return nil }); err != nil {
			return nil, err
		}
	}
	if failure != nil {
		return failure, x.dismiss(d, child.Prefix, failure)
	}
	parent, err := x.next.Genesis()
	if err != nil {
		return nil, err
	}
	bound, _, err := x.next.binds(x.policy)
	bound = bound.with(x.next.epoch.Policy.Children)
	if err != nil {
		return nil, err
	}
	if d.Decision.byItself() && bound.Notice == 0 {
		bound.Notice = leastNotice // so that it can be taken back
	}
	at, head := x.place(), &x.next.head
	depth := uint32(1)
	if parent.Descent != nil {
		depth = parent.Descent.Depth + 1
	}
	g, ops, err := h.newGenesis(child, x.block.Header.Time, Descent{
		Network: head.Network, Started: head.Started, Parent: head.Scope, Depth: depth,
		Height: x.block.Header.Height, Block: x.block.Hash(), Entry: x.nextEntry(), Revision: at.main,
		Keys: int64(len(h.keys)), Bound: bound,
	}, d)
	if err != nil {
		return nil, err
	}
	x.ops = append(x.ops, ops...)
	x.enter(lineage.Entry{Class: lineage.Delegate, Key: child.Prefix, Posterior: g.Hash(), Reason: d.Decision.Reason})
	if err := h.leave(x); err != nil {
		return nil, err
	}
	head.Revision, head.Clocked = at.main, true
	head.Delegated++
	x.setLeaf(child.Prefix, HoldsScope, g.Hash(), false)
	x.result.Founded = append(x.result.Founded, g)
	given := append(slices.Clone(own.given), Delegation{
		Prefix: child.Prefix, Child: g.Hash(), Revision: at.main, Height: head.Height + 1, ByItself: d.Decision.byItself(),
	})
	slices.SortFunc(given, func(a, b Delegation) int { return bytes.Compare(a.Prefix, b.Prefix) })
	x.next.own = own.giving(given)
	return nil, x.replace(x.space.at(atDelegated, child.Prefix...), delegated{
		Genesis: g.Encode(), Revision: at.main, Height: x.block.Header.Height, ByItself: d.Decision.byItself(),
	})
}

// region is that of the scope as it is so far.
func (x *execution) region() (*region, error) { return x.next.region() }

// gather collects the content that goes with a prefix, and charges for it step by step;
// failure is the reason why it cannot go.
func (h *handover) gather(x *execution, prefix []byte, charge func(visits, bytes int) error) (failure, err error) {
	size := 0
	end := PrefixEnd(prefix)
	if away, err := x.departs(prefix, end, false); away != nil || err != nil {
		return away, err
	}
	tooMuch := fmt.Errorf("%q holds more than the %d keys and %d MiB that can be handed over at once; delegate longer prefixes one by one", prefix, x.bounds.HandKeys, x.bounds.HandBytes>>20)
	err = x.each(prefix, end, 1<<63-1, nil, func(k, record []byte) error {
		v, err := x.decode(k, record)
		if err != nil {
			return err
		}
		escaped, _, _ := x.space.splitVersion(k)
		v.Key = bytes.Clone(keyOf(escaped))
		if size += len(v.Key) + len(v.Value); len(h.keys) >= x.bounds.HandKeys || size > x.bounds.HandBytes {
			failure = tooMuch
		} else if failure = charge(1, len(k)+len(record)); failure == nil {
			h.keys = append(h.keys, v)
			return nil
		}
		return errEnough
	})
	if failure != nil || err != nil {
		return failure, ignore(err, errEnough)
	}
	h.lists, h.leases = make(map[aweigh.UID]*aliases), make(map[int64]*lease)
	for i := range h.keys {
		v := &h.keys[i]
		if v.Lease != 0 {
			if err := h.lease(x, v); err != nil {
				return nil, err
			}
		}
		if x.names.Objects == 0 || h.lists[v.UID] != nil {
			continue
		}
		list, err := x.aliases(v.UID)
		if err != nil {
			return nil, err
		}
		if list == nil {
			continue
		}
		for i := range list.Held {
			if key := list.Held[i].Key; !bytes.HasPrefix(key, prefix) {
				return fmt.Errorf("%q and %q name one object: take one name away first, for an object lives in one scope", v.Key, key), nil
			}
		}
		h.lists[v.UID] = list
		h.named = append(h.named, v.UID)
	}
	if h.charges, err = x.passOn(h.keys, h.order); err != nil {
		return nil, err
	}
	room := x.bounds.HandKeys - len(h.keys)
	if h.received, err = x.receivedBelow(prefix, room+1); err != nil {
		return nil, err
	}
	for i := range h.received {
		size += len(h.received[i].Key) + receivedBytes
	}
	if room -= len(h.received); room < 0 || size > x.bounds.HandBytes {
		return tooMuch, nil
	}
	if failure := charge(len(h.received), 0); failure != nil || x.names.Redirects == 0 {
		return failure, nil
	}
	if failure := charge(1, 0); failure != nil {
		return failure, nil
	}
	if h.redirects, err = x.redirects(prefix, end, room+1); err != nil {
		return nil, err
	}
	before := size
	for i := range h.redirects {
		size += len(h.redirects[i].Key) + len(h.redirects[i].To)
	}
	if len(h.redirects) > room || size > x.bounds.HandBytes {
		return tooMuch, nil
	}
	return charge(len(h.redirects), size-before), nil
}

// errEnough ends a visit.
var errEnough = errors.New("enough")

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// lease takes the lease of a key along.
func (h *handover) lease(x *execution, v *KeyValue) error {
	l := h.leases[v.Lease]
	if l == nil {
		was, ok, err := x.lease(v.Lease)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q names lease %x, which is not there", ErrCorrupt, v.Key, uint64(v.Lease))
		}
		if err != nil {
			return err
		}
		l = &lease{ttl: was.ttl, expires: was.until(x.next.head.Resumed), keeper: was.keeper}
		h.leases[v.Lease] = l
		h.order = append(h.order, v.Lease)
	}
	l.keys++
	l.bytes += v.size()
	return nil
}

// leave removes the content that was handed over from the parent. Its history stays.
func (h *handover) leave(x *execution) error {
	x.entries = slices.Grow(x.entries, len(h.keys))
	x.changed = slices.Grow(x.changed, len(h.keys))
	for i := range h.keys {
		if err := x.attach(&h.keys[i], &KeyValue{}); err != nil {
			return err
		}
		went := asVersion(h.lists[h.keys[i].UID].before(h.keys[i].Key) + h.keys[i].Version)
		if err := x.retire(&h.keys[i], lineage.HandedOver, lineage.HandedOver, went); err != nil {
			return err
		}
	}
	for i := range h.received {
		x.names.Received--
		if err := x.replace(x.space.received(h.received[i].Key, h.received[i].ID), nil); err != nil {
			return err
		}
	}
	for i := range h.redirects {
		r := &h.redirects[i]
		if err := x.drops(x.space.redirectExpiry(r.Until, r.Key), r.Key); err != nil {
			return err
		}
	}
	return nil
}

// handedAs begins the reason of the entry of an object that goes to another scope.
const handedAs = "as version "

func asVersion(number int64) string { return handedAs + strconv.FormatInt(number, 10) }

// parseVersion reads the reason of an entry of class HandedOver or Left: the number of the version of the object that
// went.
func parseVersion(reason string) (number int64, ok bool) {
	rest, ok := strings.CutPrefix(reason, handedAs)
	rest, _, _ = strings.Cut(rest, " ")
	number, err := strconv.ParseInt(rest, 10, 64)
	return number, ok && err == nil
}

// newGenesis makes the child's genesis and the ops that make its state.
func (h *handover) newGenesis(c *Child, at aweigh.Instant, d Descent, by *decided) (Genesis, []kv.Op, error) {
	var b founding
	var held int64
	priors := make([]aweigh.Hash, len(h.keys))
	chains := make(map[aweigh.UID]int64, len(h.lists)) // newest entry of an object with several names, plus one
	entries := make([]lineage.Entry, len(h.keys))
	for i := range h.keys {
		v := h.keys[i]
		priors[i] = v.Digest()
		v.Entry = int64(i)
		class, prev := lineage.TakenOver, int64(0)
		if list := h.lists[v.UID]; list != nil {
			if prev = chains[v.UID]; prev != 0 {
				class = lineage.AliasFollow
			}
			chains[v.UID] = v.Entry + 1
		}
		if class == lineage.TakenOver {
			b.ops = append(b.ops, kv.Set(b.space.at(atObject, v.UID[:]...), object{Key: v.Key}.record()))
		}
		if v.Lease != 0 {
			b.ops = append(b.ops, kv.Set(b.space.leaseKey(v.Lease, v.Key), nil))
		}
		k, record := b.space.version(v.Key, v.at()), v.record()
		held += recordBytes(k, record)
		entries[i] = lineage.Entry{
			Class: class, Index: uint32(i), Mutation: aweigh.Hash(by.Motion), Author: by.By, Key: v.Key, Object: v.UID, Prev: prev,
			Revision: d.Revision, Prior: priors[i], Posterior: b.put(k, record),
		}
		b.holds.add(HoldsVersion, v.Key, entries[i].Posterior)
		b.enter(entries[i])
	}
	for _, u := range h.named {
		list := *h.lists[u]
		list.Last = chains[u]
		b.put(b.space.at(atAliases, u[:]...), canon.Encode(list))
	}
	for i := range h.redirects {
		r := &h.redirects[i]
		b.put(b.space.redirect(r.Key), canon.Encode(redirect{Object: r.Object, To: r.To, Until: r.Until}))
		b.ops = append(b.ops, kv.Set(b.space.redirectExpiry(r.Until, r.Key), nil))
	}
	for i := range h.received {
		r := &h.received[i]
		b.put(b.space.received(r.Key, r.ID), canon.Encode(r.Received))
	}
	if n := (names{Objects: int64(len(chains)), Redirects: int64(len(h.redirects)), Received: int64(len(h.received))}); n != (names{}) {
		b.put(b.space.at(atNames), canon.Encode(n))
	}
	var due aweigh.Instant
	for _, id := range h.order {
		l := h.leases[id]
		b.put(b.space.leaseAt(id), l.record())
		b.ops = append(b.ops, kv.Set(b.space.leaseEnd(l.expires, id), nil))
		due = aweigh.Earliest(due, l.expires)
	}
	h.charges.put(&b)
	d.Handed = b.digest()
	g := c.genesis(at, d)
	id := g.Hash()
	s, ops, err := begin(&g)
	if err != nil {
		return g, nil, err
	}
	policy, roster := g.Policy.Hash(), s.epoch.Roster.Hash()
	for i := range entries {
		entries[i].Scope, entries[i].Policy, entries[i].Roster = id, policy, roster
	}
	log := lineage.Open(nil, s.space.at(atLineage), 0)
	for part := range slices.Chunk(entries, entriesAtOnce) {
		more, err := log.Append(part...)
		if err != nil {
			return g, nil, err
		}
		ops = append(ops, more...)
	}
	root, err := log.Root()
	if err != nil {
		return g, nil, err
	}
	s.head.LineageSize, s.head.LineageRoot = log.Size(), root
	s.head.Leases, s.head.LeaseDue, s.head.Bytes = int64(len(h.order)), due, held
	s.sum = &b.sum
	s.head.Current = b.holds.finish().Root()
	s.head.Digest = s.digest()
	for i := range b.ops { // now that the child's identity is known
		copy(b.ops[i].Key, s.space[:])
	}
	return g, append(append(ops, b.ops...), s.write()), nil
}

// founding makes records of a scope whose identity follows from them.
type founding struct {
	takeover
	space   space
	ops     []kv.Op
	holds   growing
	scratch []byte
	lanes   lthash.Lanes
}

func (b *founding) put(k, record []byte) (h aweigh.Hash) {
	h, b.scratch = element(b.scratch, k, record)
	b.sum.Add(h, &b.lanes)
	b.ops = append(b.ops, kv.Set(k, record))
	return h
}
