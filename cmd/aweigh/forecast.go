package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// dryFlag adds the wish to see what a command would change, without the change. The flags named do not go with it.
func dryFlag(c *cobra.Command, without ...string) *bool {
	dry := c.Flags().Bool("dry-run", false, "change nothing: print what would change, and which approval it takes; the exit code is 0 if it would apply\n"+
		"or open a motion, and 4 if it would fail")
	for _, f := range without {
		c.MarkFlagsMutuallyExclusive("dry-run", f)
	}
	return dry
}

// foresee prints what would become of a change, of these fields of a policy if it is one, and returns an error if it
// would fail.
func (a *app) foresee(ctx context.Context, s *session, req *aweighv1.ForecastRequest, as *signedBy, fields ...policytext.Change) error {
	if as != nil && as.given() {
		id := as.opened.key.Public().ID()
		req.Author = id[:]
	}
	r, err := s.Client.Forecast(ctx, req)
	if err != nil {
		return err
	}
	if err := s.Printer.Forecast(r, fields); err != nil {
		return err
	}
	if r.Outcome != scope.Applied.String() && r.Outcome != scope.Pending.String() {
		return fmt.Errorf("%w: it would not apply: %s", client.ErrFailed, r.Reason)
	}
	if t := req.GetTxn(); t != nil && !r.Succeeded && len(t.Failure) == 0 {
		return fmt.Errorf("%w: its conditions do not hold as of block %d", client.ErrCondition, r.Header.GetHeight())
	}
	return nil
}

// foreseePut is foresee for a put, of a key that was last changed in a revision if that is a condition.
func (a *app) foreseePut(ctx context.Context, s *session, req *aweighv1.PutRequest, conditional bool, rev int64, as *signedBy) error {
	if !conditional {
		return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Put{Put: req}}, as)
	}
	txn := &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{{
			Target: aweighv1.Compare_TARGET_MOD, Relation: aweighv1.Compare_RELATION_EQUAL, Key: req.Key, Number: rev,
		}},
		Success: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: req}}},
	}
	return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Txn{Txn: txn}}, as)
}

// foreseeDecision is foresee for a decision of the anchor that answers.
func (a *app) foreseeDecision(ctx context.Context, s *session, d scope.Decision, fields ...policytext.Change) error {
	return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Decision{Decision: canon.Encode(d)}}, nil, fields...)
}
