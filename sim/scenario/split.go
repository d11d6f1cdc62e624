package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Topology is what scopes do about busy prefixes, and about those that are quiet again, in the words of "aweigh policy
// set" for --split and --fold.
func (s *Scenario) Topology() (scope.Topology, error) {
	t, err := scope.DefaultTopology(), error(nil)
	if s.Network.Split != "" {
		if t, err = policytext.ParseTopology(t, s.Network.Split); err != nil {
			return t, err
		}
	}
	if s.Network.Fold != "" {
		if t, err = policytext.ParseFold(t, s.Network.Fold); err != nil {
			return t, err
		}
	}
	p := scope.OpenPolicy(quorum.BFT)
	p.Topology = t
	return t, p.Check()
}

func (c *checker) split(s *Scenario) {
	t, err := s.Topology()
	if err != nil {
		c.refuse("network.split and network.fold", "%v", err)
	}
	l := &s.Load
	c.need(!l.Moves || l.Bursts > 0 && len(l.Under) > 1 && l.Keys >= len(l.Under), "load.moves",
		"goes with load.bursts, and with several prefixes in load.under that have keys")
	c.need(t.Split != scope.ConductAct || s.splittable(), "network.split",
		"goes with no leases, islands, motions, actions and authors, which are counted in the root scope alone")
}

// splittable reports whether all that is counted of keys is counted in the scope that has them.
func (s *Scenario) splittable() bool {
	return s.Load.Leases == 0 && s.Load.Isles == 0 && s.Load.Acts == 0 && s.Approval.Motions == 0 && len(s.Network.Authors) == 0 && s.Network.Guard == ""
}

// Splits reports whether scopes give busy prefixes a scope of their own.
func (s *Scenario) Splits() bool {
	t, err := s.Topology()
	return err == nil && t.Split == scope.ConductAct
}

// split lets scopes split by themselves in half of the worlds that have scopes below the root's, where that can be
// counted, and in a sixth of all others, which lose what cannot be counted.
func (d drawing) split(s *Scenario) {
	switch {
	case s.Nests() && s.splittable() && d.one(2):
	case d.one(6):
		plain := *s
		plain.Load.Leases, plain.Load.Isles, plain.Load.Acts = 0, 0, 0
		plain.Approval, plain.Network.Authors, plain.Network.Guard, plain.Network.Partitions = Approval{}, nil, "", nil
		plain.Load.Writes = max(plain.Load.Writes, 20+d.IntN(20))
		if plain.Check() != nil {
			return
		}
		*s = plain
	default:
		return
	}
	s.Network.Split = fmt.Sprintf("act,rate=%d,epochs=%d,rest=%d,most=%d", 1+d.IntN(2), 1+d.IntN(2), 1+d.IntN(3), 1+d.IntN(3))
	if !s.Groups() { // in shorter epochs no anchor is absent
		if most := 3 + d.IntN(5); s.Network.EpochBlocks == 0 || s.Network.EpochBlocks > most {
			s.Network.EpochBlocks = most
		}
	}
	if !slices.Contains(s.Load.Under, "/d/") {
		s.Load.Under = append(slices.Clone(s.Load.Under), "/d/", "/d/e/")
		if d.one(2) {
			s.Load.Under = append(s.Load.Under, "/f/", "/g/")
		}
		s.Load.Keys = max(s.Load.Keys, len(s.Load.Under))
	}
	s.Load.Give = max(s.Load.Give, time.Second)
	if d.one(3) {
		return
	}
	s.Network.Fold = fmt.Sprintf("act,quiet=%ds", 1+d.IntN(4))
	moving := *s
	moving.Load.Bursts, moving.Load.Moves = 2+d.IntN(3), true
	moving.Load.Keys = max(moving.Load.Keys, len(moving.Load.Under))
	moving.Stop = max(moving.Stop, time.Duration(moving.Load.Bursts)*d.between(2*Burst, 4*Burst))
	if s.Load.Bursts == 0 && d.one(2) && moving.Check() == nil {
		*s = moving
	}
}
