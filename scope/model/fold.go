package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// homing is how far a scope has come home that was ordered to, or that asks for it.
type homing struct {
	child aweigh.ScopeID
	order aweigh.Hash // zero: there is none yet
	asks  bool        // the way was shown to where the scope is quiet
	at    []byte      // the encoded epoch to which the way was shown; empty: the genesis
	home  *scope.Home // nil until the way leads to the end
	parts []aweigh.Hash
	came  [][]byte // parts
}

func (h *homing) whole() bool { return h.home != nil && len(h.came) == len(h.parts) }

// fold is that a prefix which went to a scope came home.
type fold struct {
	prefix     []byte
	went, home int64 // revisions
}

// orders looks for orders that scopes come home, in what the block entered.
func (m *Model) orders() {
	for i := range m.block.told.Log {
		e := &m.block.told.Log[i]
		i := slices.IndexFunc(m.view.given, func(d scope.Delegation) bool { return bytes.Equal(d.Prefix, e.Key) })
		if is := m.homings[string(e.Key)]; e.Class == lineage.Failed && is != nil && is.asks && is.order == (aweigh.Hash{}) {
			delete(m.homings, string(e.Key)) // something else took effect; it may ask again
		}
		if e.Class != lineage.Revoked || i < 0 {
			continue
		}
		if !m.folding[e.Mutation] && e.Reason == "" {
			m.view.given[i].Revocation = new(scope.Revocation) // to others
			continue
		}
		is := m.homings[string(e.Key)]
		if is == nil {
			is = &homing{child: m.view.given[i].Child}
		}
		if e.Reason != "" && !is.asks {
			m.block.differ = append(m.block.differ, fmt.Sprintf("%q is ordered to come home by itself, and did not ask", e.Key))
		}
		ordered := *is
		ordered.order = e.Posterior
		m.homings[string(e.Key)] = &ordered
	}
}

// bring takes the next step in which a scope comes home.
func (m *Model) bring(mut *scope.CheckedMutation) error {
	c := mut.Brings
	if _, seated := m.seat(mut.Author); !seated {
		return fmt.Errorf("%w: only the node of an anchor can bring in what another scope decided", scope.ErrDenied)
	}
	if failure := m.spend(bringCost(mut)); failure != nil {
		return failure
	}
	none, other := errors.New("scope: no such scope was ordered to come home"), errors.New("scope: another step of what comes home is next")
	is := m.homings[string(c.Prefix)]
	if is == nil || is.order == (aweigh.Hash{}) {
		i := slices.IndexFunc(m.view.given, func(d scope.Delegation) bool { return bytes.Equal(d.Prefix, c.Prefix) })
		if i < 0 || m.view.given[i].Revocation != nil || len(c.Part) > 0 {
			return none
		}
		if failure := m.mayAsk(mut, &m.view.given[i]); failure != nil {
			return failure
		}
		if is == nil {
			is = &homing{child: m.view.given[i].Child}
		}
	}
	next := *is
	if len(c.Part) > 0 {
		if n := len(next.came); next.home == nil || next.whole() || c.Index != int64(n) || scope.PartHash(c.Part) != next.parts[n] {
			return other
		}
		next.came = append(slices.Clone(next.came), c.Part)
	} else {
		genesis := len(next.at) == 0 && len(c.Epoch) == 0 && scope.GenesisHash(c.Genesis) == next.child
		if epoch := len(next.at) > 0 && bytes.Equal(c.Epoch, next.at); next.home != nil || !genesis && !epoch {
			return other
		}
		e := c.Reached()
		if e.Home != nil && e.Home.Order != next.order {
			return none
		}
		next.at, next.home, next.parts, next.asks = e.Encode(), e.Home, c.Parts, e.Quiet && m.alike(e)
	}
	if next.whole() && next.home.Revision >= m.next() {
		return errors.New("scope: the time of the scope that comes home is ahead of this one's")
	}
	m.homings[string(c.Prefix)] = &next
	return nil
}

