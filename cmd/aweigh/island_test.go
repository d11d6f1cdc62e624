package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
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

// TestProvisionalTakesNoPatientNonce: the nonce of a write that waits for approval alone is refused beside
// --provisional, and so is no other.
func TestProvisionalTakesNoPatientNonce(t *testing.T) {
	for nonce, bad := range map[string]bool{"": false, "aa@1": false, "aa@1@pending": true} {
		for _, provisional := range []bool{false, true} {
			once := func() (*aweighv1.Once, error) {
				if nonce == "" {
					return new(aweighv1.Once), nil
				}
				return parseNonce(nonce)
			}
			if _, err := unlessProvisional(&provisional, once)(); errors.Is(err, errUsage) != (bad && provisional) {
				t.Errorf("%q, provisional %t: %v", nonce, provisional, err)
			}
		}
	}
}

// TestWritesThatTakeNoApprovalAreExplained: the error of a write with --pending that takes none says what to leave out.
func TestWritesThatTakeNoApprovalAreExplained(t *testing.T) {
	c := &cobra.Command{Use: "put"}
	patientFlags(c)
	if text := about(c, scope.ErrPatient.Error(), nil); !strings.HasSuffix(text, "without --pending and --nonce") {
		t.Error(text)
	}
	if text := about(&cobra.Command{}, scope.ErrPatient.Error(), nil); strings.Contains(text, "--") {
		t.Errorf("another command: %s", text)
	}
}
