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
// counted.
func (d drawing) split(s *Scenario) {
	if !s.Nests() || !s.splittable() || !d.one(2) {
		return
	}
	s.Network.Split = fmt.Sprintf("act,rate=1,epochs=%d,rest=%d,most=%d", 1+d.IntN(2), 1+d.IntN(3), 1+d.IntN(3))
	if !s.Groups() { // in shorter epochs no anchor is absent
		s.Network.EpochBlocks = min(s.Network.EpochBlocks, 3+d.IntN(5))
	}
	if !slices.Contains(s.Load.Under, "/d/") {
		s.Load.Under = append(slices.Clone(s.Load.Under), "/d/", "/d/e/")
		s.Load.Keys = max(s.Load.Keys, len(s.Load.Under))
	}
	s.Load.Give = max(s.Load.Give, time.Second)
	if d.one(2) {
		s.Network.Fold = fmt.Sprintf("act,quiet=%ds", 1+d.IntN(4))
	}
}
