package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

const (
	// maxWarnings bounds the contested motions that a scope remembers at a time.
	maxWarnings = 64
	// warningObjects bounds the objects that one of them, or a motion that reverses one, may have changed.
	warningObjects = 64
	// warningBytes bounds the values that are read to tell what a motion has changed.
	warningBytes = 4 << 20
)

// Warning is the record of a contested motion that was carried: what it replaced, and the anchors that had approved it
// and warned of it. A later motion that restores all of it credits those that had warned (P55).
type Warning struct {
	_        struct{} `cbor:",toarray"`
	Motion   votes.MotionID
	Epoch    aweigh.Epoch      // in which it was carried
	Parties  []aweigh.Hash     // keys of those that had asked for it, in order; see CheckedMutation.askers
	Replaced []Replaced        // by Object, at most Bounds.WarningObjects
	Approved []aweigh.AnchorID // in the order of its voters
	Warned   []trust.Warner    // likewise: with a ballot against it that counted (P50), the parties excepted
	Reversal *Reversal         // nil: no motion has reversed it yet
}

// Replaced is what an object was before a motion changed it.
type Replaced struct {
	_      struct{}    `cbor:",toarray"`
	Object aweigh.Hash // of a key, or of a field of the policy
	Before aweigh.Hash // of the value; zero: the key was not there
}

// Reversal is how a later motion reversed one.
type Reversal struct {
	_        struct{} `cbor:",toarray"`
	Motion   votes.MotionID
	Epoch    aweigh.Epoch      // in which it was carried
	Pays     aweigh.Epoch      // at the end of which the credits come: the same, but for decisions the next one, under which they hold
	Credited []aweigh.AnchorID // in the order of Warned
}

// until is the last epoch in which the record counts: as a motion to be reversed, or as a reversal after which the
// same objects give no further credit.
func (w *Warning) until(p *trust.Params) aweigh.Epoch {
	from := w.Epoch
	if w.Reversal != nil {
		from = w.Reversal.Epoch
	}
	return from + aweigh.Epoch(p.Reversal)
}

// shares reports whether both motions have changed one object.
func (w *Warning) shares(o *Warning) bool {
	return slices.ContainsFunc(w.Replaced, func(r Replaced) bool {
		_, has := slices.BinarySearchFunc(o.Replaced, r.Object, byObject)
		return has
	})
}

func byObject(r Replaced, object aweigh.Hash) int { return bytes.Compare(r.Object[:], object[:]) }

// effect is what a motion did to one object; of a key that is not there, the hash is zero.
type effect struct{ object, before, after aweigh.Hash }

// warningPlace is the place of a Warning: in the order in which the motions were carried.
func (s *space) warningPlace(h aweigh.Height, id votes.MotionID) []byte {
	return append(binary.BigEndian.AppendUint64(s.at(atWarning), uint64(h)), id[:]...)
}

// placedWarning is a Warning with its place.
type placedWarning struct {
	at []byte
	Warning
}

// Warnings are the contested motions that the state remembers, in the order in which they were carried.
func (s *State) Warnings() (all []Warning, err error) {
	placed, err := s.view.warnings()
	for i := range placed {
		all = append(all, placed[i].Warning)
	}
	return all, err
}

func (v *view) warnings() (all []placedWarning, err error) {
	prefix := v.space.at(atWarning)
	var bad error
	err = v.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		w := placedWarning{at: bytes.Clone(k)}
		if bad = canon.Decode(raw, &w.Warning); bad == nil {
			all = append(all, w)
		}
		return bad == nil
	})
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: a contested motion: %w", ErrCorrupt, bad)
	}
	return all, err
}

// weighReversal takes up what a motion that was carried has reversed, and remembers it if it is contested itself: then
// some anchor is found against it. made is what it changed of the keys.
func (x *execution) weighReversal(mo *Motion, made []change, found []finding) error {
	contested := slices.ContainsFunc(found, func(f finding) bool { return f.is == against })
	if x.policy.Trust.Reversal == 0 {
		return nil
	}
	all, err := x.warnings()
	if err != nil || len(all) == 0 && !contested {
		return err
	}
	effects, err := x.effects(made)
	if err != nil || len(effects) == 0 {
		return err
	}
	cast, err := x.choices(mo.ID())
	if err != nil {
		return err
	}
	left := all[:0]
	for i := range all {
		w := &all[i]
		if reverses(effects, &w.Warning) {
			if err := x.reverse(w, mo, cast, left, all[i+1:]); err != nil {
				return err
			}
			if w.Reversal == nil {
				continue
			}
		}
		left = append(left, *w)
	}
	if !contested {
		return nil
	}
	return x.warn(mo, effects, cast, found, left)
}

