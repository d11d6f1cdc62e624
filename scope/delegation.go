package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/refusal"
)

// Delegation is a prefix that a scope has handed to another, which governs it from
// then on.
type Delegation struct {
	Prefix   []byte
	Child    aweigh.ScopeID
	Revision int64         // of the key space, at which the keys went
	Height   aweigh.Height // of the block
	ByItself bool          // the scope split it off, and no decision asked for it
	// Revocation is the newest order that the child shall have another government, nil if
	// there was none.
	Revocation *Revocation
}

// delegated is the record of a Delegation, under its prefix. It has the child's genesis, so that every node with the
// state can refer to the child.
type delegated struct {
	_          struct{} `cbor:",toarray"`
	Genesis    []byte
	Revision   int64
	Height     aweigh.Height
	ByItself   bool
	Revocation *Revocation
}

// delegations are those of a scope, by prefix: none lies below another.
type delegations []Delegation

// find is the delegation that a key falls under.
func (l delegations) find(key []byte) (Delegation, bool) {
	i, ok := slices.BinarySearchFunc(l, key, func(d Delegation, key []byte) int { return bytes.Compare(d.Prefix, key) })
	if ok {
		return l[i], true
	}
	if i > 0 && bytes.HasPrefix(key, l[i-1].Prefix) {
		return l[i-1], true
	}
	return Delegation{}, false
}

// touching are those that some key of [key, end), in the sense of Op, falls under,
// in order.
func (l delegations) touching(key, end []byte) delegations {
	if len(end) == 0 {
		if d, ok := l.find(key); ok {
			return delegations{d}
		}
		return nil
	}
	if !ToEnd(end) && bytes.Compare(key, end) >= 0 { // the range has no keys
		return nil
	}
	from, _ := slices.BinarySearchFunc(l, key, func(d Delegation, key []byte) int { return bytes.Compare(d.Prefix, key) })
	if from > 0 && bytes.HasPrefix(key, l[from-1].Prefix) {
		from--
	}
	to := len(l)
	if !ToEnd(end) {
		to, _ = slices.BinarySearchFunc(l, end, func(d Delegation, end []byte) int { return bytes.Compare(d.Prefix, end) })
	}
	if from >= to {
		return nil
	}
	return l[from:to]
}

// Touching are those of a scope's delegations, in order, that some key of [key, end),
// in the sense of Op, falls under.
func Touching(all []Delegation, key, end []byte) []Delegation {
	return delegations(all).touching(key, end)
}

// Segment is a part of a range of keys, in the sense of Op.
type Segment struct {
	Key, End []byte
	Given    *Delegation // that all of its keys fall under; nil if they are the scope's own
}

// DelegationOf finds the delegation that a key falls under among those of a scope, in order.
func DelegationOf(all []Delegation, key []byte) (Delegation, bool) { return delegations(all).find(key) }

// Intersect is the part of [key, end), in the sense of Op, that begins with a prefix; some key of it must.
func Intersect(prefix, key, end []byte) (from, to []byte) {
	if len(end) == 0 {
		return key, nil
	}
	from, to = prefix, PrefixEnd(prefix)
	if bytes.Compare(key, from) > 0 {
		from = key
	}
	if ToEnd(to) || !ToEnd(end) && bytes.Compare(end, to) < 0 {
		to = end
	}
	return from, to
}

// Segments part [key, end), in the sense of Op, by some of a scope's delegations, in
// order of key.
func Segments(all []Delegation, key, end []byte) (parts []Segment) {
	touched := Touching(all, key, end)
	for i := range touched {
		d := &touched[i]
		if bytes.Compare(key, d.Prefix) < 0 {
			parts = append(parts, Segment{Key: key, End: d.Prefix})
			key = d.Prefix
		}
		if Covers(d.Prefix, key, end) {
			return append(parts, Segment{Key: key, End: end, Given: d})
		}
		last := PrefixEnd(d.Prefix)
		parts = append(parts, Segment{Key: key, End: last, Given: d})
		key = last
	}
	return append(parts, Segment{Key: key, End: end})
}

// ErrElsewhere is wrapped by failures about keys that another scope decides on.
var ErrElsewhere = refusal.New(refusal.Denied, "scope: another scope decides on these keys")

// region is which keys are a scope's own.
type region struct {
	prefix []byte
	given  delegations
	folds  []FoldRecord // in the order in which they came home, without those that compaction had reached when they were read
	folded int64        // as in Head
}

// with is the region with an order to one of the scopes that others are.
func (r *region) with(order *Revocation) *region {
	given := slices.Clone(r.given)
	for i := range given {
		if bytes.Equal(given[i].Prefix, order.Child.Prefix) {
			given[i].Revocation = order
		}
	}
	return r.giving(given)
}

// giving is the region with other delegations.
func (r *region) giving(given delegations) *region {
	next := *r
	next.given = given
	return &next
}

// taking is the region with a prefix that came home.
func (r *region) taking(f FoldRecord) *region {
	next := r.giving(slices.DeleteFunc(slices.Clone(r.given), func(d Delegation) bool { return bytes.Equal(d.Prefix, f.Prefix) }))
	next.folds, next.folded = append(slices.Clone(r.folds), f), r.folded+1
	return next
}

// owns reports why [key, end), in the sense of Op, is not all a scope's own.
func (r *region) owns(key, end []byte) error {
	if len(r.prefix) == 0 && len(r.given) == 0 {
		return nil
	}
	if !Covers(r.prefix, key, end) || len(r.given.touching(key, end)) > 0 {
		return ErrElsewhere
	}
	return nil
}

