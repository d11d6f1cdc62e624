package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/txntext"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) txn() *cobra.Command {
	c := &cobra.Command{
		Use: "txn [FILE]", Short: "Compare and change several keys, all or none", Args: cobra.MaximumNArgs(1),
		Long: "Reads a transaction from FILE, or from standard input, and waits until it is final.\n\n" + txntext.Help +
			"\nThe exit code is 4 if the conditions did not hold and there is no \"else\".",
		Example: "  aweigh txn <<END\n  if\n    version /leader = 0\n  then\n    put /leader me\n  else\n    get /leader\n  END",
	}
	as := a.asFlags(c)
	once := patientFlags(c)
	wait := waitFlag(c)
	provisional := provisionalFlag(c, strings.Replace(decidesProvisionally, "KEY", "its keys", 1), "as", "pending", "wait")
	once = unlessProvisional(provisional, once)
	dry := dryFlag(c, "provisional", "nonce", "token", "wait")
	return a.asking(c, func(ctx context.Context, s *session, args []string) error {
		in := a.in
		if len(args) > 0 && args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			in = f
		}
		req, err := txntext.Parse(in)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if len(req.Compare)+len(req.Success)+len(req.Failure) == 0 {
			return fmt.Errorf("%w: the transaction is empty", errUsage)
		}
		if req.Once, err = once(); err != nil {
			return err
		}
		req.Provisional = *provisional
		if err := as.unlock(ctx); err != nil {
			return err
		}
		ctx, cancel := s.limited(ctx)
		defer cancel()
		if *dry {
			return a.foresee(ctx, s, &aweighv1.ForecastRequest{Change: &aweighv1.ForecastRequest_Txn{Txn: req}}, as)
		}
		var resp *aweighv1.TxnResponse
		if as.given() {
			var t scope.Txn
			if t, err = api.TxnOf(req); err == nil {
				resp, err = as.txn(ctx, s, t, req.Once)
			}
		} else {
			resp, err = s.Client.Txn(ctx, req)
		}
		if err != nil {
			return a.pended(ctx, s, duplicate(req, err), wait())
		}
		otherwise := len(req.Failure) > 0
		if err := s.Printer.Txn(resp, otherwise); err != nil {
			return err
		}
		if !resp.Succeeded && !otherwise {
			return fmt.Errorf("%w: the conditions of \"if\" did not hold in block %d, and there is no \"else\"", client.ErrCondition, resp.Header.GetHeight())
		}
		return a.provisional(resp.Header, s.Format)
	})
}
