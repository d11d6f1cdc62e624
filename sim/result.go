package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Result is what came of a run.
type Result struct {
	Scenario scenario.Scenario // with its defaults
	Trace    aweigh.Hash
	Events   uint64
	Virtual  time.Duration // how long the run was in the world

	Verdicts []Verdict // one for each of Invariants, in their order
	Broken   []Breach  // in the order of time; the first is the one to look at
	Healed   Healing
	Goals    []Count // one for each of Goals: how often it was reached
	Attacks  []Count // lies told, by attack
	Refused  []Count // frames that honest nodes refused, by reason

	Executed   uint64  // mutations whose outcomes the model of execution reckoned, and compared
	Unmodelled []Count // outcomes that it took from nodes instead, by kind

	Proven []int  // anchors whose faults are proven in a final block
	Liars  []int  // anchors that have a role
	Faulty uint64 // weight of liars and lying disks, of Total, where it was most; Budget is harmless
	Budget uint64
	Total  uint64

	Heights   []aweigh.Height // final, by node; what honest and lying machines hold
	Blocks    int             // final
	Writes    int             // acknowledged
	Reads     int             // answered
	Finality  []time.Duration // from a write's submission to its acknowledgement, in order of acknowledgement
	Epochs    []EpochRecord   // as the first honest node to reach each saw it
	Pauses    []time.Duration // of clients that wait while an epoch ends, see pauses
	Outgrown  bool            // the faulty came to weigh more than the budget, having begun below: nothing is promised any more
	Messages  uint64          // sent to one node each
	Bytes     uint64          // of them
	Nullified int             // views
	Scopes    []ScopeRecord   // that were founded, in that order; Heights, Epochs, Faulty and what follows from it are of the root scope
	Marks     []Mark          // if Options asked for them
}

// Failed reports whether the run is one to look at: an invariant broke that the
// scenario does not expect to break, one did not that it does expect to break,
// progress was possible and did not come, or the run misses a goal of its scenario.
func (r *Result) Failed() bool { return r.Failure() != "" }

// Failure is why the run failed, in one line; "" if it did not.
func (r *Result) Failure() string {
	expect := r.Scenario.Expect
	for _, b := range r.Broken {
		// Effects of a broken promise do not count against the run. One exception: even
		// then, the evidence must name the anchors that broke it.
		if len(expect) == 0 || b.Invariant == scenario.Invariants[Accountability].Name && !slices.Contains(expect, b.Invariant) {
			return b.String()
		}
	}
	if whole := r.unbroken(); len(whole) > 0 {
		return fmt.Sprintf("the scenario expects %s to break, and %s did not", strings.Join(expect, ", "), strings.Join(whole, ", "))
	}
	if len(expect) == 0 && r.Stuck() {
		return "no progress after healing: " + r.Healed.Why
	}
	if missing := r.missing(); len(missing) > 0 {
		return fmt.Sprintf("the run does not show what it was made to show: %s; try another seed, a longer stop, or --set shows=null",
			strings.Join(missing, ", "))
	}
	return ""
}

// Culprit is the breach to look at: the first one, or, if breaches are expected, the
// first one of the invariant that the scenario names first. It is nil if there is none.
func (r *Result) Culprit() *Breach {
	if len(r.Scenario.Expect) == 0 && len(r.Broken) > 0 {
		return &r.Broken[0]
	}
	for _, e := range r.Scenario.Expect {
		if i := slices.IndexFunc(r.Broken, func(b Breach) bool { return b.Invariant == e }); i >= 0 {
			return &r.Broken[i]
		}
	}
	return nil
}

// unbroken are the invariants that the scenario expects to break, and that did not.
func (r *Result) unbroken() (names []string) {
	for _, e := range r.Scenario.Expect {
		if !slices.ContainsFunc(r.Verdicts, func(v Verdict) bool { return v.Invariant == e && v.Broken > 0 }) &&
			!slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Invariant == e }) {
			names = append(names, e)
		}
	}
	return names
}

// Stuck reports whether progress was possible, and did not come.
func (r *Result) Stuck() bool { return r.Healed.Possible && !r.Healed.Reached }

// missing are the goals that the scenario names and that were not reached, and the
// attacks of its roles that told no lie. A scenario that names no goals misses none.
func (r *Result) missing() (what []string) {
	if len(r.Scenario.Shows) == 0 {
		return nil
	}
	for _, g := range r.Scenario.Shows {
		if count(r.Goals, g) == 0 {
			what = append(what, fmt.Sprintf("%q was never reached", g))
		}
	}
	for _, role := range r.Scenario.Roles {
		for _, p := range role.Attacks {
			if text := p + " told no lie"; count(r.Attacks, p) == 0 && !slices.Contains(what, text) {
				what = append(what, text)
			}
		}
	}
	return what
}

// count is the one of a name, 0 if there is none.
func count(all []Count, name string) uint64 {
	for _, c := range all {
		if c.Name == name {
			return c.Count
		}
	}
	return 0
}

// Verdict is how one invariant fared.
type Verdict struct {
	Invariant string
	Checks    uint64 // how often there was something to look at, and it was looked at
	Broken    uint64
}

// Looked reports whether the run checked the invariant.
func (v Verdict) Looked() bool { return v.Checks > 0 || v.Broken > 0 }

// Unlooked are the invariants that a run did not check, in their order: nothing in it
// could have broken them.
func Unlooked(all []Verdict) (names []string) {
	for _, v := range all {
		if !v.Looked() {
			names = append(names, v.Invariant)
		}
	}
	return names
}

// Breach is one moment at which an invariant broke.
type Breach struct {
	Invariant string
	At        time.Duration // since the start
	Scope     int           // as in Mark
	Node      int           // -1: all of the scope's
	Text      string
}

// String is one line.
func (b Breach) String() string {
	who := "the network"
	if b.Node >= 0 {
		who = fmt.Sprintf("node %d", b.Node)
	}
	return fmt.Sprintf("%s broken after %v at %s: %s", b.Invariant, b.At, who, b.Text)
}

// Healing is what came of Heal.
type Healing struct {
	Asked    bool
	Possible bool          // the honest nodes have the weight for every rule
	Reached  bool          // each of them made a write final, and their states are equal
	After    time.Duration // from healing to that
	Why      string        // what was lacking
}

// Count is a number of things of one name.
type Count struct {
	Name  string
	Count uint64
}
