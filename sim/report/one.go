package report

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// inOne is a run with the marks and breaches of one scope only, since blocks and views of several scopes would be
// confused: the scope of the gravest breach, otherwise the root. It returns which, if there are several.
func inOne(r *sim.Result) (one *sim.Result, which string) {
	of, shallow := 0, *r
	if len(r.Broken) > 0 {
		of = gravest(r.Broken).Scope
	}
	shallow.Marks = slices.DeleteFunc(slices.Clone(r.Marks), func(m sim.Mark) bool { return m.Scope != of })
	shallow.Broken = slices.DeleteFunc(slices.Clone(r.Broken), func(b sim.Breach) bool { return b.Scope != of })
	switch {
	case len(r.Scopes) == 0:
	case of == 0:
		which = " Only the root scope is drawn."
	default:
		which = fmt.Sprintf(" Only the scope of %s is drawn.", r.Scopes[of-1].Prefix)
	}
	return &shallow, which
}

// gravest is the breach to look at: the first of agreement, or else the first.
func gravest(all []sim.Breach) *sim.Breach {
	agreement := func(b sim.Breach) bool { return b.Invariant == scenario.Invariants[sim.Agreement].Name }
	return &all[max(0, slices.IndexFunc(all, agreement))]
}