// reverse takes up that a motion has reversed one, whose record ends with it if it gives no credit. others are all
// other records: an object that gave credit within so many epochs gives none again.
func (x *execution) reverse(w *placedWarning, mo *Motion, cast []choice, others ...[]placedWarning) error {
	r := &Reversal{Motion: mo.ID(), Epoch: x.epoch.Number, Pays: x.epoch.Number, Credited: x.credited(&w.Warning, mo, cast)}
	if x.mutation.Class == Govern {
		r.Pays++
	}
	again := slices.ContainsFunc(slices.Concat(others...), func(o placedWarning) bool { return o.Reversal != nil && o.shares(&w.Warning) })
	if again || len(r.Credited) == 0 {
		return x.dropRecord(w.at)
	}
	w.Reversal = r
	return x.rewarn(w)
}

// rewarn replaces a record.
func (x *execution) rewarn(w *placedWarning) error {
	if err := x.dropRecord(w.at); err != nil {
		return err
	}
	x.setRecord(w.at, canon.Encode(w.Warning))
	return nil
}

// reverses reports whether a motion has restored all that another one had replaced, as the first motion that does.
func reverses(effects []effect, w *Warning) bool {
	for i := range w.Replaced {
		at, ok := slices.BinarySearchFunc(effects, w.Replaced[i].Object, func(e effect, o aweigh.Hash) int { return bytes.Compare(e.object[:], o[:]) })
		if !ok || effects[at].after != w.Replaced[i].Before {
			return false
		}
	}
	return w.Reversal == nil
}

// credited are the anchors that a reversal credits: those that had warned, without those that reject the reversal as
// well. None has credit unless anchors with more than a third of the weight approved both motions, so that not only
// another side has won; and with more than half if the same party asked for both.
func (x *execution) credited(w *Warning, mo *Motion, cast []choice) (all []aweigh.AnchorID) {
	said := func(a aweigh.AnchorID, is votes.Choice) bool {
		return slices.ContainsFunc(cast, func(c choice) bool { return c.voter == a && c.is == is })
	}
	var total, both uint64
	for i := range mo.Voters {
		v := &mo.Voters[i]
		if !v.Anchor {
			continue
		}
		id := v.Key.ID()
		total += v.Weight
		if slices.Contains(w.Approved, id) && said(id, votes.Approve) && !said(id, votes.Reject) {
			both += v.Weight
		}
	}
	parts := uint64(3)
	if slices.ContainsFunc(x.mutation.askers(x.epoch.Roster), func(p aweigh.Hash) bool { return slices.Contains(w.Parties, p) }) {
		parts = 2
	}
	if parts*both <= total {
		return nil
	}
	for _, a := range w.Warned {
		if !said(a.Anchor, votes.Reject) {
			all = append(all, a.Anchor)
		}
	}
	return all
}

// warn remembers a contested motion. If there are too many, the oldest gives way that has no reversal.
func (x *execution) warn(mo *Motion, effects []effect, cast []choice, found []finding, all []placedWarning) error {
	w := Warning{Motion: mo.ID(), Epoch: x.epoch.Number, Parties: x.mutation.askers(x.epoch.Roster)}
	slices.SortFunc(w.Parties, func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
	w.Parties = slices.Compact(w.Parties)
	for _, e := range effects {
		w.Replaced = append(w.Replaced, Replaced{Object: e.object, Before: e.before})
	}
	cast, _ = dropEquivocators(cast)
	for i := range mo.Voters {
		v := &mo.Voters[i]
		if !v.Anchor {
			continue
		}
		id := v.Key.ID()
		if slices.ContainsFunc(cast, func(c choice) bool { return c.voter == id && c.is == votes.Approve }) {
			w.Approved = append(w.Approved, id)
		}
		if _, seated := x.epoch.Roster.Seat(id); seated && slices.Contains(found, finding{id, against}) && !slices.Contains(w.Parties, id) {
			w.Warned = append(w.Warned, trust.Warner{Anchor: id})
		}
	}
	if len(w.Warned) == 0 {
		return nil
	}
	if len(all) >= x.bounds.Warnings {
		at := slices.IndexFunc(all, func(o placedWarning) bool { return o.Reversal == nil })
		if at < 0 {
			return nil
		}
		if err := x.dropRecord(all[at].at); err != nil {
			return err
		}
	}
	x.setRecord(x.space.warningPlace(x.block.Header.Height, w.Motion), canon.Encode(w))
	return nil
}

// effects are what a motion that was carried did to objects, by object: to the keys that it changed, or to the fields
// of the policy that it sets. There are none if they are too many or too large, or if all is as before.
func (x *execution) effects(made []change) (all []effect, err error) {
	if d := x.mutation.Decision; d != nil {
		if d.Kind == SetPolicy {
			all = policyEffects(x.policy, d.Policy)
		}
	} else if all, err = x.keyEffects(made); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e effect) bool { return e.before == e.after })
	slices.SortFunc(all, func(a, b effect) int { return bytes.Compare(a.object[:], b.object[:]) })
	return all, nil
}

