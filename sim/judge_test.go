package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestOldAnswersAreSeen answers reads below what was final elsewhere, and from a state that others did not have.
func TestOldAnswersAreSeen(t *testing.T) {
	for _, c := range []struct {
		top, at aweigh.Height // beyond the node's own
		digest  bool
		broken  string
	}{
		{},
		{top: 1, at: 1},
		{top: 1, broken: "is answered at height"},
		{digest: true, broken: "finds state"},
	} {
		w := newWorld(t, scenario.Scenario{Network: scenario.Network{Anchors: 4}, Stop: 2 * time.Second})
		w.startClients()
		w.Run(w.Scenario.Stop, nil)
		n, x := w.Nodes[0], &w.watch
		x.top = n.Height + c.top
		if c.digest {
			x.digests[n.Height] = w.Genesis.Hash()
		}
		n.judged(func(machine.Reply) {})(machine.Reply{Height: n.Height + c.at})
		if broken := len(x.broken) > 0; broken != (c.broken != "") || broken && !strings.Contains(x.broken[0].Text, c.broken) {
			t.Errorf("%+v: %v", c, x.broken)
		}
	}
}
