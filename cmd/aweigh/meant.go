package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/nearest"
	"github.com/aweigh/aweigh/internal/show"
)

// sameFlags are flags that are taken for each other, by what people call them elsewhere.
var sameFlags = [][]string{
	{"anchors", "nodes", "size", "members", "replicas"},
	{"api", "addr", "endpoint", "endpoints", "server"},
	{"insecure", "api-open"}, {"api-listen", "addr", "http"}, {"etcd-listen", "etcd"}, {"data-dir", "dir", "data", "home"},
	{"because", "message", "reason"}, {"output", "format"}, {"timeout", "command-timeout"},
	{"if-rev", "revision", "mod-revision"}, {"rev", "revision"}, {"serializable", "consistency", "local"},
}

// flagMeant returns the flag of a command that an unknown one may stand for, and the kind of value of a flag whose
// value cannot be read.
func flagMeant(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		f := value.GetFlag()
		if n, parseErr := strconv.ParseInt(value.GetValue(), 10, 64); parseErr == nil && f.Value.Type() == "uint64" && bounds[f.Name].least > n {
			return fmt.Errorf("--%s is a number from %d on, not %d", f.Name, bounds[f.Name].least, n)
		}
		if plain := config.CheckText(value.GetFlag(), value.GetValue()); plain != nil {
			return fmt.Errorf("--%w", plain)
		}
		return err
	}
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	known := func(f string) bool {
		x := c.Flags().Lookup(f)
		return x != nil && !x.Hidden
	}
	for _, same := range sameFlags {
		if !slices.Contains(same, name) {
			continue
		}
		if i := slices.IndexFunc(same, known); i >= 0 {
			return fmt.Errorf("%w; did you mean --%s?", err, same[i])
		}
	}
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f.Name)
		}
	})
	if near, _ := nearest.Name(name, flags, min(2, len(name)-1)); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// argumentCount matches cobra's errors about the number of arguments.
var argumentCount = regexp.MustCompile(`^(?:accepts|requires) (at (?:least|most) |between \d+ and )?(\d+) arg\(s\), (?:only )?received (\d+)$`)

// excluding matches what cobra says of flags that exclude each other.
var excluding = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// needed matches what cobra says where one of several flags must be given.
var needed = regexp.MustCompile(`^at least one of the flags in the group \[(.*)\] is required$`)

// argumentsMeant reports how many arguments a command takes.
func argumentsMeant(c *cobra.Command, text string) string {
	command := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	if name, ok := strings.CutPrefix(text, "unknown command "); ok && !c.HasSubCommands() {
		if word, _, ok := strings.Cut(name, " for "); ok {
			return fmt.Sprintf("%s takes no argument, and %s is one", command, word)
		}
	}
	if name, ok := strings.CutPrefix(text, `unknown command "`); ok && !c.HasParent() && !strings.Contains(text, "\n") {
		word, _, _ := strings.Cut(name, `"`)
		if near, _ := nearest.Name(word, []string{"help"}, 2); near != "" { // which cobra never suggests
			return text + "\n\nDid you mean this?\n  help"
		}
	}
	if name, ok := strings.CutPrefix(text, `unknown command "`); ok {
		word, _, _ := strings.Cut(name, `"`)
		text = beginningFirst(text, word)
	}
	if at := excluding.FindStringSubmatch(text); at != nil {
		return "--" + strings.ReplaceAll(at[1], " ", " and --") + " exclude each other"
	}
	if at := needed.FindStringSubmatch(text); at != nil {
		return command + " needs --" + strings.ReplaceAll(at[1], " ", " or --")
	}
	at := argumentCount.FindStringSubmatch(text)
	if at == nil {
		return text
	}
	most, _ := strconv.Atoi(at[2])
	return fmt.Sprintf("%s takes %s%s, and %s given", command, at[1], show.Count(most, "argument"), given(at[3]))
}

func given(n string) string {
	switch n {
	case "0":
		return "none is"
	case "1":
		return "1 is"
	}
	return n + " are"
}

// beginningFirst puts cobra's suggestions that begin with a word before those that are only like it.
func beginningFirst(text, word string) string {
	head, list, ok := strings.Cut(text, "Did you mean this?\n")
	if !ok {
		return text
	}
	lines := strings.Split(strings.TrimRight(list, "\n"), "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		at := func(s string) int {
			if strings.HasPrefix(strings.TrimSpace(s), word) {
				return 0
			}
			return 1
		}
		return at(a) - at(b)
	})
	return head + "Did you mean this?\n" + strings.Join(lines, "\n")
}
