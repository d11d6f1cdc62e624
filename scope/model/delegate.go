package model

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// hands does what the end of an epoch does about prefixes, in the order that a node tells: it hands them to scopes of
// their own, and takes them back.
func (m *Model) hands() {
	for i := range m.block.told.Log {
		switch e := &m.block.told.Log[i]; e.Class {
		case lineage.Delegate:
			m.delegate(e)
		case lineage.Folded:
			m.comeHome(e)
		}
	}
	m.orders()
}

// delegate hands a prefix to a scope of its own, as an entry says.
func (m *Model) delegate(e *lineage.Entry) {
	d := scope.Delegation{Prefix: e.Key, Child: e.Posterior, Revision: m.next(), Height: m.view.Height, ByItself: e.Reason != ""}
	m.unmodelled("delegation")
	mut := new(scope.CheckedMutation) // of the motion by which it goes
	mut.ID, mut.Author, mut.Justification, mut.Caller = e.Mutation, e.Author, e.Justification, e.Caller
	m.begin(mut)
	m.founded[d.Child] = m.takeoverOf(m.block.keys, d.Prefix)
	for _, v := range pairs(m.block.keys, d.Prefix, scope.PrefixEnd(d.Prefix)) {
		number := m.view.number(v)
		m.unlist(v.UID, string(v.Key))
		m.deleteKey(v, lineage.Entry{Class: lineage.HandedOver, Reason: fmt.Sprint("as version ", number)}, true)
		m.handed[v.UID] = handed{entry: m.chains[v.UID] - 1, key: string(v.Key)}
		m.went[m.chains[v.UID]-1] = number
	}
	for _, key := range slices.Sorted(maps.Keys(m.view.redirects)) {
		if bytes.HasPrefix([]byte(key), d.Prefix) {
			delete(m.view.redirects, key)
		}
	}
	maps.DeleteFunc(m.view.received, func(about string, _ bool) bool { return strings.HasPrefix(about, string(d.Prefix)) })
	m.commit()
	m.view.Revision, m.view.clocked = d.Revision, true // also where no key went
	m.view.given = append(m.view.given, d)
}

// takeover is what a scope begins with.
type takeover struct {
	keys      []scope.KeyValue
	leases    map[int64]Lease
	objects   map[aweigh.UID]object
	redirects map[string]scope.Redirect
	charges   map[string]charge
	received  map[string]bool
}

// takeoverOf is what is handed over of some keys with a prefix.
func (m *Model) takeoverOf(keys map[string]scope.KeyValue, prefix []byte) *takeover {
	v := m.view
	t := &takeover{leases: make(map[int64]Lease), objects: make(map[aweigh.UID]object), redirects: make(map[string]scope.Redirect)}
	t.charges, t.received = make(map[string]charge), make(map[string]bool)
	for about, taken := range v.received { // order-free: each for itself
		if strings.HasPrefix(about, string(prefix)) {
			t.received[about] = taken
		}
	}
	takes := func(of string) {
		if c, ok := v.charges[of]; ok {
			t.charges[of] = c
		}
	}
	for _, kv := range pairs(keys, prefix, scope.PrefixEnd(prefix)) {
		t.keys = append(t.keys, kv)
		takes(ofKey + string(kv.Key))
		if o, ok := v.objects[kv.UID]; ok {
			t.objects[kv.UID] = o
		}
		if l, ok := v.leases[kv.Lease]; ok {
			t.leases[kv.Lease] = Lease{TTL: l.TTL, Expires: l.until(v.resumed), Keeper: l.Keeper}
			takes(leaseCharge(kv.Lease))
		}
	}
	for key, r := range v.redirects { // order-free: each for itself
		if bytes.HasPrefix([]byte(key), prefix) {
			t.redirects[key] = r
		}
	}
	return t
}

// Child is the model of a scope that the parent founded, with what was handed over to it; nil if the parent's has not
// come as far.
func Child(g scope.Genesis, parent *Model) *Model {
	if t := parent.founded[g.Hash()]; t != nil {
		return below(g, t)
	}
	return nil
}

// Island is the model of an island that anchors of a scope founded on top of a block; nil if the scope's model has not
// come as far.
func Island(g scope.Genesis, of *Model) *Model {
	d, v := g.Descent, of.At(g.Descent.Height)
	if v == nil {
		return nil
	}
	t := &takeover{leases: make(map[int64]Lease), objects: make(map[aweigh.UID]object), redirects: make(map[string]scope.Redirect), charges: make(map[string]charge)}
	for _, kv := range pairs(of.asOf(v.Revision), d.Prefix, scope.PrefixEnd(d.Prefix)) {
		kv.Lease = 0
		t.keys = append(t.keys, kv)
		if o, ok := v.objects[kv.UID]; ok {
			t.objects[kv.UID] = o
		}
	}
	for key, r := range v.redirects { // order-free: each for itself
		if bytes.HasPrefix([]byte(key), d.Prefix) {
			t.redirects[key] = r
		}
	}
	return below(g, t)
}

// below is the model of a scope that begins with what was taken over.
func below(g scope.Genesis, t *takeover) *Model {
	m, d := open(g), g.Descent
	v := m.view
	v.clocked, v.Revision, v.Compacted, v.Lineage = true, d.Revision+1, d.Revision+1, d.Keys
	v.leases, v.objects, v.redirects, v.charges = t.leases, t.objects, t.redirects, t.charges
	if t.received != nil {
		v.received = t.received
	}
	keys := make(map[string]scope.KeyValue)
	for i, kv := range t.keys {
		kv.Entry = int64(i)
		keys[string(kv.Key)] = kv
		m.chains[kv.UID], m.walks[kv.UID] = kv.Entry+1, m.walks[kv.UID]+1
		m.stored.add(&kv)
	}
	m.revisions = []revision{{number: v.Revision, keys: keys}}
	m.stored.collected = place{revision: d.Revision + 2}
	v.bytes = m.stored.bytes
	return m
}
