package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// signedReserve is what a signed write may cost at first beyond what its form allows, in units: for aliases of the
// object, and values that a compare or a deletion meets. What exceeds it is signed again with reserveGrowth times as much.
const (
	signedReserve = 10_000
	reserveGrowth = 8
)

// TxnAs executes a transaction that is signed with the author's own key: the node that takes it carries it, and vouches
// for nothing. All its keys must belong to the scope. A missing or incomplete Once is filled in. Errors are those of
// Txn. A repeated write answers from the record, with no responses.
func (c *Client) TxnAs(ctx context.Context, key votes.PrivateKey, in aweigh.ScopeID, lim scope.Limits, t scope.Txn,
	once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	fill(&once)
	m := scope.Mutation{
		Scope: in, Class: scope.Write, Content: canon.Encode(t), Justification: once.Justification,
		Nonce: once.Nonce, ValidUntil: aweigh.Instant(once.ValidUntilNs),
	}
	least, err := scope.Sign(key, lim, m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	most := lim.BlockCost - least.Cost()
	for reserve := min(signedReserve, most); ; reserve = min(reserveGrowth*reserve, most) {
		b, err := scope.SignReserving(reserve, key, lim, m)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		req := &aweighv1.SubmitRequest{Bundle: b.Raw()}
		r, err := write(ctx, c, aweighv1connect.NodeClient.Submit, req, once, false)
		if err != nil {
			return nil, err
		}
		if len(r.Outcomes) != 1 {
			return nil, fmt.Errorf("client: the node returned %d outcomes of one write", len(r.Outcomes))
		}
		if r.Outcomes[0].Code != scope.Exceeded.String() || reserve == most {
			return outcome(r.Header, &t, r.Outcomes[0])
		}
	}
}

// outcome is what became of a transaction, as Txn returns it.
func outcome(h *aweighv1.Header, t *scope.Txn, o *aweighv1.Outcome) (*aweighv1.TxnResponse, error) {
	kind := ErrFailed
	switch o.Code {
	case scope.Applied.String(), scope.Duplicate.String():
		if o.Reason == "" {
			txn := o.Txn
			if txn == nil {
				txn = &aweighv1.TxnResponse{}
			}
			ops := t.Failure
			if txn.Succeeded {
				ops = t.Success
			}
			// The record has no responses. It answers what was sent again, whatever bundle carried it.
			txn.Header, txn.Repeated = h, o.Code == scope.Duplicate.String() || len(txn.Responses) < len(ops)
			return txn, nil
		}
	case scope.Pending.String():
		return nil, &Pending{Motion: o.Mutation, Cause: errors.New("client: it waits for approval")}
	case scope.Expired.String():
		kind = ErrExpired
	}
	if denied := strings.TrimPrefix(scope.ErrDenied.Error(), "scope: ") + ": "; strings.HasPrefix(o.Reason, denied) {
		return nil, fmt.Errorf("%w: %s", ErrDenied, strings.TrimPrefix(o.Reason, denied))
	}
	return nil, fmt.Errorf("%w: %s", kind, o.Reason)
}