func (x *execution) keyEffects(made []change) (all []effect, err error) {
	seen, size := make(map[string]bool), 0
	for _, c := range made {
		if seen[string(c.key)] {
			continue
		}
		seen[string(c.key)] = true
		was, had, err := x.before(c.key, made[0].at.main-1)
		if err != nil {
			return nil, err
		}
		is, has, err := x.newest(c.key)
		if err != nil {
			return nil, err
		}
		if size += len(was.Value) + len(is.Value); size > x.bounds.WarningBytes || len(all) == x.bounds.WarningObjects {
			return nil, nil
		}
		all = append(all, effect{aweigh.Sum([]byte("aweigh/warned-key/1"), c.key), valueHash(was.Value, had), valueHash(is.Value, has)})
	}
	return all, nil
}

func valueHash(value []byte, there bool) (h aweigh.Hash) {
	if there {
		h = aweigh.Sum([]byte("aweigh/warned-value/1"), value)
	}
	return h
}

// policyEffects has each field of a policy as an object.
func policyEffects(was, is *Policy) (all []effect) {
	a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		value := func(v reflect.Value) aweigh.Hash { return valueHash(canon.Encode(v.Interface()), true) }
		all = append(all, effect{aweigh.Sum([]byte("aweigh/warned-policy/1"), []byte(f.Name)), value(a.Field(i)), value(b.Field(i))})
	}
	return all
}

// credits is the evidence of the reversals that pay at the end of an epoch.
func (s *State) credits(e *Epoch, t *tally) ([]trust.Evidence, error) {
	all, err := s.Warnings()
	var due []trust.Reversed
	for i := range all {
		w := &all[i]
		if w.Reversal == nil || w.Reversal.Pays != e.Number {
			continue
		}
		w.price(e, t)
		r := trust.Reversed{Motion: aweigh.Hash(w.Motion), By: aweigh.Hash(w.Reversal.Motion)}
		for _, a := range w.Warned {
			if slices.Contains(w.Reversal.Credited, a.Anchor) {
				r.Warned = append(r.Warned, a)
			}
		}
		due = append(due, r)
	}
	return e.Policy.Trust.Credits(due, e.Number, s.head.Height), err
}

// price notes, as the epoch of the motion ends, what the ballots against it cost.
func (w *Warning) price(e *Epoch, t *tally) {
	for i := range w.Warned {
		if a := &w.Warned[i]; w.Epoch == e.Number {
			a.Cost = e.Policy.Trust.Cost(t.motions(e, a.Anchor))
		}
	}
}

// motions is how many motions judge an anchor in the epoch.
func (t *tally) motions(e *Epoch, a aweigh.AnchorID) (n uint64) {
	if seat, ok := e.Roster.Seat(a); ok && t.judged != nil {
		for _, c := range t.judged[seat] {
			n += uint64(c)
		}
	}
	return n
}

// endWarnings drops the records that do not count in the next epoch, and all of them if others govern the scope then.
// t is the tally of the epoch that ends.
func (x *execution) endWarnings(next *Epoch, t *tally, yields bool) error {
	all, err := x.warnings()
	for i := 0; i < len(all) && err == nil; i++ {
		w := &all[i]
		switch {
		case yields || w.until(&next.Policy.Trust) < next.Number || next.Policy.Trust.Reversal == 0:
			err = x.dropRecord(w.at)
		case w.Epoch == x.epoch.Number:
			w.price(x.epoch, t)
			err = x.rewarn(w)
		}
	}
	return err
}

// unwarn takes back what a decision did to records that could not take effect.
func (x *execution) unwarn(id votes.MotionID) error {
	all, err := x.warnings()
	for i := 0; i < len(all) && err == nil; i++ {
		switch w := &all[i]; {
		case w.Motion == id:
			err = x.dropRecord(w.at)
		case w.Reversal != nil && w.Reversal.Motion == id:
			w.Reversal = nil
			err = x.rewarn(w)
		}
	}
	return err
}
