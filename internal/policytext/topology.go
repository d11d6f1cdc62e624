package policytext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/scope"
)

// TopologyHelp states how a topology is written.
const TopologyHelp = `with advise, which is the default, "aweigh scope topology" tells which busy prefix should be a scope of
its own; with act it becomes one by itself; with off nothing is counted. After commas may follow rate=1000,
the changes a second from which on a prefix is busy; epochs=3, for how many in a row; rest=8, the epochs
between two splits; and most=16, the splits that the scope makes by itself, in all. What is left out has
the value given here, whatever it was before`

// ParseTopology reads a topology as TopologyHelp has it. Errors wrap ErrSyntax.
func ParseTopology(text string) (t scope.Topology, err error) {
	words := strings.Split(text, ",")
	t = scope.DefaultTopology()
	if t.Split, err = scope.ParseConduct(strings.TrimSpace(words[0])); err != nil {
		return t, fmt.Errorf("%w: split: %q is none of off, advise and act", ErrSyntax, words[0])
	}
	given := make(map[string]bool)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(strings.TrimSpace(w), "=")
		in := map[string]*uint32{"rate": &t.Rate, "epochs": &t.Epochs, "rest": &t.Rest, "most": &t.Most}[key]
		if in == nil {
			return t, fmt.Errorf("%w: split: %q is none of rate=, epochs=, rest= and most=", ErrSyntax, w)
		}
		if given[key] {
			return t, fmt.Errorf("%w: split: %s is there twice", ErrSyntax, key)
		}
		given[key] = true
		n, bad := strconv.ParseUint(value, 10, 32)
		if bad != nil {
			return t, fmt.Errorf("%w: split: %q is not a whole number, or too large; give it like act,rate=1000", ErrSyntax, value)
		}
		*in = uint32(n)
	}
	return t, nil
}
