package forge

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Kit is what a forger works with.
type Kit struct {
	Rand    *rand.Rand
	Keys    []votes.PrivateKey // of anchors that lie together
	Outside *votes.PrivateKey  // of one that has no seat, if any
	Weights quorum.Weights
	Rules   quorum.Rules

	seen map[stocked][]reflect.Value
}

// stocked is one kind of genuine parts that passed by: those of one type that stand in places of one class.
type stocked struct {
	class Class
	of    reflect.Type
}

// mostSeen bounds the parts of one kind that a forger keeps.
const mostSeen = 64

// Harvest keeps the parts of a genuine message.
func (k *Kit) Harvest(m *Message) {
	if k.seen == nil {
		k.seen = make(map[stocked][]reflect.Value)
	}
	for _, s := range m.Sites {
		at := stocked{s.Class, s.Value.Type()}
		if all := k.seen[at]; s.Class == List || s.Value.IsZero() {
			continue
		} else if len(all) < mostSeen {
			k.seen[at] = append(all, deepCopy(s.Value))
		} else {
			all[k.Rand.IntN(len(all))] = deepCopy(s.Value)
		}
	}
}

// another is a genuine part that fits into a site in place of the one that is there; ok is false if there is none.
func (k *Kit) another(class Class, there reflect.Value) (other reflect.Value, ok bool) {
	all := k.seen[stocked{class, there.Type()}]
	if c, certificate := there.Interface().(quorum.Certificate); certificate && k.Rand.IntN(2) == 0 { // of the block, and another kind
		all = slices.DeleteFunc(slices.Clone(all), func(v reflect.Value) bool {
			s := v.Interface().(quorum.Certificate).Subject
			return s == c.Subject || s.Block != c.Subject.Block
		})
	}
	if len(all) == 0 {
		return other, false
	}
	other = all[k.Rand.IntN(len(all))]
	return deepCopy(other), !reflect.DeepEqual(other.Interface(), there.Interface())
}

// key is that of the coalition's which an ID names, or one of the others.
func (k *Kit) key(id aweigh.Hash) (key votes.PrivateKey, own bool) {
	for _, key := range k.Keys {
		if key.Public().ID() == id {
			return key, true
		}
	}
	return k.Keys[k.Rand.IntN(len(k.Keys))], false
}

// Forge spoils the site by an operator. It reports false if the operator has nothing to do there.
func (k *Kit) Forge(m *Message, s *Site, op Operator) bool {
	if !op.fits(s.Class) {
		return false
	}
	before := canon.Encode(s.Value.Interface())
	if !op.do(k, s) || bytes.Equal(before, canon.Encode(s.Value.Interface())) {
		return false
	}
	s.sealed()
	return true
}

// alike changes what was the same as a site before it was spoiled, so that the parts of the message still agree.
func (m *Message) alike(s *Site, was reflect.Value) {
	for _, o := range m.Sites {
		if o != s && o.Value.Type() == was.Type() && reflect.DeepEqual(o.Value.Interface(), was.Interface()) {
			o.Value.Set(deepCopy(s.Value))
			o.sealed()
		}
	}
}

// Any spoils some place of a message, each class of places as likely as the others. Where the message says the same in
// several places, all are spoiled alike half of the time.
func (k *Kit) Any(m *Message) (s *Site, op Operator, ok bool) {
	var there []Class
	of := make(map[Class][]*Site)
	for _, s := range m.Sites {
		if of[s.Class] == nil {
			there = append(there, s.Class)
		}
		of[s.Class] = append(of[s.Class], s)
	}
	for range 8 { // some have nothing to do where they come to
		if len(there) == 0 {
			return nil, op, false
		}
		sites := of[there[k.Rand.IntN(len(there))]]
		s = sites[k.Rand.IntN(len(sites))]
		fit := OperatorsOf(s.Class)
		op = fit[k.Rand.IntN(len(fit))]
		was := deepCopy(s.Value)
		if k.Forge(m, s, op) {
			if k.Rand.IntN(2) == 0 {
				m.alike(s, was)
			}
			return s, op, true
		}
	}
	return nil, op, false
}
