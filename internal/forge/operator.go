package forge

import (
	"reflect"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Operator is one way to spoil a part of a message.
type Operator struct {
	Name string
	of   []Class                    // none: all
	do   func(k *Kit, s *Site) bool // false: nothing is to be done there
}

func (o Operator) fits(c Class) bool { return len(o.of) == 0 || slices.Contains(o.of, c) }

// OperatorsOf are those for the places of a class.
func OperatorsOf(c Class) (all []Operator) {
	for _, o := range Operators {
		if o.fits(c) {
			all = append(all, o)
		}
	}
	return all
}

var names = []Class{Signature, Ballot} // that have an anchor

// Operators are all ways to spoil a part of a message.
var Operators = []Operator{
	{"flip a bit", []Class{Bytes}, func(k *Kit, s *Site) bool {
		b := s.Value.Bytes()
		if len(b) == 0 {
			return false
		}
		b[k.Rand.IntN(len(b))] ^= 1 << k.Rand.IntN(8)
		return true
	}},
	{"cut short", []Class{Bytes}, func(k *Kit, s *Site) bool {
		b := s.Value.Bytes()
		s.Value.SetBytes(b[:k.Rand.IntN(max(1, len(b)))])
		return len(b) > 0
	}},
	{"sign in another's name", []Class{Bytes}, func(k *Kit, s *Site) bool {
		if s.claim.owner == nil {
			return false
		}
		key, own := k.key(s.claim.owner())
		ctx, message := s.claim.message()
		if own { // its own signature, on something else
			message = append(message, 0)
		}
		s.Value.SetBytes(key.Sign(ctx, message))
		return true
	}},
	{"sign in another context", []Class{Bytes}, func(k *Kit, s *Site) bool {
		if s.claim.owner == nil {
			return false
		}
		key, own := k.key(s.claim.owner())
		_, message := s.claim.message()
		s.Value.SetBytes(key.Sign(votes.ContextConsent, message))
		return own
	}},
	{"put another in its place", nil, func(k *Kit, s *Site) bool {
		other, ok := k.another(s.Class, s.Value)
		if ok {
			s.Value.Set(other)
		}
		return ok
	}},
	{"name another anchor", names, func(k *Kit, s *Site) bool {
		if k.Weights.Len() == 0 {
			return false
		}
		other := k.Weights.At(k.Rand.IntN(k.Weights.Len())).Anchor
		s.Value.FieldByName("Anchor").Set(reflect.ValueOf(other))
		return true
	}},
	{"say something else", []Class{Subject, Domain, Header}, func(k *Kit, s *Site) bool {
		switch x := s.Value.Addr().Interface().(type) {
		case *quorum.Subject:
			*x = k.otherSubject(*x)
		case *votes.Domain:
			*x = k.otherDomain(*x)
		case *scope.Header:
			*x = k.otherHeader(*x)
		}
		return true
	}},
	{"leave one out", []Class{List}, func(k *Kit, s *Site) bool {
		n := s.Value.Len()
		if n == 0 {
			return false
		}
		at := k.Rand.IntN(n)
		s.Value.Set(reflect.AppendSlice(copied(s.Value.Slice(0, at)), s.Value.Slice(at+1, n)))
		return true
	}},
	{"leave all out", []Class{List, Certificate, Evidence}, func(k *Kit, s *Site) bool {
		s.Value.SetZero()
		return true
	}},
	{"say one twice", []Class{List}, func(k *Kit, s *Site) bool {
		n := s.Value.Len()
		if n == 0 {
			return false
		}
		at := k.Rand.IntN(n)
		s.Value.Set(reflect.AppendSlice(copied(s.Value.Slice(0, at+1)), s.Value.Slice(at, n)))
		return true
	}},
	{"change the order", []Class{List}, func(k *Kit, s *Site) bool {
		n := s.Value.Len()
		if n < 2 {
			return false
		}
		c := copied(s.Value)
		reflect.Swapper(c.Interface())(k.Rand.IntN(n), k.Rand.IntN(n))
		s.Value.Set(c)
		return true
	}},
	{"add one", []Class{List}, func(k *Kit, s *Site) bool {
		for _, class := range []Class{Certificate, Signature, Ballot, Fault, Header, EncodedBallot, EncodedBlock, EncodedBundle} {
			if all := k.seen[stocked{class, s.Value.Type().Elem()}]; len(all) > 0 {
				s.Value.Set(reflect.Append(copied(s.Value), deepCopy(all[k.Rand.IntN(len(all))])))
				return true
			}
		}
		return false
	}},
	{"accuse an anchor", []Class{Evidence}, func(k *Kit, s *Site) bool {
		f, ok := k.fault(s.claim.domain)
		if ok {
			proofs := s.Value.FieldByName("Proofs")
			proofs.Set(reflect.Append(copied(proofs), reflect.ValueOf(f)))
		}
		return ok
	}},
	{"record a ballot under another signature", []Class{Evidence}, func(k *Kit, s *Site) bool {
		all := k.seen[stocked{EncodedBallot, reflect.TypeFor[[]byte]()}]
		if len(all) == 0 {
			return false
		}
		b, err := votes.DecodeMotionBallot(all[k.Rand.IntN(len(all))].Bytes())
		if err != nil {
			return false
		}
		key, _ := k.key(aweigh.Hash{})
		b.Signature = key.Sign(votes.ContextCOSE, append(b.SigningBytes(), 0))
		s.Value.FieldByName("Ballots").Set(reflect.ValueOf([][]byte{b.Encode()}))
		return true
	}},
	{"one signature too few", []Class{Certificate}, light},
	{"one signature, and another twice", []Class{Certificate}, repeated},
	{"fill up with names", []Class{Certificate}, stuffed},
	{"fill up with the signatures of another", []Class{Certificate}, mixed},
	{"add an anchor without a seat", []Class{Certificate}, strange},
	{"sign by themselves", []Class{Certificate}, alone},
}

func copied(list reflect.Value) reflect.Value {
	return reflect.AppendSlice(reflect.MakeSlice(list.Type(), 0, list.Len()+1), list)
}

// never is a view that no epoch reaches: the coalition's signatures there contradict no other of its signatures.
const never = 1 << 40

// otherSubject is about another kind, view or block.
func (k *Kit) otherSubject(s quorum.Subject) quorum.Subject {
	switch k.Rand.IntN(3) {
	case 0:
		s.View += aweigh.View(1 + k.Rand.IntN(3))
	case 1:
		if s.Block.IsZero() {
			s.Kind = quorum.Finalize
		}
		s.Block = aweigh.Sum(s.Block[:])
	default:
		if s.Kind = s.Kind%3 + 1; s.Kind == quorum.Nullify {
			s.Block = aweigh.Hash{}
		} else if s.Block.IsZero() {
			s.Block = aweigh.Sum(nil)
		}
	}
	return s
}

// otherDomain is of another network, scope, epoch, roster or policy.
func (k *Kit) otherDomain(d votes.Domain) votes.Domain {
	switch k.Rand.IntN(6) {
	case 0:
		d.Network = aweigh.Sum(d.Network[:])
	case 1:
		d.Scope = aweigh.Sum(d.Scope[:])
	case 2:
		d.Epoch++
	case 3:
		d.Epoch = max(d.Epoch, 1) - 1
	case 4:
		d.Roster = aweigh.Sum(d.Roster[:])
	default:
		d.Policy = aweigh.Sum(d.Policy[:])
	}
	return d
}

// otherHeader is of another time, height, view, leader or state.
func (k *Kit) otherHeader(h scope.Header) scope.Header {
	switch k.Rand.IntN(5) {
	case 0:
		h.Time++
	case 1:
		h.Height += aweigh.Height(1 + k.Rand.IntN(50))
	case 2:
		h.View++
	case 3:
		if k.Weights.Len() > 0 {
			h.Proposer = k.Weights.At(k.Rand.IntN(k.Weights.Len())).Anchor
		}
	default:
		h.State = aweigh.Sum(h.State[:])
	}
	return h
}

// fault is a proof against an anchor that did not contradict itself: of two statements of two anchors, or of one
// statement twice, or under signatures of the coalition's own.
func (k *Kit) fault(d votes.Domain) (f votes.Equivocation, ok bool) {
	if k.Weights.Len() < 2 {
		return f, false
	}
	seats := k.Rand.Perm(k.Weights.Len())
	key, _ := k.key(aweigh.Hash{})
	sign := func(by aweigh.AnchorID, s quorum.Subject) votes.Ballot {
		b := votes.Ballot{Format: scope.Format, Domain: d, Subject: s, Anchor: by}
		as, _ := k.key(by)
		b.Signature = as.Sign(votes.ContextBallot, b.SigningBytes())
		return b
	}
	view := aweigh.View(never + k.Rand.Int64N(never))
	yes, no := quorum.Subject{Kind: quorum.Finalize, View: view, Block: aweigh.Sum(nil)}, quorum.Subject{Kind: quorum.Nullify, View: view}
	victim := k.Weights.At(seats[0]).Anchor
	switch k.Rand.IntN(3) {
	case 0: // of an anchor and of another
		f, _ = votes.NewEquivocation(sign(victim, yes), sign(key.Public().ID(), no))
	case 1: // the coalition's signature in the victim's name
		f, _ = votes.NewEquivocation(sign(victim, yes), sign(victim, no))
	default: // of an anchor that signed the same twice
		f, _ = votes.NewEquivocation(sign(key.Public().ID(), no), sign(key.Public().ID(), no))
	}
	return f, true
}
