package main

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/node"
)

// TestProvisionalIsNamedWhereItCanBeAdded: the error of a write that an island can decide on names --provisional if the
// command has the flag, and was given none that excludes it. A provisional read is offered no serializable one.
func TestProvisionalIsNamedWhereItCanBeAdded(t *testing.T) {
	command := func(given ...string) *cobra.Command {
		c := &cobra.Command{Use: "put"}
		c.Flags().String("as", "", "")
		c.Flags().Bool("serializable", false, "")
		provisionalFlag(c, "", "as", "serializable")
		if err := c.ParseFlags(given); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, given := range [][]string{nil, {"--as", "k"}, {"--provisional"}} {
		want := len(given) == 0
		text := about(command(given...), "not committed yet; island 01020304 "+node.Provisionally, nil)
		if got := strings.HasSuffix(text, " (--provisional)"); got != want {
			t.Errorf("with %v: %s", given, text)
		}
	}
	if text := about(command("--provisional"), "unread"+staleHint, context.DeadlineExceeded); text != "unread" {
		t.Errorf("a provisional read: %s", text)
	}
	if text := about(&cobra.Command{}, "island 01020304 "+node.Provisionally, nil); strings.Contains(text, "--") {
		t.Errorf("another command: %s", text)
	}
}
