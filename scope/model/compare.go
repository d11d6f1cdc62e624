package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Differences is what a state shows otherwise than a view of it, each in one line.
type Differences []string

func (d *Differences) look(ok bool, format string, args ...any) {
	if !ok {
		*d = append(*d, fmt.Sprintf(format, args...))
	}
}

// fail reports an error of a read that must not fail.
func (d *Differences) fail(err error, what string) bool {
	d.look(err == nil, "%s: %v", what, err)
	return err != nil
}

// CompareHead compares what the head of a state says.
func (v *View) CompareHead(h scope.Head) (d Differences) {
	var due aweigh.Instant
	for _, l := range v.leases { // order-free: the least
		due = aweigh.Earliest(due, l.Expires)
	}
	d.look(h.Height == v.Height && h.Block == v.Block && h.Time == v.Time, "height %d, block %s, time %d; want %d, %s, %d",
		h.Height, h.Block.Short(), h.Time, v.Height, v.Block.Short(), v.Time)
	d.look(h.Revision == v.Revision && h.Compacted == v.Compacted, "revision %d, compacted %d; want %d, %d", h.Revision, h.Compacted, v.Revision, v.Compacted)
	d.look(h.Leases == int64(len(v.leases)) && h.LeaseDue == due && h.Resumed == v.resumed, "%d leases, due at %d, resumed at %d; want %d, %d, %d",
		h.Leases, h.LeaseDue, h.Resumed, len(v.leases), due, v.resumed)
	d.look(h.LineageSize == v.Lineage && h.Delegated == int64(len(v.given)) && h.Clocked == v.clocked, "%d entries, %d prefixes delegated, clocked: %v; want %d, %d, %v",
		h.LineageSize, h.Delegated, h.Clocked, v.Lineage, len(v.given), v.clocked)
	d.look(h.Folded == int64(len(v.folds)) && h.Closed == v.closed, "%d prefixes came home, closed: %v; want %d, %v", h.Folded, h.Closed, len(v.folds), v.closed)
	root := v.current()
	d.look(h.Current == root, "keys with root %s; want %s", h.Current.Short(), root.Short())
	d.look(h.Bytes == v.bytes, "versions of %d bytes; want %d", h.Bytes, v.bytes)
	d.look(h.Docket == v.docket, "motions %+v; want %+v", h.Docket, v.docket)
	d.look(h.Access == v.access.Revision || h.Access == 0 && v.access.Revision == 1, "users and roles of revision %d; want %d", h.Access, v.access.Revision)
	return d
}

