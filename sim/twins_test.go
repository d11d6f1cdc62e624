package sim

import (
	"flag"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

var allTwins = flag.Bool("all-twins", false, "enumerate more partitions in TestTwins")

// TestTwins runs one anchor twice on one key, as in Twins (Bano et al., 2021): in
// each of two periods the machines are split into two sides, in every
// way, under different leaders; then all meet. Agreement must hold, and
// blocks must become final, or the run has proven nothing. As a positive control the
// same is done in mode crash, where no anchor may lie: there some split must fork.
func TestTwins(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for mode, anchors := range map[string]int{"bft": 4, "crash": 3} {
		t.Run(mode, func(t *testing.T) {
			forks, final, runs := 0, 0, 0
			leaders := testshort.Cases[uint64](1, 1, 2)
			if *allTwins {
				leaders = 12
			}
			for seed := uint64(1); seed <= leaders || mode == "crash" && forks == 0 && seed <= 12; seed++ {
				for first := range 16 {
					for second := range 16 {
						if !*allTwins && (first+second+int(seed))%testshort.Cases(6, 6, 3) > 0 {
							continue
						}
						broken, blocks := splitTwins(t, mode, anchors, seed, first, second)
						runs++
						final += min(blocks, 1)
						if broken {
							forks++
						}
					}
				}
			}
			t.Logf("%d runs, %d with final blocks, %d forks", runs, final, forks)
			switch {
			case final < runs:
				t.Errorf("in %d of %d runs nothing became final", runs-final, runs)
			case mode == "bft" && forks > 0:
				t.Errorf("%d forks beside one liar of four", forks)
			case mode == "crash" && forks == 0:
				t.Error("no fork where nobody may lie, and one does")
			}
		})
	}
}

// splitTwins runs one schedule: bit i of a mask is the side of machine i.
func splitTwins(t *testing.T, mode string, anchors int, seed uint64, masks ...int) (broken bool, blocks int) {
	s := scenario.Scenario{
		Seed: seed, Network: scenario.Network{Anchors: anchors, Mode: mode},
		Roles:  []scenario.Role{{Attacks: []string{"twins"}, Anchors: []int{anchors - 1}}},
		Links:  scenario.Links{Model: "constant", Delay: time.Millisecond},
		Load:   scenario.Load{Clients: 3, Writes: 9, Reads: 3, Give: 500 * time.Millisecond},
		Stop:   9 * time.Second,
		Expect: []string{"agreement"}, // to run to the end, or to a fork
	}
	w := newWorld(t, s)
	w.startClients()
	for _, mask := range masks {
		var cut [][2]*Node
		for i, a := range w.Nodes {
			for j, b := range w.Nodes {
				if i != j && (mask>>i&1) != (mask>>j&1) {
					cut = append(cut, [2]*Node{a, b})
					w.wires.block(a, b, true)
				}
			}
		}
		w.Run(3*time.Second, nil) // longer than an anchor listens, and a view takes
		for _, c := range cut {
			w.wires.block(c[0], c[1], false)
		}
	}
	for _, n := range w.Nodes {
		w.wires.meet(n)
	}
	w.Run(s.Stop, nil)
	return w.watch.verdicts[Agreement].Broken > 0, len(w.watch.final)
}