// went reports whether a change is that a key went to another scope.
func (r *region) went(c change) bool {
	if d, ok := r.given.find(c.key); ok && d.Revision == c.at.main {
		return true
	}
	return slices.ContainsFunc(r.folds, func(f FoldRecord) bool { return f.Went == c.at.main && bytes.HasPrefix(c.key, f.Prefix) })
}

// ownsAll reports why a transaction is not about a scope's own keys alone.
func (r *region) ownsAll(t *Txn) error {
	if len(r.prefix) == 0 && len(r.given) == 0 {
		return nil
	}
	var failure error
	t.Ranges(func(key, end []byte) bool {
		failure = r.owns(key, end)
		return failure == nil
	})
	return failure
}

// Ranges visits the keys and ranges of keys, in the sense of Op, that the
// transaction looks at or writes, until visit returns false.
func (t *Txn) Ranges(visit func(key, end []byte) bool) bool {
	for i := range t.Compare {
		if c := &t.Compare[i]; !visit(c.Key, c.End) {
			return false
		}
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			if op := &branch[i]; op.Kind == OpTxn && op.Txn != nil && !op.Txn.Ranges(visit) || op.Kind != OpTxn && !visit(op.Key, op.End) {
				return false
			}
		}
	}
	return true
}

// Reads reports whether the answer to a transaction shows content of keys, or whether something holds of it: that of a
// compare shows that too.
func (t *Txn) Reads() bool {
	if len(t.Compare) > 0 {
		return true
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			op := &branch[i]
			if op.Kind == OpRange || op.Kind == OpMerge || op.Prev || op.Kind == OpTxn && op.Txn != nil && op.Txn.Reads() {
				return true
			}
		}
	}
	return false
}

// Genesis is what the scope started from.
func (s *State) Genesis() (Genesis, error) {
	raw, err := s.single(atGenesis, "genesis")
	if err != nil {
		return Genesis{}, err
	}
	g, err := DecodeGenesis(raw)
	if err == nil && g.Hash() != s.head.Scope {
		err = errors.New("another scope's genesis")
	}
	if err != nil {
		return g, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return g, nil
}

// region is which keys are the scope's own.
func (s *State) region() (*region, error) {
	if s.own != nil {
		return s.own, nil
	}
	r := &region{prefix: []byte(s.head.Prefix), folded: s.head.Folded}
	var err error
	if s.head.Delegated > 0 {
		r.given, err = s.Delegations()
	}
	if s.head.Folded > 0 && err == nil {
		r.folds, err = s.Folds()
	}
	return r, err
}

// Given is Delegations of a state that has begun, without a look at the store.
func (s *State) Given() []Delegation {
	must.Hold(s.own != nil, "the delegations of a state that has not begun")
	return s.own.given
}

// Territory is which keys are a scope's own as of a state.
type Territory struct{ of *region }

// Territory is that of a state that has begun, without a look at the store.
func (s *State) Territory() Territory {
	must.Hold(s.own != nil, "the territory of a state that has not begun")
	return Territory{s.own}
}

// Delegations are the prefixes that the scope has handed to others, in order.
func (t Territory) Delegations() []Delegation {
	if t.of == nil {
		return nil
	}
	return t.of.given
}

// Folds are the prefixes that came home, in the order in which they did. Those that compaction has reached may be
// missing.
func (t Territory) Folds() []FoldRecord {
	if t.of == nil {
		return nil
	}
	return t.of.folds
}

// Knowing returns the state, which need not read which keys are its own if as many prefixes went, and as many came
// home, as in a territory of the scope. It takes the revocations from there.
func (s *State) Knowing(t Territory) *State {
	if s.own != nil || s.head.Delegated+s.head.Folded == 0 || t.of == nil || int64(len(t.of.given)) != s.head.Delegated || t.of.folded != s.head.Folded {
		return s
	}
	knows := *s
	knows.own = t.of
	return &knows
}

// Delegations are the prefixes that the scope has handed to others, in order.
func (s *State) Delegations() (all []Delegation, err error) {
	var bad error
	prefix := s.space.at(atDelegated)
	err = s.r.Scan(prefix, s.space.at(atDelegated+1), false, func(k, raw []byte) bool {
		var rec delegated
		if bad = canon.Decode(raw, &rec); bad != nil {
			bad = fmt.Errorf("%w: delegation: %w", ErrCorrupt, bad)
			return false
		}
		all = append(all, Delegation{
			Prefix: bytes.Clone(k[len(prefix):]), Child: GenesisHash(rec.Genesis), Revision: rec.Revision, Height: rec.Height,
			ByItself: rec.ByItself, Revocation: rec.Revocation,
		})
		return true
	})
	return all, errors.Join(err, bad)
}

// Delegated is the delegation that a key falls under, and the genesis of the scope
// that governs it now; ok is false if the scope never gave it away.
func (s *State) Delegated(key []byte) (d Delegation, g Genesis, ok bool, err error) {
	if s.head.Delegated == 0 {
		return d, g, false, nil
	}
	r, err := s.region()
	if err != nil {
		return d, g, false, err
	}
	if d, ok = r.given.find(key); !ok {
		return d, g, false, nil
	}
	var rec delegated
	if ok, err = s.record(s.space.at(atDelegated, d.Prefix...), &rec); err == nil && !ok {
		err = fmt.Errorf("%w: the delegation of %q", ErrCorrupt, d.Prefix)
	}
	if err != nil {
		return d, g, false, err
	}
	g, err = DecodeGenesis(rec.Genesis)
	return d, g, err == nil, err
}

// Touching are the delegations that some key of [key, end), in the sense of Op,
// falls under, in order.
func (s *State) Touching(key, end []byte) ([]Delegation, error) {
	if s.head.Delegated == 0 {
		return nil, nil
	}
	r, err := s.region()
	if err != nil {
		return nil, err
	}
	return r.given.touching(key, end), nil
}
