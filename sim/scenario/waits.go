package scenario

import (
	"fmt"
	"slices"
	"time"
)

// Wait is an approval that changes take in a world with actors.
type Wait struct {
	Prefix string        `yaml:"prefix,omitempty"`  // of the keys; RuledPrefix
	Verbs  []string      `yaml:"verbs,omitempty"`   // actions by these alone; every change
	Share  Share         `yaml:"share,omitempty"`   // of the whole weight that must approve; 1/2
	StepUp bool          `yaml:"step_up,omitempty"` // a second person decides, and anchors do not vote: no share
	Window time.Duration `yaml:"window,omitempty"`  // how long a motion stays open; 1h
}

func (w *Wait) defaults() {
	or(&w.Prefix, RuledPrefix)
	or(&w.Window, time.Hour)
	if !w.StepUp {
		or(&w.Share, Whole/2)
	}
}

// waits checks the approvals of what actors change. Whether the rules have the verbs is checked with the policy.
func (c *checker) waits(s Scenario) {
	c.need(len(s.Network.Waits) == 0 || s.Load.Acts > 0, "network.waits", "no actor asks for anything: say load.acts")
	for i, w := range s.Network.Waits {
		path := fmt.Sprintf("network.waits[%d]", i)
		c.text(path+".prefix", w.Prefix, maxPrefix)
		c.share(path+".share", w.Share)
		c.need(!w.StepUp || w.Share == 0, path+".step_up", "a second person decides, whatever share says")
		c.need(time.Second <= w.Window && w.Window <= time.Hour, path+".window", "%v is not within 1s and 1h", w.Window)
	}
}

// waits lets actions by a verb that writes wait for approval, in a third of the worlds with actors, and now and then
// all changes of keys of actors for another one. Half of the liars attack the motions.
func (d drawing) waits(s *Scenario) {
	if s.Load.Acts == 0 || !d.one(3) {
		return
	}
	s.Load.Acts += 20 + d.IntN(20)
	if len(s.Network.When) > 1 && d.one(2) { // or the rule denies most
		s.Network.When = slices.Clone(s.Network.When)
		s.Network.When[1] = "object.version < 6"
	}
	prefixes := []string{RuledPrefix, OwnPrefix, RuledPrefix, "/"}
	w := Wait{Prefix: prefixes[d.IntN(4)], Verbs: []string{"extend"}, StepUp: d.one(3), Window: d.between(time.Second, 8*time.Second)}
	if !w.StepUp {
		w.Share = Share(300_000 + 50_000*d.IntN(9))
	}
	s.Network.Waits = []Wait{w}
	if d.one(4) {
		all := Wait{Prefix: prefixes[d.IntN(2)], Share: Share(300_000 + 50_000*d.IntN(9)), Window: d.between(time.Second, 8*time.Second)}
		s.Network.Waits = slices.Insert(s.Network.Waits, d.IntN(2), all)
	}
	for i := range s.Roles {
		r := &s.Roles[i]
		if attack := ballotAttacks[d.IntN(len(ballotAttacks))]; d.one(2) && !slices.Contains(r.Attacks, attack) {
			r.Attacks = append(slices.Clone(r.Attacks), attack)
		}
	}
}
