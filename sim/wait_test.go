package sim

import (
	"github.com/aweigh/aweigh/internal/testshort"
	"math/big"
	"testing"
	"time"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// waiting is a world in which actions by a verb wait for approval.
var waiting = scenario.Scenario{
	Network: scenario.Network{
		Anchors: 5, When: []string{"", "", "", ""},
		Waits: []scenario.Wait{{Verbs: []string{"extend"}, Share: 600_000, Window: 3 * time.Second}},
	},
	Load: scenario.Load{Writes: 3, Reads: 3, Acts: 160}, Stop: 6 * time.Second,
}

// TestFalseCountsOfActionsAreSeen gives the watch other voters, another rule or another deadline for actions that wait
// than the nodes have, or a fate that is not on record: the nodes' counts must break the invariant.
func TestFalseCountsOfActionsAreSeen(t *testing.T) {
	testshort.Skip(t)
	for name, bend := range map[string]func(*poll){
		"heavier":        func(p *poll) { p.total = new(big.Int).Mul(p.total, big.NewInt(3)) },
		"another rule":   func(p *poll) { p.num = big.NewInt(1_000_000) },
		"early deadline": func(p *poll) { p.deadline = start },
		"no voters":      func(p *poll) { clear(p.voters) },
		"withdrawn":      func(p *poll) { p.fate = scope.Withdrawn },
		"nothing":        func(*poll) {},
	} {
		w := newWorld(t, waiting)
		w.startMotions()
		w.startClients()
		bent := 0
		for i := range 1200 {
			w.Run(time.Duration(i)*5*time.Millisecond-w.Now(), nil)
			for _, p := range w.watch.motions.order[bent:] {
				bend(p)
				bent++
			}
		}
		w.audit()
		broken := w.watch.verdicts[Motions].Broken + w.watch.verdicts[Closed].Broken
		if bent < 5 && name == "nothing" || (broken > 0) != (name != "nothing") {
			t.Errorf("%s: %d of %d motions are seen as false", name, broken, bent)
		}
	}
}

// TestUnaskedApprovalsAreSeen changes which approvals the watch knows: an action that waits, or does not, must break
// the invariant.
func TestUnaskedApprovalsAreSeen(t *testing.T) {
	for name, change := range map[string]func(*scope.Approval){
		"another verb":   func(a *scope.Approval) { a.Verbs = []string{"write"} },
		"another prefix": func(a *scope.Approval) { a.Prefix = []byte("/other/") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waiting)
			w.startMotions()
			w.startClients()
			e := *w.epochs[0]
			e.Policy.Approvals = []scope.Approval{e.Policy.Approvals[0]}
			change(&e.Policy.Approvals[0])
			w.at(time.Second, func() { w.epochs[0] = &e })
			w.Run(w.Scenario.Stop, nil)
			if w.watch.verdicts[Motions].Broken == 0 {
				t.Errorf("broken: %v", w.watch.broken)
			}
		})
	}
}
