package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
)

// undecided is the record of a write that is not committed yet and may still commit; nil for other errors. A write
// that is repeated with its nonce, and that a busy node does not take again, may be on its way.
func undecided(c *cobra.Command, err error) *client.Undecided {
	var u *client.Undecided
	if errors.As(err, &u) {
		return u
	}
	f := c.Flags().Lookup("nonce")
	if f == nil || !f.Changed || !errors.Is(err, client.ErrBusy) {
		return nil
	}
	once, bad := parseNonce(f.Value.String())
	if bad != nil {
		return nil
	}
	return &client.Undecided{Once: once, ValidUntil: time.Unix(0, once.ValidUntilNs), Cause: err}
}

// nonceHint reports how to repeat an undecided write.
func nonceHint(u *client.Undecided) string {
	hint := fmt.Sprintf("\nTo repeat it safely: the same command with --api %s --nonce %s", show.Word(u.Node), show.Nonce(u.Once))
	if len(u.Mutation) == 0 && u.Node != "" { // it did not answer, and may not come back
		hint += fmt.Sprintf("\nIf the node at %s stays away: after %s, see at another node what is there, and write anew without --nonce if the change is not.",
			show.Word(u.Node), u.ValidUntil.UTC().Format(time.RFC3339))
	}
	return hint
}

// parseNonce reads what show.Nonce writes.
func parseNonce(text string) (*aweighv1.Once, error) {
	digits, until, _ := strings.Cut(text, "@")
	nonce, err := hex.DecodeString(digits)
	once := &aweighv1.Once{Nonce: nonce}
	until, once.Patient = strings.CutSuffix(until, "@pending")
	if err == nil {
		once.ValidUntilNs, err = strconv.ParseInt(until, 10, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: --nonce is HEX@NANOSECONDS, as an undecided write names it, not %q", errUsage, text)
	}
	return once, nil
}
