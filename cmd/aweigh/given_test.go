package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/testshort"
)

// TestEmptyFlagsAreRefused: no command takes a text or a list that is empty, but where emptiness means something.
func TestEmptyFlagsAreRefused(t *testing.T) {
	testshort.Skip(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var all [][]string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			path := strings.Fields(c.CommandPath())[1:]
			kind := f.Value.Type()
			if !slices.Contains([]string{"string", "stringSlice", "stringArray"}, kind) || f.NoOptDefVal != "" || f.Hidden ||
				slices.Contains(mayBeEmpty, f.Name) || slices.Contains(mayBeEmpty, c.CommandPath()+" --"+f.Name) {
				return
			}
			all = append(all, append(path, "--"+f.Name, ""))
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
	if len(all) < 100 {
		t.Fatalf("%d flags", len(all))
	}
	for _, args := range all {
		if args[0] == "completion" {
			continue
		}
		flag := args[len(args)-2]
		var err bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &err}
		root := a.root()
		c, _, findErr := root.Find(args)
		if findErr != nil {
			t.Fatal(findErr)
		}
		if parseErr := c.ParseFlags([]string{flag, ""}); parseErr != nil {
			continue // its type takes no empty text
		}
		if got := checkFlags(c); exitCode(got, true) != exitUsage || !strings.Contains(message(got), flag+" is empty") {
			t.Errorf("%q: %v", args, got)
		}
	}
}

// TestEmptyFlagsOfANodeSayHowToTurnOffWhatTheFileSets: and a list says that it has an empty entry.
func TestEmptyFlagsOfANodeSayHowToTurnOffWhatTheFileSets(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"node", "--etcd-listen", ""}, "--etcd-listen is empty: give it a value, or leave it out. What the configuration file sets is turned off in the file"},
		{[]string{"node", "--follow", "/a/,,/b/"}, "--follow has an empty entry: give it a value, or leave it out. What the configuration file sets"},
		{[]string{"put", "--as", "", "/a", "b"}, "--as is empty: give it a value, or leave it out"},
	} {
		var out bytes.Buffer
		code := (&app{in: strings.NewReader(""), out: &out, err: &out}).run(t.Context(), c.args)
		if code != exitUsage || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "file") != strings.Contains(c.want, "file") {
			t.Errorf("%q: exit code %d, %s", c.args, code, out.String())
		}
	}
}