// mayAsk reports why a scope may not show, before any order, that it is quiet. It takes from a node whether a decision
// waits.
func (m *Model) mayAsk(mut *scope.CheckedMutation, d *scope.Delegation) error {
	const waits = "a decision waits for the end of the epoch"
	if r, _ := m.block.told.Outcome(mut.ID, mut.ID); r.Code == scope.Failed && r.Reason == waits {
		m.unmodelled("waiting decision")
		return errors.New("scope: " + waits)
	}
	no := func(why string, args ...any) error {
		return fmt.Errorf("scope: no such scope was ordered to come home, and it does not come home by itself: "+why, args...)
	}
	switch fold := m.block.told.Epoch.Policy.Topology.Fold; {
	case !d.ByItself:
		return no("a decision founded it")
	case fold != scope.ConductAct:
		return no("the policy of the scope above has topology.fold %s", fold)
	}
	return nil
}

// alike reports whether a scope below has the same anchors, and the same policy in all but its topology.
func (m *Model) alike(below *scope.Epoch) bool {
	here := m.block.told.Epoch
	a, b := here.Policy, below.Policy
	a.Topology, b.Topology = scope.Topology{}, scope.Topology{}
	return a.Hash() == b.Hash() && slices.EqualFunc(here.Roster.Anchors, below.Roster.Anchors, func(x, y scope.Anchor) bool {
		return x.Key.ID() == y.Key.ID()
	})
}

// bringCost is what a step may cost.
func bringCost(mut *scope.CheckedMutation) int64 {
	c := mut.Brings
	return 256 + int64(len(c.Part)+len(c.Epoch)+32*len(c.Parts))/1024
}

// homecoming is what a scope held, as it comes home.
type homecoming struct {
	takeover
	order []int64 // of leases
}

// read reads the parts of what a scope held.
func (h *homing) read() *homecoming {
	t := &homecoming{takeover: takeover{
		leases: make(map[int64]Lease), objects: make(map[aweigh.UID]object), redirects: make(map[string]scope.Redirect), charges: make(map[string]charge), received: make(map[string]bool),
	}}
	for _, raw := range h.came {
		var items []scope.Item
		must.OK(canon.Decode(raw, &items), "reading a part of what a scope held")
		for _, it := range items {
			t.take(it)
		}
	}
	return t
}

func (t *homecoming) take(it scope.Item) {
	decode := func(v any) { must.OK(canon.Decode(it.Value, v), "reading a record of what a scope held") }
	id := func() int64 { return int64(binary.BigEndian.Uint64(it.Key)) }
	charges := func(of string) {
		var c struct {
			_       struct{} `cbor:",toarray"`
			Entries []string
			Amount  int64
		}
		decode(&c)
		t.charges[of] = charge{c.Entries, c.Amount}
	}
	switch it.Kind {
	case scope.ItemLease: // TTL, expiry, and what is attached, which follows from the keys
		var n [4]uint64
		rest := it.Value
		for i := range n {
			v, size := binary.Uvarint(rest)
			n[i], rest = v, rest[size:]
		}
		t.leases[id()] = Lease{TTL: int64(n[0]), Expires: aweigh.Instant(n[1]), Keeper: aweigh.Hash(rest)}
		t.order = append(t.order, id())
	case scope.ItemLeaseCharge:
		charges(leaseCharge(id()))
	case scope.ItemKeyCharge:
		charges(ofKey + string(it.Key))
	case scope.ItemKey:
		var v scope.KeyValue
		decode(&v)
		t.keys = append(t.keys, v)
	case scope.ItemRedirect:
		var r struct {
			_      struct{} `cbor:",toarray"`
			Object aweigh.UID
			To     []byte
			Until  aweigh.Instant
		}
		decode(&r)
		t.redirects[string(it.Key)] = scope.Redirect{Key: it.Key, To: r.To, Object: r.Object, Until: r.Until}
	case scope.ItemReceived:
		var r struct {
			_  struct{} `cbor:",toarray"`
			ID aweigh.Hash
			Is scope.Received
		}
		decode(&r)
		t.received[decisionAbout(it.Key, r.ID)] = r.Is.Taken
	case scope.ItemAliases:
		var list struct {
			_      struct{} `cbor:",toarray"`
			Last   int64
			Parent *scope.Parent
			Held   []struct {
				_      struct{} `cbor:",toarray"`
				Key    []byte
				Before int64
			}
		}
		decode(&list)
		o := object{parent: list.Parent}
		for _, h := range list.Held {
			o.held = append(o.held, held{string(h.Key), h.Before})
		}
		t.objects[aweigh.UID(it.Key)] = o
	}
}

