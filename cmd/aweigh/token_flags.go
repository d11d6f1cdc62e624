package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// grantFlags are the flags of a grant.
type grantFlags struct {
	prefixes, verbs *[]string
	span            *time.Duration
	to, file        *string
}

func newGrantFlags(c *cobra.Command) *grantFlags {
	f := c.Flags()
	return &grantFlags{
		prefixes: f.StringArray("prefix", nil, "of keys that may change (repeatable; default: all that the signer\n"+
			"may change)"),
		verbs: f.StringSlice("verb", nil, "that may be done: "+strings.Join(scope.AuthorVerbs, ", ")+",\n"+
			"or the verb of an action (repeatable; default: all that the signer may do)"),
		span: f.Duration("for", time.Hour, "how long it permits this"),
		to: f.String("to", "", "the public key that may use it, like ed25519:… (default: a new one, whose\n"+
			"private part the token holds)"),
		file: f.String("file", "", "write the token to this new file, readable by its owner alone (default: to\n"+
			"standard output)"),
	}
}

// grant is a grant with the flags' values.
func (f *grantFlags) grant(name string, now time.Time) (g scope.Grant, err error) {
	if *f.span <= 0 {
		return g, fmt.Errorf("%w: --for is more than 0, not %s", errUsage, *f.span)
	}
	g = scope.Grant{
		Name: name, NotAfter: aweigh.InstantOf(now.Add(*f.span)), Verbs: slices.Compact(slices.Sorted(slices.Values(*f.verbs))),
	}
	for _, text := range *f.prefixes {
		prefix, err := prefixOf(text)
		if err != nil {
			return g, err
		}
		g.Prefixes = append(g.Prefixes, prefix)
	}
	slices.SortFunc(g.Prefixes, bytes.Compare)
	bounds := scope.Author{Name: name, Who: scope.Anyone, Prefixes: g.Prefixes, Verbs: g.Verbs}
	if err := bounds.Check(); err != nil {
		return g, fmt.Errorf("%w: token %q: %w", errUsage, name, err)
	}
	if *f.to != "" {
		if g.To, err = votes.ParsePublicKey(*f.to); err != nil {
			return g, fmt.Errorf("%w: --to: %w", errUsage, err)
		}
	}
	return g, nil
}

// output opens the file of a token, nil for standard output.
func (f *grantFlags) output() (*reserved, error) {
	if *f.file == "" {
		return nil, nil
	}
	return reserveSecret(*f.file)
}

// write writes a token that was made to its file, or to standard output, with warnings about it.
func (f *grantFlags) write(a *app, t *token.Token, to *reserved, format show.Format, warnings []string) error {
	for _, w := range warnings {
		fmt.Fprintf(a.err, "aweigh: warning: %s\n", show.Line(w))
	}
	text, now := t.Encode(), aweigh.InstantOf(time.Now())
	if to != nil {
		if err := to.write([]byte(text + "\n")); err != nil {
			return err
		}
		return show.Printer{Out: a.out, Format: format}.Token(t, "", *f.file, now, warnings...)
	}
	if format == show.JSON {
		return show.Printer{Out: a.out, Format: format}.Token(t, text, "", now, warnings...)
	}
	if err := (show.Printer{Out: a.err, Format: format}).Token(t, "", "", now); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
