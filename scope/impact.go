package scope

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Impact is what a mutation changes, found by executing it without its effect. It names no revision, entry or UID that
// the mutation would give, so that it is the same wherever it is computed on the same keys.
type Impact struct {
	_         struct{}  `cbor:",toarray"`
	Keys      int64     // that change, under all names of their objects
	Deleted   int64     // of these: that are gone afterwards
	Objects   int64     // that these keys name, before or afterwards
	Born      int64     // objects that begin
	Ended     int64     // objects that no key names any more
	Bound     int64     // keys that come to name an object which is there already
	Unbound   int64     // keys that cease to name an object which other keys name
	Redirects int64     // of moved names: by how many more there are
	Leases    int64     // that keys which change are attached to, before or afterwards
	Bytes     int64     // of the keys and values that it writes
	Grows     int64     // bytes of keys and values: by how many more there are
	Touched   []Touched // the first of the Keys, in their order
	Reform    *Reform   // of a decision
}

// Touched is one key that changes.
type Touched struct {
	_      struct{} `cbor:",toarray"`
	Key    []byte
	Class  lineage.Class // of the last entry about the key
	Object aweigh.UID    // that it names before; zero: none
	Found  int64         // the revision that changed it last; 0: it is not there
	Was    int64         // bytes of its value before
	Size   int64         // bytes of its value afterwards
	Lease  int64         // that it is attached to afterwards
}

// Bounds of what an Impact lists.
const (
	maxTouched      = 16
	maxTouchedBytes = 1 << 10 // of keys
)

// Hash names the report.
func (i *Impact) Hash() aweigh.Hash { return canon.Hash("aweigh/impact/1", *i) }

// Encode is the canonical encoding.
func (i *Impact) Encode() []byte { return canon.Encode(*i) }

// DecodeImpact reads what Encode wrote. Errors wrap ErrInvalid.
func DecodeImpact(data []byte) (*Impact, error) {
	i := new(Impact)
	if err := canon.Decode(data, i); err != nil {
		return nil, fmt.Errorf("%w: an impact: %w", ErrInvalid, err)
	}
	return i, nil
}

// Written are the keys that are there afterwards.
func (i *Impact) Written() int64 { return i.Keys - i.Deleted }

// String is like "2 keys written, 1 deleted; 3 objects, of which 1 is new; 14 bytes written".
func (i *Impact) String() string {
	if i.Keys == 0 {
		return "no key changes"
	}
	var parts []string
	add := func(n int64, what string) {
		if n != 0 {
			parts = append(parts, what)
		}
	}
	add(i.Written(), fmt.Sprintf("%s written (%d bytes)", counted(int(i.Written()), "key"), i.Bytes))
	add(i.Deleted, counted(int(i.Deleted), "key")+" deleted")
	add(i.Born, counted(int(i.Born), "object")+" new")
	add(i.Ended, counted(int(i.Ended), "object")+" retired")
	add(i.Bound, counted(int(i.Bound), "name")+" bound")
	add(i.Unbound, counted(int(i.Unbound), "name")+" taken away")
	add(i.Redirects, fmt.Sprintf("%+d redirects", i.Redirects))
	add(i.Leases, counted(int(i.Leases), "lease")+" concerned")
	return strings.Join(parts, ", ")
}

// rehearse executes something on the state as it is so far, and returns what that changes. Nothing of it stays: it
// writes to an overlay, and what it counts it counts in copies.
func (x *execution) rehearse(do func(t *execution) error) (*Impact, error) {
	t := *x
	t.versions = kv.NewOverlay(x.versions)
	t.view.r = t.versions
	sum := *x.next.sum
	t.next.sum = &sum
	t.ops, t.entries, t.changed, t.scratch = nil, slices.Clip(x.entries), nil, nil
	t.used, t.room, t.bills, t.billed = x.used.clone(), nil, cloned(x.bills), cloned(x.billed)
	t.wanted = func(aweigh.Hash, aweigh.Hash) bool { return false }
	if err := do(&t); err != nil {
		return nil, err
	}
	i, err := impactOf(&x.view, &t.view, t.entries[len(x.entries):])
	if err == nil {
		i.Redirects = t.names.Redirects - x.names.Redirects
	}
	return i, err
}

// cloned is a copy of a map, which may be nil.
func cloned[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m))
	for k, v := range m { // order-free: a copy
		c[k] = v
	}
	return c
}

