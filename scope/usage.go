package scope

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// charge is the record of something that counts under a quota: which entries it was charged to. The state's digest
// covers charges and usages like names. A key, a lease and a motion keep their own records as they are.
type charge struct {
	_       struct{} `cbor:",toarray"`
	Entries []string // a motion can have several, each counts the Amount
	Amount  int64
}

// What is charged. The kind follows atCharge in the store's key.
const (
	chargedKey    = 'k' // key
	chargedLease  = 'l' // lease ID(8)
	chargedMotion = 'm' // motion
)

func (s *space) chargeOfKey(key []byte) []byte {
	return append(s.at(atCharge, chargedKey), key...)
}

func (s *space) chargeOfLease(id int64) []byte {
	return binary.BigEndian.AppendUint64(s.at(atCharge, chargedLease), uint64(id))
}

func (s *space) chargeOfMotion(id votes.MotionID) []byte {
	return append(s.at(atCharge, chargedMotion), id[:]...)
}

func (s *space) usage(name string) []byte { return s.at(atUsage, []byte(name)...) }

// usages are those of a scope by the names of entries, and what they count together.
type usages struct {
	of    map[string]Usage // without those that count nothing
	total Usage            // without Full
}

func (u *usages) clone() *usages {
	return &usages{of: maps.Clone(u.of), total: u.total}
}

// set replaces the usage of an entry.
func (u *usages) set(name string, is Usage) {
	was := u.of[name]
	for _, what := range []measure{heldBytes, heldLeases, openMotions} {
		*u.total.held(what) += *is.held(what) - *was.held(what)
	}
	if is == (Usage{}) {
		delete(u.of, name)
		return
	}
	u.of[name] = is
}

// usage reads the usages; they must not be changed.
func (s *State) usage() (*usages, error) {
	if s.used != nil {
		return s.used, nil
	}
	u, prefix := &usages{of: make(map[string]Usage)}, s.space.at(atUsage)
	var bad error
	err := s.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var of Usage
		if bad = canon.Decode(raw, &of); bad != nil {
			bad = fmt.Errorf("%w: what the entry %q has: %w", ErrCorrupt, k[len(prefix):], bad)
			return false
		}
		u.set(string(k[len(prefix):]), of)
		return true
	})
	if err == nil {
		err = bad
	}
	return u, err
}

// EntryUsage is what the authors of the entry with a name have.
type EntryUsage struct {
	Name string
	Usage
}

// Usages lists what is counted under quotas, by the names of entries.
func (s *State) Usages() (all []EntryUsage, err error) {
	u, err := s.usage()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(u.of)) {
		all = append(all, EntryUsage{name, u.of[name]})
	}
	return all, nil
}

// use changes what an entry counts.
func (x *execution) use(name string, change func(*Usage)) {
	if x.used == x.next.used {
		x.used = x.used.clone()
	}
	u := x.used.of[name]
	change(&u)
	x.used.set(name, u)
}

// charge replaces a charge; without entries nothing is charged from then on.
func (x *execution) charge(k []byte, what measure, is charge) error {
	var was charge
	if ok, err := x.view.record(k, &was); err != nil || !ok && len(is.Entries) == 0 {
		return err
	}
	if slices.Equal(was.Entries, is.Entries) && was.Amount == is.Amount {
		return nil
	}
	for _, name := range was.Entries {
		x.use(name, func(u *Usage) {
			n := u.held(what)
			*n -= was.Amount
			must.Hold(*n >= 0, "the entry %s counts less than nothing", name)
		})
	}
	if len(is.Entries) == 0 {
		return x.replace(k, nil)
	}
	for _, name := range is.Entries {
		x.use(name, func(u *Usage) { *u.held(what) += is.Amount })
	}
	return x.replace(k, is)
}

// discharge takes a charge away, if there is one.
func (x *execution) discharge(k []byte, what measure) error {
	if *x.used.total.held(what) == 0 {
		return nil
	}
	return x.charge(k, what, charge{})
}

// storeUsage writes what the block made of the usages. What only the rate bounded is forgotten once it is over.
func (x *execution) storeUsage() error {
	before := x.next.used
	for name := range before.of { // order-free: each for itself
		if is := x.used.of[name]; is.Full != 0 && is.Full <= x.block.Header.Time {
			x.use(name, func(u *Usage) { u.Full = 0 })
		}
	}
	if x.used == before {
		return nil
	}
	x.next.used = x.used
	names := append(slices.Sorted(maps.Keys(before.of)), slices.Sorted(maps.Keys(x.used.of))...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		is, some := x.used.of[name]
		if was, had := before.of[name]; is == was && some == had {
			continue
		}
		var what any
		if some {
			what = is
		}
		if err := x.replace(x.space.usage(name), what); err != nil {
			return err
		}
	}
	return nil
}

// passedOn are the charges that go to another scope with what is handed over to it.
type passedOn struct {
	keys   map[string]charge
	leases map[int64]charge
}

// passOn finds the charges of keys and leases.
func (x *execution) passOn(keys []KeyValue, leases []int64) (p passedOn, err error) {
	p = passedOn{make(map[string]charge), make(map[int64]charge)}
	for i := range keys {
		var c charge
		if *x.used.total.held(heldBytes) == 0 {
			break
		}
		ok, err := x.view.record(x.space.chargeOfKey(keys[i].Key), &c)
		if err != nil {
			return p, err
		}
		if ok {
			p.keys[string(keys[i].Key)] = c
		}
	}
	for _, id := range leases {
		var c charge
		if *x.used.total.held(heldLeases) == 0 {
			break
		}
		ok, err := x.view.record(x.space.chargeOfLease(id), &c)
		if err != nil {
			return p, err
		}
		if ok {
			p.leases[id] = c
		}
	}
	return p, nil
}

// put puts the charges, and what they come to, into the first state of a scope.
func (p *passedOn) put(b *founding) {
	u := &usages{of: make(map[string]Usage)}
	add := func(k []byte, what measure, c charge) {
		b.put(k, canon.Encode(c))
		for _, name := range c.Entries {
			is := u.of[name]
			*is.held(what) += c.Amount
			u.set(name, is)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.keys)) {
		add(b.space.chargeOfKey([]byte(key)), heldBytes, p.keys[key])
	}
	for _, id := range slices.Sorted(maps.Keys(p.leases)) {
		add(b.space.chargeOfLease(id), heldLeases, p.leases[id])
	}
	for _, name := range slices.Sorted(maps.Keys(u.of)) {
		b.put(b.space.usage(name), canon.Encode(u.of[name]))
	}
}
