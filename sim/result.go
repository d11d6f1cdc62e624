package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
)

// Result is what came of a run.
type Result struct {
	Scenario Scenario // with its defaults
	Trace    aweigh.Hash
	Events   uint64
	Virtual  time.Duration // how long the run was in the world

	Verdicts []Verdict // one for each of Invariants, in their order
	Broken   []Breach  // in the order of time; the first is the one to look at
	Healed   Healing
	Goals    []Count // one for each of Goals: how often it was reached
	Attacks  []Count // lies told, by play
	Refused  []Count // frames that honest nodes refused, by reason
	Proven   []int   // anchors whose faults stand proven in a final block
	Liars    []int   // anchors that play a role
	Faulty   uint64  // weight of those who lie or whose disks do, of Total, in the epoch in which it was most; Budget of it does no harm
	Budget   uint64
	Total    uint64

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
// scenario does not expect to break, none broke of those expected, or progress
// was possible and did not come.
func (r *Result) Failed() bool { return r.Failure() != "" }

// Failure is why the run failed, in one line; "" if it did not.
func (r *Result) Failure() string {
	expected := false
	for _, b := range r.Broken {
		if !slices.Contains(r.Scenario.Expect, b.Invariant) {
			if len(r.Scenario.Expect) == 0 {
				return b.String()
			}
			continue // what follows from a broken promise is not held against the run
		}
		expected = true
	}
	switch {
	case len(r.Scenario.Expect) > 0 && !expected:
		return fmt.Sprintf("none of %v broke, although the cast is over the budget", r.Scenario.Expect)
	case len(r.Scenario.Expect) == 0 && r.Healed.Possible && !r.Healed.Reached:
		return "no progress after healing: " + r.Healed.Why
	}
	return ""
}

// Verdict is how one invariant fared.
type Verdict struct {
	Invariant string
	Checks    uint64 // how often it was looked at
	Broken    uint64
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