// comeHome takes back what a scope held, as an entry says.
func (m *Model) comeHome(e *lineage.Entry) {
	m.unmodelled("homecoming")
	is := m.homings[string(e.Key)]
	i := slices.IndexFunc(m.view.given, func(d scope.Delegation) bool { return bytes.Equal(d.Prefix, e.Key) })
	if is == nil || !is.whole() || i < 0 {
		m.block.differ = append(m.block.differ, fmt.Sprintf("%q comes home, and was not ordered to, or not all is there", e.Key))
		return
	}
	t := is.read()
	if below := m.block.told.Below; below != nil {
		if of := below(is.child); of != nil {
			m.block.differ = append(m.block.differ, of.closedWith(t)...)
		}
	}
	m.begin(new(scope.CheckedMutation)) // no client's
	m.settles(t.received)
	m.takeLeases(t)
	uids := m.takeKeys(t, is.child, e.Key)
	for of, o := range t.objects { // order-free: each for itself
		m.view.objects[uids[of]] = o
	}
	for _, key := range slices.Sorted(maps.Keys(t.redirects)) {
		r, now := t.redirects[key], m.block.Header.Time
		r.Until = min(r.Until, now.Add(scope.MaxRedirect))
		named := slices.ContainsFunc(t.keys, func(v scope.KeyValue) bool { return string(v.Key) == key })
		if named || r.Until <= now || int64(len(m.view.redirects)) >= m.bounds.Redirects {
			continue
		}
		if u, ok := uids[r.Object]; ok {
			r.Object = u
		}
		m.view.redirects[key] = r
	}
	for about, taken := range t.received { // order-free: each for itself
		if _, known := m.view.received[about]; !known {
			m.view.received[about] = taken
		}
	}
	m.entry(lineage.Entry{Class: lineage.Folded, Key: e.Key, Prior: is.child, Posterior: is.order}, nil)
	next := m.next()
	m.commit()
	m.view.Revision = next // also where no key came
	m.view.folds = append(slices.Clone(m.view.folds), fold{prefix: e.Key, went: m.view.given[i].Revision, home: next})
	m.view.given = slices.Delete(slices.Clone(m.view.given), i, i+1)
	delete(m.homings, string(e.Key))
}

func (m *Model) takeLeases(t *homecoming) {
	now, all := m.block.Header.Time, m.view.leases
	for _, id := range t.order {
		l := t.leases[id]
		l.Expires = min(max(l.Expires, after(now, l.TTL)), end(now, l.TTL))
		if was, ok := all[id]; ok {
			was.Expires = max(was.Expires, min(l.Expires, end(now, was.TTL)))
			all[id] = was
			continue
		}
		all[id] = l
		m.charge(leaseCharge(id), m.pays(t.charges[leaseCharge(id)], byLeases, ""), 1)
	}
}

// takeKeys writes each key anew, and gives the identities of the objects by those that they had.
func (m *Model) takeKeys(t *homecoming, from aweigh.ScopeID, prefix []byte) map[aweigh.UID]aweigh.UID {
	uids := make(map[aweigh.UID]aweigh.UID)
	for i, v := range t.keys {
		is := lineage.Entry{Class: lineage.CameHome, Prior: v.Digest(), Reason: "from scope " + from.String()}
		u, follows := uids[v.UID]
		if follows {
			is.Class = lineage.AliasFollow
		} else {
			u = v.UID
			for hash := m.block.Hash(); !m.mayComeHome(u, prefix); hash = aweigh.Sum(hash[:]) {
				u = aweigh.NewUID(hash, uint32(i))
			}
		}
		if m.block.homes == nil {
			m.block.homes = make(map[aweigh.UID]bool)
		}
		m.block.homes[u] = true
		uids[v.UID], v.UID, v.Version = u, u, v.Version+1
		m.write(v, is)
		m.charge(ofKey+string(v.Key), m.pays(t.charges[ofKey+string(v.Key)], byBytes, string(v.Key)), int64(len(v.Key)+len(v.Value)))
	}
	return uids
}