// CompareSince compares what the blocks after a height changed: keys, with their leases, events and receipts.
func (v *View) CompareSince(s *scope.State, height aweigh.Height) (d Differences) {
	before := v.model.blocks[height]
	from := max(before.Revision+1, v.Compacted)
	keys := make(map[string]bool)
	for _, r := range v.model.since(before.Revision) {
		for _, c := range r.events {
			if r.number <= v.Revision {
				keys[string(c.kv.Key)] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v.compareRange(&d, s, []byte(key), nil, scope.Range{})
	}
	if from <= v.Revision {
		v.compareEvents(&d, s, from, []byte{0}, []byte{0}, math.MaxInt32)
	}
	v.compareUsages(&d, s)
	for _, id := range v.byEnd() {
		if l, ok := before.leases[id]; !ok || l != v.leases[id] {
			v.compareLease(&d, s, id)
		}
	}
	for _, id := range slices.Backward(v.model.order) {
		if v.model.receipts[id].Height <= height {
			break
		}
		v.compareReceipt(&d, s, id)
	}
	return d
}

// Compare compares the whole of a state, and reads that are drawn by pick, which gives a number below n.
func (v *View) Compare(s *scope.State, pick func(n int) int) (d Differences) {
	d = v.CompareHead(s.Head())
	v.compareRange(&d, s, []byte{0}, []byte{0}, scope.Range{})
	ids, err := s.Leases()
	if !d.fail(err, "leases") {
		d.look(slices.Equal(ids, v.byEnd()), "leases %v, want %v", ids, v.byEnd())
	}
	for _, id := range v.byEnd() {
		v.compareLease(&d, s, id)
	}
	for _, id := range v.model.order {
		v.compareReceipt(&d, s, id)
	}
	v.compareNames(&d, s)
	v.compareTransfers(&d, s)
	v.compareUsages(&d, s)
	if access, err := s.Access(); !d.fail(err, "users and roles") {
		d.look(same(access, v.access), "users and roles %+v, want %+v", access, v.access)
	}
	if v == v.model.view {
		v.model.compareObjects(&d, s)
		v.model.compareMotions(&d, s)
		v.model.compareIslands(&d, s)
	}
	v.compareEvents(&d, s, max(v.Compacted, v.model.revisions[0].number), []byte{0}, []byte{0}, math.MaxInt32)
	for range 8 {
		v.compareReads(&d, s, pick)
	}
	return d
}

// Keys are all that were ever written, and one that never was, in order.
func (v *View) Keys() (all [][]byte) {
	keys := map[string]bool{"/never": true}
	for _, r := range v.model.revisions[:1] {
		for key := range r.keys { // order-free: a set
			keys[key] = true
		}
	}
	for _, r := range v.model.revisions {
		for _, c := range r.events {
			keys[string(c.kv.Key)] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, []byte(key))
	}
	return all
}

// compareReads compares a range, and the events of it from some revision on.
func (v *View) compareReads(d *Differences, s *scope.State, pick func(n int) int) {
	keys := v.Keys()
	some := func() []byte { return keys[pick(len(keys))] }
	revision := func() int64 {
		if pick(8) == 0 {
			return v.Revision + 1
		}
		return v.model.revisions[pick(len(v.model.revisions))].number
	}
	key, end := some(), []byte(nil)
	switch pick(4) {
	case 0, 1:
		key, end = []byte{0}, []byte{0}
	case 2:
		if end = some(); bytes.Compare(key, end) > 0 {
			key, end = end, key
		}
	}
	r := scope.Range{
		Limit: int64(pick(5)), Sort: scope.SortBy(pick(int(scope.ByValue) + 1)), Order: scope.Order(pick(int(scope.Descending) + 1)),
		KeysOnly: pick(4) == 0, CountOnly: pick(5) == 0,
	}
	switch pick(6) {
	case 0:
		r.MinMod = revision()
	case 1:
		r.MaxMod = revision()
	case 2:
		r.MinCreate, r.MaxCreate = revision(), revision()
	}
	if pick(3) > 0 {
		r.Revision = revision()
	}
	v.compareRange(d, s, key, end, r)
	v.compareEvents(d, s, revision(), key, end, 1+pick(5))
}

func (v *View) compareRange(d *Differences, s *scope.State, key, end []byte, r scope.Range) {
	got, err := s.Range(key, end, r)
	want, wantErr := v.Range(key, end, r)
	d.look(err == wantErr, "range %q %q %+v: %v, want %v", key, end, r, err, wantErr)
	d.look(err != nil || sameRange(&got, &want), "range %q %q %+v\n got %+v\nwant %+v", key, end, r, got, want)
}

// compareEvents reads the events from a revision on, so many at a time, as one does who watches.
func (v *View) compareEvents(d *Differences, s *scope.State, from int64, key, end []byte, most int) {
	want, wantErr := v.events(from, key, end)
	var got []scope.Event
	for next := from; next <= v.Revision || next == from; {
		events, after, err := s.Events(next, math.MaxInt64, key, end, most)
		if err != nil || wantErr != nil {
			d.look(err == wantErr, "events from %d: %v, want %v", next, err, wantErr)
			return
		}
		if d.look(after > next || next > v.Revision, "events from %d lead to %d", next, after); after <= next {
			break
		}
		got, next = append(got, events...), after
	}
	d.look(len(got) == len(want), "%d events from %d of %q %q, want %d", len(got), from, key, end, len(want))
	for i := range min(len(got), len(want)) {
		if !sameEvent(&got[i], &want[i]) {
			d.look(false, "event %d from %d of %q %q\n got %s\nwant %s", i, from, key, end, told(got[i]), told(want[i]))
			return
		}
	}
}

func told(e scope.Event) string {
	if e.Prev == nil {
		return fmt.Sprintf("%s %+v", e.Class, e.Kv)
	}
	return fmt.Sprintf("%s %+v was %+v", e.Class, e.Kv, *e.Prev)
}

func (v *View) compareLease(d *Differences, s *scope.State, id int64) {
	l := v.leases[id]
	got, ok, err := s.Lease(id)
	keys, err2 := s.LeaseKeys(id)
	if d.fail(cmp.Or(err, err2), "lease") {
		return
	}
	var want [][]byte
	for _, kv := range pairs(v.model.asOf(v.Revision), []byte{0}, []byte{0}) {
		if kv.Lease == id {
			want = append(want, kv.Key)
		}
	}
	is := scope.Granted{ID: id, TTL: l.TTL, Expires: l.until(v.resumed), Keys: len(want), Keeper: l.Keeper}
	d.look(ok && got == is, "lease %d: %v, %+v, want %+v", id, ok, got, is)
	d.look(slices.EqualFunc(keys, want, bytes.Equal), "lease %d holds %q, want %q", id, keys, want)
}

func (v *View) compareReceipt(d *Differences, s *scope.State, id aweigh.Hash) {
	want, wantOK := v.receipt(id)
	got, ok, err := s.Outcome(id)
	if !d.fail(err, "receipt") {
		d.look(ok == wantOK && (!ok || got == want), "receipt of %s: %v, %+v; want %v, %+v", id.Short(), ok, got, wantOK, want)
	}
}

// compareNames compares the objects that have several names, or that were forked, and where names that were moved
// lead.
func (v *View) compareNames(d *Differences, s *scope.State) {
	for _, u := range slices.SortedFunc(maps.Keys(v.objects), func(a, b aweigh.UID) int { return bytes.Compare(a[:], b[:]) }) {
		want := v.objects[u]
		got, err := s.Aliases(u)
		if d.fail(err, "aliases") {
			continue
		}
		named := slices.EqualFunc(got.Keys, want.held, func(k []byte, h held) bool { return string(k) == h.key })
		d.look(named && reflect.DeepEqual(got.Parent, want.parent), "object %s is named %q, forked from %+v; want %+v, %+v", u, got.Keys, got.Parent, want.held, want.parent)
	}
	keys := v.model.asOf(v.Revision)
	for _, key := range v.Keys() {
		got, ok, err := s.Resolve(key)
		if d.fail(err, "resolving") {
			continue
		}
		want, there := keys[string(key)]
		r, moved := v.redirects[string(key)]
		if moved = moved && !there && r.Until >= v.Time; moved {
			want, there = v.found(r)
		}
		d.look((got.Moved != nil) == moved && (!moved || same(*got.Moved, r)), "%q moved: %+v, want %v, %+v", key, got.Moved, moved, r)
		d.look(ok == there && (!ok || sameKv(&got.Kv, &want) && got.Claims && got.Number == v.number(want)),
			"%q stands for %+v; want %v, version %d of %+v", key, got, there, v.number(want), want)
	}
}

// found is the content of the object to which a name leads that was moved.
func (v *View) found(r scope.Redirect) (scope.KeyValue, bool) {
	keys := v.model.asOf(v.Revision)
	if kv, ok := keys[string(r.To)]; ok && kv.UID == r.Object {
		return kv, true
	}
	if o, ok := v.objects[r.Object]; ok {
		return keys[o.held[0].key], true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if kv := keys[key]; kv.UID == r.Object {
			return kv, true
		}
	}
	return scope.KeyValue{}, false
}

// number counts the versions of an object up to one of them.
func (v *View) number(kv scope.KeyValue) int64 {
	for _, h := range v.objects[kv.UID].held {
		if h.key == string(kv.Key) {
			return h.before + kv.Version
		}
	}
	return kv.Version
}
