package model

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// warning is a contested motion that was carried, with the block that carried it.
type warning struct {
	height aweigh.Height
	scope.Warning
}

// altered is what some motion did: the objects that it changed, as they were and as they are. The zero hash: not there.
type altered map[aweigh.Hash][2]aweigh.Hash

func digestOf(value []byte) aweigh.Hash { return aweigh.Sum([]byte("aweigh/warned-value/1"), value) }

// alteredKeys compares two key spaces. If more was written than a scope remembers, nothing was.
func (m *Model) alteredKeys(before, after map[string]scope.KeyValue) altered {
	all, wrote, size := make(altered), 0, 0
	names := maps.Clone(before)
	maps.Copy(names, after)
	for key := range names { // order-free: sums, and a set
		was, had := before[key]
		is, has := after[key]
		if had && has && was.ModRevision == is.ModRevision && was.Sub == is.Sub {
			continue
		}
		wrote++
		size += len(was.Value) + len(is.Value)
		var change [2]aweigh.Hash
		if had {
			change[0] = digestOf(was.Value)
		}
		if has {
			change[1] = digestOf(is.Value)
		}
		if change[0] != change[1] {
			all[aweigh.Sum([]byte("aweigh/warned-key/1"), []byte(key))] = change
		}
	}
	if wrote > m.bounds.WarningObjects || size > m.bounds.WarningBytes {
		return nil
	}
	return all
}

// alteredPolicy compares two policies, field by field.
func alteredPolicy(was, is scope.Policy) altered {
	all := make(altered)
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for i := 1; i < a.NumField(); i++ { // the first says how it is encoded
		change := [2]aweigh.Hash{digestOf(canon.Encode(a.Field(i).Interface())), digestOf(canon.Encode(b.Field(i).Interface()))}
		if change[0] != change[1] {
			all[aweigh.Sum([]byte("aweigh/warned-policy/1"), []byte(a.Type().Field(i).Name))] = change
		}
	}
	return all
}

// warned takes up a motion that was carried: those that it reversed, and itself if it is contested.
func (m *Model) warned(p *motion, did altered) {
	if m.block.policy.Trust.Reversal == 0 || len(did) == 0 {
		return
	}
	now := m.block.told.Epoch.Number
	m.warnings = slices.DeleteFunc(slices.Clone(m.warnings), func(w *warning) bool {
		restored := func(r scope.Replaced) bool { change, ok := did[r.Object]; return ok && change[1] == r.Before }
		if w.Reversal != nil || slices.ContainsFunc(w.Replaced, func(r scope.Replaced) bool { return !restored(r) }) {
			return false
		}
		used := slices.ContainsFunc(m.warnings, func(o *warning) bool {
			return o.Reversal != nil && slices.ContainsFunc(o.Replaced, func(r scope.Replaced) bool {
				return slices.ContainsFunc(w.Replaced, func(s scope.Replaced) bool { return s.Object == r.Object })
			})
		})
		credited := m.credit(w, p)
		if used || len(credited) == 0 {
			return true
		}
		w.Reversal = &scope.Reversal{Motion: p.mut.ID, Epoch: now, Pays: now, Credited: credited}
		if !p.decision.IsZero() {
			w.Reversal.Pays++
		}
		return false
	})
	w := &warning{m.block.Header.Height, scope.Warning{Motion: p.mut.ID, Epoch: now, Parties: m.parties(p)}}
	for object, change := range did { // order-free: sorted below
		w.Replaced = append(w.Replaced, scope.Replaced{Object: object, Before: change[0]})
	}
	slices.SortFunc(w.Replaced, func(a, b scope.Replaced) int { return bytes.Compare(a.Object[:], b.Object[:]) })
	approved, warned := m.sides(p, w.Parties)
	for _, a := range warned {
		if slices.ContainsFunc(m.block.told.Epoch.Roster.Anchors, func(x scope.Anchor) bool { return x.Key.ID() == a }) {
			w.Warned = append(w.Warned, trust.Warner{Anchor: a})
		}
	}
	if w.Approved = approved; len(w.Warned) == 0 {
		return
	}
	if len(m.warnings) >= m.bounds.Warnings {
		at := slices.IndexFunc(m.warnings, func(w *warning) bool { return w.Reversal == nil })
		if at < 0 {
			return
		}
		m.warnings = slices.Delete(m.warnings, at, at+1)
	}
	m.warnings = append(m.warnings, w)
	slices.SortFunc(m.warnings, func(a, b *warning) int {
		return cmp.Or(cmp.Compare(a.height, b.height), bytes.Compare(a.Motion[:], b.Motion[:]))
	})
}

// choseInTime is what a voter said, 0 for nothing; both ways count as none, and are reported.
func (p *motion) choseInTime(voter aweigh.Hash) (c votes.Choice, at aweigh.Height, both bool) {
	n := 0
	for _, b := range p.ballots {
		if b.voter == voter && !b.Late {
			c, at = b.choice, b.Height
			n++
		}
	}
	if n > 1 {
		return 0, 0, true
	}
	return c, at, false
}

