package action

import (
	"slices"
	"sync"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// Rules are a table ready to be asked. Safe for concurrent use.
type Rules struct {
	table      Table
	predicates []*Predicate // of each rule; nil for one that is none
	wrong      error        // why the first of those is none
}

// prepared are the Rules made so far, by the hash of their table: one compilation
// serves every node, epoch and reader of the process.
var prepared struct {
	sync.Mutex
	of map[aweigh.Hash]*Rules
}

// maxPrepared bounds the tables remembered.
const maxPrepared = 256

// Prepare compiles a table, or finds it compiled. A rule with an invalid
// predicate always denies; Check keeps such from policies.
func Prepare(t Table) *Rules {
	if len(t) == 0 {
		return new(Rules)
	}
	id := canon.Hash("aweigh/actions/1", t)
	prepared.Lock()
	defer prepared.Unlock()
	if r := prepared.of[id]; r != nil {
		return r
	}
	t = slices.Clone(t)
	r := &Rules{table: t, predicates: make([]*Predicate, len(t))}
	for i := range t {
		p, err := t[i].compile()
		if r.predicates[i] = p; err != nil && r.wrong == nil {
			r.wrong = err
		}
	}
	if prepared.of == nil || len(prepared.of) >= maxPrepared {
		prepared.of = make(map[aweigh.Hash]*Rules)
	}
	prepared.of[id] = r
	return r
}

// Verdict is a scope's answer about a verb.
type Verdict struct {
	Allowed bool
	Class   Class  // 0 if the scope does not know the verb
	Rule    string // that decided; empty if there is none about the verb
	Why     string // it was denied, the same on all nodes
	Detail  error  // what more is known of that, for people alone
}

// Judge returns the verdict of the scope that decides about the object. An unknown verb
// is denied; every scope knows read and write.
func (r *Rules) Judge(f *Facts) Verdict {
	if i, ok := r.table.place(f.Verb); ok {
		return r.ask(i, f)
	}
	if class := builtin(f.Verb); class != 0 {
		return Verdict{Allowed: true, Class: class}
	}
	return Verdict{Why: "no rule knows the verb " + f.Verb}
}

// Pass returns the verdict of a scope on the way to the one that decides. A scope
// without a rule about the verb does not object; one with a rule leaves the class to
// the scope that decides.
func (r *Rules) Pass(f *Facts) Verdict {
	if i, ok := r.table.place(f.Verb); ok {
		return r.ask(i, f)
	}
	return Verdict{Allowed: true}
}

func (r *Rules) ask(i int, f *Facts) Verdict {
	v := Verdict{Class: r.table[i].Class, Rule: r.table[i].String()}
	if p := r.predicates[i]; p != nil {
		v.Allowed, v.Detail = p.Holds(f)
	}
	switch {
	case v.Allowed:
	case v.Detail != nil:
		v.Why = "the rule cannot be worked out: " + v.Rule
	default:
		v.Why = "the rule does not hold: " + v.Rule
	}
	return v
}

// Has reports whether there is a rule about a verb.
func (r *Rules) Has(verb string) bool {
	_, ok := r.table.place(verb)
	return ok
}

// Cost is the most steps that asking about a verb may take.
func (r *Rules) Cost(verb string) uint64 {
	if i, ok := r.table.place(verb); ok && r.predicates[i] != nil {
		return r.predicates[i].Cost()
	}
	return 0
}
