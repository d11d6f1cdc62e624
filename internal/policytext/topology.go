package policytext

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// TopologyHelp states how a topology is written.
const TopologyHelp = `with advise, which is the default, "aweigh scope topology" tells which busy prefix should be a scope of
its own; with act it becomes one by itself; with off nothing is counted. After commas may follow rate=1000,
the changes a second from which on a prefix is busy; epochs=3, for how many in a row; rest=8, the epochs
between two splits; and most=16, the scopes that it has split off by itself, at a time. What is left out has
the value given here, whatever it was before`

// FoldHelp states how it is written what becomes of scopes that split off by themselves.
const FoldHelp = `with advise, which is the default, "aweigh scope topology" tells whether the scope could go back to
the one above; with act it asks for that by itself once it is quiet, and goes if the scope above acts as well
and split it off by itself; with off it never does. After a comma may follow quiet=1h: for how long it must
have less than half of the rate from which on a prefix is busy; an hour if it is left out`

// ParseFold reads what FoldHelp states into a topology. Errors wrap ErrSyntax.
func ParseFold(t scope.Topology, text string) (scope.Topology, error) {
	word, rest, more := strings.Cut(text, ",")
	var err error
	if t.Fold, err = scope.ParseConduct(strings.TrimSpace(word)); err != nil {
		return t, fmt.Errorf("%w: fold: %q is none of off, advise and act", ErrSyntax, word)
	}
	t.Quiet = scope.DefaultTopology().Quiet
	if !more {
		return t, nil
	}
	key, value, _ := strings.Cut(strings.TrimSpace(rest), "=")
	if key != "quiet" {
		return t, fmt.Errorf("%w: fold: %q: give at most a length of time, like act,quiet=1h", ErrSyntax, rest)
	}
	if t.Quiet, err = time.ParseDuration(value); err != nil {
		return t, fmt.Errorf("%w: fold: %q is not a length of time up to 8760h; give it like act,quiet=1h", ErrSyntax, value)
	}
	return t, nil
}

// ParseTopology reads what TopologyHelp states into a topology. Errors wrap ErrSyntax.
func ParseTopology(was scope.Topology, text string) (t scope.Topology, err error) {
	words := strings.Split(text, ",")
	t = scope.DefaultTopology()
	t.Fold, t.Quiet = was.Fold, was.Quiet
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
