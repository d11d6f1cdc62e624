package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// signedBy are the flags of writes that an author signs with its own key.
type signedBy struct {
	app                 *app
	key, passphraseFile *string
}

// asFlags adds the flags of writes that an author signs.
func (a *app) asFlags(c *cobra.Command) *signedBy {
	return &signedBy{a, c.Flags().String("as", "", "sign with the key of this file, of \"aweigh voter new\", and not with the node's; the policy lists\nwhich keys may change what, see \"aweigh auth\""),
		c.Flags().String("passphrase-file", "", "file with the passphrase of --as (default: ask)")}
}

func (by *signedBy) given() bool { return *by.key != "" }

// txn executes a transaction that the key signs. All its keys belong to the scope of the first.
func (by *signedBy) txn(ctx context.Context, s *session, t scope.Txn, once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	key, _, err := by.app.openKey(ctx, *by.key, *by.passphraseFile)
	if err != nil {
		return nil, err
	}
	in, x, err := s.whereDecided(ctx, t.Success[0].Key)
	if err != nil {
		return nil, err
	}
	if len(x.Id) != len(aweigh.ScopeID{}) {
		return nil, fmt.Errorf("%w: the node returned no identity of %s", errAbsent, show.ScopeName(x))
	}
	_, p, err := in.policy(ctx)
	if err != nil {
		return nil, err
	}
	return s.Client.TxnAs(ctx, key, aweigh.ScopeID(x.Id), p.Limits, t, once)
}

// remove deletes keys, as Client.Delete.
func (by *signedBy) remove(ctx context.Context, s *session, req *aweighv1.DeleteRequest) (*aweighv1.DeleteResponse, error) {
	r, err := by.txn(ctx, s, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: req.Key, End: req.RangeEnd, Prev: req.PrevKv}}}, req.Once)
	if err != nil {
		return nil, err
	}
	out := &aweighv1.DeleteResponse{Header: r.Header, Repeated: r.Repeated}
	if len(r.Responses) > 0 {
		gone := r.Responses[0].GetDelete()
		out.Deleted, out.PrevKvs = gone.GetDeleted(), gone.GetPrevKvs()
	}
	return out, nil
}
