package scenario

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/action"
)

// RuledPrefix begins the keys that actors quarrel about, and OwnPrefix those of them
// that only anchors may write.
const (
	RuledPrefix = "/act/"
	OwnPrefix   = RuledPrefix + "own/"
)

// rules are the verbs of the policy of a world with actors.
var rules = action.Table{
	{Verb: "age", Class: action.Claim, When: "1 / (object.version - 2) < 2"}, // cannot be worked out for version 2
	{Verb: "extend", Class: action.Write, When: "object.version < 3 && caller.anchor != 'n0'"},
	{Verb: "take", Class: action.Claim, When: "caller.weight > 0 && caller.weight % 2 == 0"},
	{Verb: "write", Class: action.Write, When: fmt.Sprintf("!object.key.startsWith(%q) || caller.anchor != ''", OwnPrefix)},
}

// Rules is the rules of a world: those that the scenario gives predicates for have them in the place of their own, but
// only keys of actors and programs are under that of writes.
func (s *Scenario) Rules() action.Table {
	t := slices.Clone(rules)
	for i, when := range s.Network.When {
		if t[i].When = when; t[i].Verb == "write" && when != "" {
			t[i].When = fmt.Sprintf("!(object.key.startsWith(%q) || object.key.startsWith('/x')) || (%s)", RuledPrefix, when)
		}
	}
	return t
}