// pays is the first entry of the policy that has such a quota and permits a key, of those to which something was
// charged below.
func (m *Model) pays(c charge, b bound, key string) []string {
	for _, a := range m.block.policy.Authors {
		if slices.Contains(c.entries, a.Name) && b.of(a.Quota) > 0 && (key == "" || a.Permits(scope.VerbPut, []byte(key))) {
			return []string{a.Name}
		}
	}
	return nil
}

// mayComeHome reports whether an object keeps its identity: none has it here, or the one that went there. With
// transfers, it may have gone on from where it went.
func (m *Model) mayComeHome(u aweigh.UID, prefix []byte) bool {
	if m.block.homes[u] {
		return false
	}
	last, went := m.handed[u]
	on := last.left || m.block.policy.Transfers || bytes.HasPrefix([]byte(last.key), prefix)
	return m.chains[u] == 0 || went && on && m.chains[u] == last.entry+1
}

// handed is that an object went to another scope: the last key of it, or that it left.
type handed struct {
	entry int64
	key   string
	left  bool
}

// closedWith is what comes home of a scope other than what the model of that says it closed with.
func (m *Model) closedWith(t *homecoming) (differ []string) {
	look := func(ok bool, format string, args ...any) {
		if !ok {
			differ = append(differ, fmt.Sprintf("of a scope that closed at height %d, ", m.view.Height)+fmt.Sprintf(format, args...))
		}
	}
	look(m.view.closed, "that did not close")
	want := m.takeoverOf(m.keys(), m.genesis.Prefix())
	look(len(t.keys) == len(want.keys), "%d keys come home, and it held %d", len(t.keys), len(want.keys))
	for i := range min(len(t.keys), len(want.keys)) {
		look(sameKv(&t.keys[i], &want.keys[i]), "%+v comes home, and it held %+v", t.keys[i], want.keys[i])
	}
	look(maps.Equal(t.received, want.received), "decisions %v come home, and it held %v", t.received, want.received)
	look(maps.Equal(t.leases, want.leases), "leases %+v come home, and it held %+v", t.leases, want.leases)
	look(maps.EqualFunc(t.redirects, want.redirects, func(a, b scope.Redirect) bool { return same(a, b) }), "redirects %+v come home, and it held %+v", t.redirects, want.redirects)
	look(maps.EqualFunc(t.charges, want.charges, func(a, b charge) bool { return a.amount == b.amount && slices.Equal(a.entries, b.entries) }),
		"charges %+v come home, and it held %+v", t.charges, want.charges)
	look(maps.EqualFunc(t.objects, want.objects, func(a, b object) bool { return same(a.parent, b.parent) && slices.Equal(a.held, b.held) }),
		"names %+v come home, and it held %+v", t.objects, want.objects)
	return differ
}

// voidAll ends all motions of a scope that goes home.
func (m *Model) voidAll() {
	for _, p := range m.docket.open() {
		m.begin(p.mut)
		m.close(p, scope.Ending{Fate: scope.Void, Reason: "the scope goes back to the one above, as that has ordered: propose it again there"})
	}
	m.view.closed = true
}

// wasElsewhere reports whether another scope decided about some of [key, end) as of a revision.
func (v *View) wasElsewhere(key, end []byte, rev int64) bool {
	return slices.ContainsFunc(v.folds, func(f fold) bool {
		return f.went <= rev && rev < f.home && scope.Overlap(key, end, f.prefix, scope.PrefixEnd(f.prefix))
	})
}

// homeSince is the revision from which on the history of [key, end) is whole.
func (v *View) homeSince(key, end []byte) (rev int64) {
	for _, f := range v.folds {
		if scope.Overlap(key, end, f.prefix, scope.PrefixEnd(f.prefix)) {
			rev = max(rev, f.home)
		}
	}
	return rev
}