// impactOf is what the entries of one mutation tell of the keys, which a view shows before and another one after it.
func impactOf(before, after *view, entries []lineage.Entry) (*Impact, error) {
	i := new(Impact)
	last := make(map[string]lineage.Class)
	var keys [][]byte
	objects, leases := make(map[aweigh.UID]bool), make(map[int64]bool)
	born, ended := make(map[aweigh.UID]bool), make(map[aweigh.UID]bool)
	for n := range entries {
		e := &entries[n]
		switch e.Class {
		case lineage.Insert:
			born[e.Object] = true
		case lineage.Delete:
			ended[e.Object] = true
		case lineage.AliasBind, lineage.AliasMove, lineage.AliasUnbind, lineage.Update, lineage.AliasFollow:
		default:
			continue
		}
		if _, seen := last[string(e.Key)]; !seen {
			keys = append(keys, e.Key)
		}
		last[string(e.Key)] = e.Class
	}
	slices.SortFunc(keys, bytes.Compare)
	listed := 0
	for _, key := range keys {
		was, there, err := before.newest(key)
		if err != nil {
			return nil, err
		}
		is, stays, err := after.newest(key)
		if err != nil {
			return nil, err
		}
		if !there && !stays { // it came and went
			i.Keys--
			continue
		}
		t := Touched{Key: key, Class: last[string(key)]}
		if there {
			i.Grows -= was.size()
			t.Object, t.Found, t.Was, objects[was.UID], leases[was.Lease] = was.UID, was.ModRevision, int64(len(was.Value)), true, true
		}
		if stays {
			i.Bytes += is.size()
			i.Grows += is.size()
			t.Size, t.Lease, leases[is.Lease], objects[is.UID] = int64(len(is.Value)), is.Lease, true, true
		} else {
			i.Deleted++
		}
		if !there || !stays || was.UID != is.UID {
			if stays && !born[is.UID] {
				i.Bound++
			}
			if there && !ended[was.UID] { // the last of its names does not leave an object that is there
				i.Unbound++
			}
		}
		if listed += len(key); len(i.Touched) < maxTouched && listed <= maxTouchedBytes {
			i.Touched = append(i.Touched, t)
		}
	}
	delete(leases, 0)
	i.Keys += int64(len(keys))
	i.Objects, i.Leases = int64(len(objects)), int64(len(leases))
	for u := range objects { // order-free: a count
		switch {
		case born[u]:
			i.Born++
		case ended[u]:
			i.Ended++
		}
	}
	return i, nil
}

// impactOfPlan is what carrying out the mutation being executed would change: its planned transaction, or its change of
// names. It costs the mutation nothing: it has paid to be planned, which is what costs by what the state holds.
func (x *execution) impactOfPlan(m *CheckedMutation, p *plan) (i *Impact, failure, err error) {
	i, err = x.rehearse(func(t *execution) error {
		if m.Naming == nil {
			_, err := t.run(*p)
			return err
		}
		t.begin(m)
		t.purse.reserve = x.policy.Limits.BlockCost
		apply, failed, err := t.naming(m.Naming)
		if failed == nil && err == nil {
			_, err = apply()
		}
		failure = failed
		return err
	})
	return i, failure, err
}

// Forecast is what would become of a mutation in the next block.
type Forecast struct {
	Head    Head // of the state
	Outcome Outcome
	Impact  *Impact // what it would change, now or once it is carried; nil: nothing
	Motion  *Motion // that it would open; nil: none
}

// Impact executes a mutation as the next block would, without its effect. The error wraps ErrInvalid if it is not
// well-formed, and ErrTooMuch if no block may cost as much.
func (s *State) Impact(m Mutation, at aweigh.Instant) (f Forecast, err error) {
	if s, err = s.Begin(); err != nil {
		return f, err
	}
	lim := s.epoch.Policy.Limits
	c := new(CheckedMutation)
	if err := c.open(m.Encode(), lim); err != nil {
		return f, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if lim.BlockCost < c.allowed {
		return f, ErrTooMuch
	}
	h := Header{
		Scope: s.head.Scope, Height: s.head.Height + 1, Time: max(at, s.head.Time+1), Epoch: s.epoch.Number, Policy: s.epoch.Domain().Policy,
	}
	x := newExecution(s, &Block{Header: h})
	x.purse.reserve = lim.BlockCost - c.allowed
	x.wanted = func(aweigh.Hash, aweigh.Hash) bool { return false }
	x.foresees = true
	f.Head, f.Outcome = s.head, Outcome{Mutation: c.ID}
	if err := x.execute(c, &f.Outcome); err != nil {
		return f, err
	}
	if code := f.Outcome.Code; code != Applied && code != Pending {
		return f, nil
	}
	if c.Decision == nil && f.Outcome.Code == Applied {
		if f.Impact, err = impactOf(&s.view, &x.view, x.entries); err == nil {
			f.Impact.Redirects = x.names.Redirects - s.named.Redirects
		}
		return f, err
	}
	id := votes.MotionID(c.ID)
	if c.Decision != nil { // another mutation may have proposed it
		rec, known, err := x.openDecision(c.Decision.ID())
		if err != nil {
			return f, err
		}
		if known {
			id = rec.Motion.ID()
		}
	}
	if f.Motion, _, err = x.next.Over(x.versions).Motion(id); err != nil {
		return f, err
	}
	if f.Impact = x.impact; f.Motion != nil && f.Impact == nil {
		f.Impact = f.Motion.Impact
	}
	return f, nil
}
