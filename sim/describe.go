package sim

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// describe is a frame in a few words.
func describe(f *frame) string {
	switch c := f.open().(type) {
	case votes.Ballot:
		return c.Subject.String()
	case machine.Proposal:
		return fmt.Sprintf("propose view %d height %d %s (%d bundles)", c.Header.View, c.Header.Height, c.Header.Hash().Short(), len(c.Bundles))
	case machine.Offer:
		return fmt.Sprintf("offer view %d final %d height %d (%d votes, %d certificates)", c.View, c.Final, c.Height, len(c.Votes), len(c.Certificates))
	case machine.Want:
		return fmt.Sprintf("want %d blocks, %d bundles", len(c.Blocks), len(c.Bundles))
	case machine.CatchUp:
		return fmt.Sprintf("catch up from height %d", c.From)
	case machine.Blocks:
		return fmt.Sprintf("%d blocks of %d", len(c.Blocks), c.Height)
	case machine.Answer:
		return fmt.Sprintf("answer height %d", c.Header.Height)
	case machine.Announce:
		return fmt.Sprintf("announce height %d %s", c.Header.Height, c.Header.Hash().Short())
	case machine.Cast:
		return fmt.Sprintf("%d ballots on motions", len(c.Ballots))
	case machine.ReconcileMsg:
		return fmt.Sprintf("a meeting's message of %d bytes, part %d", len(c.Message), c.Part)
	case nil:
		return fmt.Sprintf("%d bytes of no meaning", len(f.raw))
	}
	return fmt.Sprintf("%s, %d bytes", machine.FrameKind(f.raw), len(f.raw))
}

// reasons are the kinds of refusals, the most telling first.
var reasons = []struct {
	err  error
	name string
}{
	{votes.ErrForged, "forged signature"}, {votes.ErrTooLight, "certificate without the weight"},
	{votes.ErrNotInRoster, "signed by a key that may not vote"}, {votes.ErrForeign, "of another network"}, {votes.ErrOtherScope, "of another scope"},
	{votes.ErrStale, "of another epoch or roster"}, {votes.ErrAhead, "of a later epoch"}, {votes.ErrMalformed, "malformed ballot or certificate"},
	{scope.ErrInvalid, "invalid content"}, {machine.ErrFrame, "no honest frame"},
	{canon.ErrNotCanonical, "malformed frame"},
}

func reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return refusal.Of(err).String()
}
