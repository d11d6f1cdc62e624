package scenario

import (
	"slices"
	"time"

	"github.com/aweigh/aweigh/trust"
)

// WithDefaults is the scenario with the defaults in place of zeroes. The
// anchors of a Role by weight are not chosen here.
func (s Scenario) WithDefaults() Scenario {
	or(&s.Seed, 1)
	or(&s.Stop, 10*time.Second)

	n := &s.Network
	or(&n.Anchors, 7)
	or(&n.EpochBlocks, 10_000)
	or(&n.EpochTime, time.Hour)
	or(&n.Whole, int(trust.DefaultParams().Whole))
	or(&n.Judged, int(trust.DefaultParams().Judged))
	or(&n.Reversal, int(trust.DefaultParams().Reversal))
	or(&n.Mode, "bft")
	if len(n.Trust) == 0 {
		n.Trust = []Share{Whole / 2}
	}
	t := &n.Timing // as quorum.Timing has them
	or(&t.View, time.Second)
	or(&t.MaxView, max(16*time.Second, t.View))
	or(&t.Offer, 250*time.Millisecond)
	or(&t.Settle, 100*time.Millisecond)

	l := &s.Links
	or(&l.Model, "uniform")
	switch l.Model {
	case "uniform", "lognormal":
		or(&l.Delay, time.Millisecond)
		or(&l.Spread, 4*time.Millisecond)
	case "constant":
		or(&l.Delay, time.Millisecond)
	case "regions":
		if len(l.Regions) == 0 {
			l.Regions = slices.Clone(Regions)
		}
	}
	or(&l.Most, 10*time.Second)

	s.Roles = slices.Clone(s.Roles)
	for i := range s.Roles {
		or(&s.Roles[i].Rate, Whole/2)
	}

	s.Faults.Timed = slices.Clone(s.Faults.Timed)
	for i := range s.Faults.Timed {
		switch f := &s.Faults.Timed[i]; f.Kind {
		case "offset", "step", "ahead", "slow", "lag", "firsthand", "decisive":
			or(&f.By, time.Second)
		case "crash":
			or(&f.Keep, "some")
		}
		if f := &s.Faults.Timed[i]; f.During != "" {
			or(&f.For, 500*time.Millisecond)
		}
	}

	or(&s.Load.Clients, 3)
	or(&s.Load.Writes, 30)
	or(&s.Load.Reads, 15)
	or(&s.Load.Keys, 4)
	or(&s.Load.Value, 16)
	or(&s.Load.Swap, Whole/4)
	or(&s.Load.Give, 4*time.Second)

	s.Network.Waits = slices.Clone(s.Network.Waits)
	for i := range s.Network.Waits {
		s.Network.Waits[i].defaults()
	}
	s.Approval.defaults()
	if s.Heal != nil {
		heal := *s.Heal
		or(&heal.Within, 3*time.Minute)
		s.Heal = &heal
	}
	return s
}

// or gives a zero value its default.
func or[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}
