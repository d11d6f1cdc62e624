package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/config"
)

// sameFlags are flags that are taken for each other, by what people call them elsewhere.
var sameFlags = [][]string{
	{"anchors", "nodes", "size", "members", "replicas"},
	{"api", "addr", "endpoint", "endpoints", "server"},
	{"api-listen", "addr", "http"}, {"etcd-listen", "etcd"}, {"data-dir", "dir", "data", "home"},
	{"because", "message", "reason"}, {"output", "format"}, {"timeout", "command-timeout"},
	{"if-rev", "revision", "mod-revision"}, {"rev", "revision"}, {"serializable", "consistency", "local"},
}

// flagMeant says which flag of a command an unknown one may stand for, and what one holds whose value cannot be read.
func flagMeant(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
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
	near, least := "", 3 // letters that are wrong, and one more
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); !f.Hidden && d < least && d < len(name) {
			near, least = f.Name, d
		}
	})
	if near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// distance is the one of Levenshtein: the letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
