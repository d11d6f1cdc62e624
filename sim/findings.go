package sim

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/sim/scenario"
)

// findings are what all scopes of a world show together.
type findings struct {
	verdicts []Verdict
	broken   []Breach
	expected map[string]bool // still to break

	goals   map[string]uint64
	attacks map[string]uint64
	refusal map[string]uint64
	proven  map[int]bool
	uids    map[objectBirth]aweigh.UID
	lives   map[aweigh.UID]aweigh.ScopeID // the scope in which an object is, once the lineages are read; zero: not any more

	written map[string]int64 // puts of each key in final blocks of all scopes, and how often it came home
	unsure  map[string]bool  // keys that came home from where too many lie

	deeds    []*operation
	reads    int
	finality []time.Duration
}

func (f *findings) open(s scenario.Scenario) {
	*f = findings{
		goals: make(map[string]uint64), attacks: make(map[string]uint64), refusal: make(map[string]uint64),
		proven: make(map[int]bool), written: make(map[string]int64), unsure: make(map[string]bool), lives: make(map[aweigh.UID]aweigh.ScopeID), uids: make(map[objectBirth]aweigh.UID), expected: make(map[string]bool),
	}
	for _, i := range scenario.Invariants {
		f.verdicts = append(f.verdicts, Verdict{Invariant: i.Name})
	}
	for _, name := range s.Expect {
		f.expected[name] = true
	}
}

// reach counts one more time that a goal was reached.
func (f *findings) reach(goal string) { f.goals[goal]++ }