// sides are the anchors that approved a motion which was carried, and those that warned of it in time, if it was
// contested: at least a part of the weight was against it, and less than for it, of which there was more than a third.
func (m *Model) sides(p *motion, parties []aweigh.Hash) (approved, warned []aweigh.AnchorID) {
	var total, yes, no uint64
	for i := range p.Voters {
		v := &p.Voters[i]
		if !v.Anchor {
			continue
		}
		total += v.Weight
		switch c, _, _ := p.choseInTime(v.Key.ID()); c {
		case votes.Approve:
			yes += v.Weight
		case votes.Reject:
			no += v.Weight
		}
	}
	least := m.block.policy.Trust.Contest
	if no == 0 || no >= yes || 3*yes <= total-total%3 || no*uint64(least.Den) < total*uint64(least.Num) {
		return nil, nil
	}
	for i := range p.Voters {
		v := &p.Voters[i]
		if !v.Anchor {
			continue
		}
		id := v.Key.ID()
		switch c, at, _ := p.choseInTime(id); {
		case c == votes.Approve:
			approved = append(approved, id)
		case c == votes.Reject && !p.clearBefore(at) && !slices.Contains(parties, id):
			warned = append(warned, id)
		}
	}
	return approved, warned
}

// clearBefore reports whether the blocks before one have half of the weight that carries the motion.
func (p *motion) clearBefore(at aweigh.Height) bool {
	var sum uint64
	seen := make(map[aweigh.Hash]bool)
	for i := range p.Voters {
		id := p.Voters[i].Key.ID()
		if c, by, _ := p.choseInTime(id); c == votes.Approve && by < at && !seen[id] {
			for j := range p.Voters {
				if p.Voters[j].Key.ID() == id {
					sum += p.Voters[j].Weight
				}
			}
		}
		seen[id] = true
	}
	return 2*sum >= p.Rule.Num+1
}

// credit are the anchors that have credit for a warning of a motion if another one reverses it.
func (m *Model) credit(w *warning, p *motion) (all []aweigh.AnchorID) {
	var total, both uint64
	for i := range p.Voters {
		v := &p.Voters[i]
		if !v.Anchor {
			continue
		}
		total += v.Weight
		if c, _, _ := p.choseInTime(v.Key.ID()); c == votes.Approve && slices.Contains(w.Approved, v.Key.ID()) {
			both += v.Weight
		}
	}
	enough := both*3 > total
	if slices.ContainsFunc(m.parties(p), func(key aweigh.Hash) bool { return slices.Contains(w.Parties, key) }) {
		enough = both*2 > total
	}
	for _, a := range w.Warned {
		if c, _, two := p.choseInTime(a.Anchor); enough && c != votes.Reject && !two {
			all = append(all, a.Anchor)
		}
	}
	return all
}

// parties are the keys of all that ask for a change, in order: those of an anchor go together.
func (m *Model) parties(p *motion) []aweigh.Hash {
	set := map[aweigh.Hash]bool{p.mut.Author: true}
	for _, g := range grantsOf(p.mut) {
		set[g.By.ID()], set[g.To.ID()] = true, true
	}
	for again := true; again; {
		again = false
		for i := range m.block.told.Epoch.Roster.Anchors {
			a := &m.block.told.Epoch.Roster.Anchors[i]
			own := []aweigh.Hash{a.Key.ID()}
			if node, ok := scope.PeerKey(a.Peer); ok {
				own = append(own, node.ID())
			}
			in := 0
			for _, key := range own {
				if set[key] {
					in++
				}
			}
			if in > 0 && in < len(own) {
				again = true
				for _, key := range own {
					set[key] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
}

// unwarned takes back what a decision did that cannot take effect.
func (m *Model) unwarned(id votes.MotionID) {
	m.warnings = slices.DeleteFunc(m.warnings, func(w *warning) bool { return w.Motion == id })
	for _, w := range m.warnings {
		if w.Reversal != nil && w.Reversal.Motion == id {
			w.Reversal = nil
		}
	}
}

// forgetWarnings forgets the motions that do not count in an epoch any more.
func (m *Model) forgetWarnings(e *scope.Epoch, governed aweigh.Epoch) {
	m.warnings = slices.DeleteFunc(m.warnings, func(w *warning) bool {
		from := w.Epoch
		if w.Reversal != nil {
			from = w.Reversal.Epoch
		}
		k := aweigh.Epoch(e.Policy.Trust.Reversal)
		return k == 0 || e.Number > from+k || w.Epoch < governed
	})
}

// compareWarnings compares the contested motions that are remembered, without what warnings cost, which rests on the
// tally.
func (m *Model) compareWarnings(d *Differences, s *scope.State) {
	e, err := s.Epoch()
	got, err2 := s.Warnings()
	if d.fail(cmp.Or(err, err2), "contested motions") {
		return
	}
	m.forgetWarnings(e, s.Head().Governed)
	for i := range got {
		for j := range got[i].Warned {
			got[i].Warned[j].Cost = 0
		}
	}
	var want []scope.Warning
	for _, w := range m.warnings {
		want = append(want, w.Warning)
	}
	d.look(bytes.Equal(canon.Encode(got), canon.Encode(want)), "contested motions\n got %+v\nwant %+v", got, want)
}
