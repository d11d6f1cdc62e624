package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim/scenario"
)

// changes are what flags change in a scenario.
type changes struct {
	c    *cobra.Command
	sets []string
}

// setFlag adds the flag --set.
func setFlag(c *cobra.Command, what string) *changes {
	ch := changes{c: c}
	c.Flags().StringArrayVar(&ch.sets, "set", nil, "PATH=VALUE: change "+what+"; may be given again")
	return &ch
}

// short are the flags that change one path.
var short = []struct{ flag, path string }{{"seed", "seed"}, {"nodes", "network.anchors"}}

// each calls do with each change, as it was given.
func (ch *changes) each(do func(flag, text, path, value string) error) error {
	for _, s := range short {
		if f := ch.c.Flags().Lookup(s.flag); f != nil && f.Changed {
			if err := do("--"+s.flag, f.Value.String(), s.path, f.Value.String()); err != nil {
				return err
			}
		}
	}
	for _, set := range ch.sets {
		path, value, ok := strings.Cut(set, "=")
		if !ok {
			return fmt.Errorf("%w: --set wants PATH=VALUE, such as faults.loss=5%%, not %q", errUsage, set)
		}
		if err := do("--set", set, path, value); err != nil {
			return err
		}
	}
	return nil
}

// apply is the scenario that an argument stands for, with the changes.
func (ch *changes) apply(s scenario.Scenario, arg string) (scenario.Scenario, error) {
	err := ch.each(func(flag, text, path, value string) (err error) {
		s, err = s.Set(path, value)
		return refused(flag+" "+text, err)
	})
	if err == nil {
		err = refused(arg, s.Check())
	}
	return s, err
}

// scenario is the scenario that an argument names, with the changes.
func (ch *changes) scenario(arg string) (scenario.Scenario, error) {
	s, err := readScenario(arg)
	if err != nil {
		return s, err
	}
	return ch.apply(s, arg)
}

// command is a command with the flags for the changes.
func (ch *changes) command(words ...string) string {
	_ = ch.each(func(flag, text, _, _ string) error {
		words = append(words, flag, text)
		return nil
	})
	return shell(words...)
}

// shell is a command for a shell.
func shell(words ...string) string {
	for i, w := range words {
		words[i] = show.Word(w)
	}
	return "aweigh sim " + strings.Join(words, " ")
}
