package sim

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/sim/scenario"
)

// TestADayOfMoves: however the load moves about, a prefix that came home had its scope for as long at least as it must
// be quiet, and not too many have one at a time. It tells for how long more than one move was under way.
func TestADayOfMoves(t *testing.T) {
	testshort.SkipUnlessLong(t)
	for name, c := range map[string]struct {
		change func(*scenario.Scenario)
		quiet  time.Duration
		most   int
		homes  int // at least
	}{
		"as the scenario has it": {func(*scenario.Scenario) {}, 30 * time.Minute, 2, 10},
		"eager": {func(s *scenario.Scenario) {
			s.Network.Split, s.Network.Fold, s.Load.Bursts, s.Stop = "act,rate=2,epochs=1,rest=1,most=4", "act,quiet=10m", 13, 3*time.Hour
		}, 10 * time.Minute, 4, 8},
		"everywhere at once": {func(s *scenario.Scenario) {
			s.Load.Moves, s.Network.Split = false, "act,rate=2,epochs=1,rest=1,most=4"
		}, 30 * time.Minute, 4, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scenario.FromLibrary("tides")
			if err != nil {
				t.Fatal(err)
			}
			s.Shows = nil
			c.change(&s)
			r := mustRun(t, s)
			if why := r.Failure(); why != "" {
				t.Fatal(why)
			}
			homes := 0
			var both time.Duration
			for i := range r.Scopes {
				x := &r.Scopes[i]
				now := 1
				for j := range r.Scopes[:i] {
					y := &r.Scopes[j]
					if y.Home == 0 || y.Home > x.At {
						now++
					}
					if x.Ordered > 0 && y.Ordered > 0 {
						both += max(0, min(x.Home, y.Home)-max(x.Ordered, y.Ordered))
					}
				}
				if !x.ByItself || now > c.most {
					t.Errorf("the scope of %s, after %v, is one of %d; by itself: %v", x.Prefix, x.At, now, x.ByItself)
				}
				if x.Home == 0 {
					continue
				}
				if homes++; x.Ordered-x.At < c.quiet {
					t.Errorf("the scope of %s was ordered home %v after it split off", x.Prefix, x.Ordered-x.At)
				}
			}
			if homes < c.homes {
				t.Errorf("%d came home, want %d", homes, c.homes)
			}
			t.Logf("in %v, %d prefixes split off and %d came home; two were on their way home together for %v, %.4f %% of the time",
				s.Stop, len(r.Scopes), homes, both, 100*both.Seconds()/s.Stop.Seconds())
		})
	}
}
