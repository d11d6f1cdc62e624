package scenario

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// GroupOf reads a group in the words of "aweigh policy set --group", for the scenario's mode; the zero value is that of
// no words.
func (s *Scenario) GroupOf(text string) (g trust.Group, err error) {
	if text == "" {
		return g, nil
	}
	m, err := quorum.ParseMode(s.Network.Mode)
	if err != nil {
		return g, err
	}
	if g, err = policytext.ParseGroup(text, m); err != nil {
		return g, err
	}
	p := scope.OpenPolicy(m)
	p.Trust.Group = g
	return g, p.Check()
}

func (c *checker) group(path string, s *Scenario, text string) {
	if _, err := s.GroupOf(text); err != nil {
		c.refuse(path, "%v", err)
	}
}

// Groups reports whether anchors can be on standby.
func (s *Scenario) Groups() bool {
	return s.Network.Group != "" || slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Group != "" })
}

// group lets one world in five have anchors on standby, and short epochs. In half of these an anchor dies for long, in
// a third the group changes.
func (d drawing) group(s *Scenario) {
	n := &s.Network
	const least = 4 // as all modes allow
	if !d.one(5) || n.Anchors <= least || s.Load.Bursts > 0 {
		return
	}
	if n.EpochBlocks < 8 || n.EpochBlocks > 16 {
		n.EpochBlocks = 8 + d.IntN(6)
	}
	s.Govern = slices.Clone(s.Govern)
	for i := range s.Govern {
		if m := &s.Govern[i]; m.EpochBlocks > 0 {
			m.EpochBlocks = max(m.EpochBlocks, 8) // in shorter epochs no anchor is absent
		}
	}
	n.Group = d.someGroup(least, n.Anchors)
	if d.one(2) {
		at := d.between(0, s.Stop/2)
		s.Faults.Timed = append(slices.Clone(s.Faults.Timed), Fault{Kind: "crash", At: at, For: s.Stop - at, Nodes: []int{d.IntN(n.Anchors)}, Keep: "all"})
	}
	if d.one(3) {
		to := "off"
		if !d.one(3) {
			to = d.someGroup(least, n.Anchors)
		}
		s.Govern = append(s.Govern, Motion{Kind: "policy", At: d.between(0, s.Stop/2), Group: to})
	}
}

// someGroup is a group of some of the anchors.
func (d drawing) someGroup(least, anchors int) string {
	least += d.IntN(anchors - least)
	text := fmt.Sprintf("%d..%d,replace=%d", least, least+d.IntN(3), 1+d.IntN(3))
	if d.one(2) {
		text += fmt.Sprintf(",load=%d", 1+d.IntN(12))
	}
	return text
}
