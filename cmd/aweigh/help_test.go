package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpCallsArgumentsWhatTheyAre: a word of the usage line is explained under that name, and --raw takes it.
func TestHelpCallsArgumentsWhatTheyAre(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	explained := regexp.MustCompile(`(?m)^(KEY|NAME|PREFIX) is (?:a key|the beginning of a key)`)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, m := range explained.FindAllStringSubmatch(c.Long, -1) {
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(c.Use) {
				t.Errorf("%s: the help explains %s, which the usage %q does not have", c.CommandPath(), m[1], c.Use)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			word, ok := strings.CutPrefix(f.Usage, "take ")
			if word, ok2 := strings.CutSuffix(word, " as it is"); f.Name == "raw" && ok && ok2 && !regexp.MustCompile(`\b`+word+`\b`).MatchString(c.Use) {
				t.Errorf("%s: --raw takes %s, which the usage %q does not have", c.CommandPath(), word, c.Use)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
}

// TestErrorsSayThingsOnce: repetitions by layers of an error, and the names of packages, are left out.
func TestErrorsSayThingsOnce(t *testing.T) {
	for text, want := range map[string]string{
		"etcd: listen tcp: in use":                    "listen tcp: in use",
		"client: invalid request: invalid request: x": "invalid request: x",
		"node: scope: certs: no file":                 "no file",
	} {
		if got := forPeople(text); got != want {
			t.Errorf("%q is told as %q, want %q", text, got, want)
		}
	}
}
