package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// signedReserve is what a signed write may cost at first beyond what its form allows, in units: for aliases of the
// object, and values that a compare or a deletion meets. What exceeds it is signed again with reserveGrowth times as
// much.
const (
	signedReserve = 10_000
	reserveGrowth = 8
)

// Author writes to one scope with a key of its own: the node that takes a write carries it, and vouches for nothing.
//
// A missing or incomplete Once is filled in; a write by grants is valid no longer than they are. Errors are those of
// Client.Txn, and wrap ErrDenied if the grants have ended. A repeated write answers from the record,
// without responses.
type Author struct {
	Client *Client
	Key    votes.Signer   // makes one signature for each try of a write; its errors are returned as they are
	Grants [][]byte       // by which the key acts (scope.Grant); none: by rights of its own
	Caller string         // for whom it acts; see scope.Mutation.Caller
	Scope  aweigh.ScopeID // that decides about all keys that are written
	Limits scope.Limits   // of the scope's policy
}

// Chain is the grants by which the key acts.
func (a *Author) Chain() ([]scope.Grant, error) {
	return scope.OpenGrants(a.Grants, a.Scope, a.Key.Public().ID(), votes.Verify)
}

// Txn executes a transaction.
func (a *Author) Txn(ctx context.Context, t scope.Txn, once *aweighv1.Once) (*aweighv1.TxnResponse, error) {
	h, o, err := a.submit(ctx, scope.Write, canon.Encode(t), &once)
	if err != nil {
		return nil, err
	}
	ops := t.Failure
	if o.GetTxn().GetSucceeded() {
		ops = t.Success
	}
	return outcome(h, o, len(ops))
}

// Withdraw ends an open motion that the author proposed.
func (a *Author) Withdraw(ctx context.Context, motion votes.MotionID, once *aweighv1.Once) error {
	h, o, err := a.submit(ctx, scope.Withdraw, canon.Encode(scope.Withdrawal{Motion: motion}), &once)
	if err == nil {
		_, err = outcome(h, o, 0)
	}
	return err
}

// Name changes which keys name an object, as Client.Name.
func (a *Author) Name(ctx context.Context, n scope.Naming, once *aweighv1.Once) (*aweighv1.NameResponse, error) {
	h, o, err := a.submit(ctx, scope.Name, canon.Encode(n), &once)
	if err != nil {
		return nil, err
	}
	t, err := outcome(h, o, 1)
	if err != nil {
		return nil, err
	}
	return &aweighv1.NameResponse{Header: t.Header, Uid: written(t), Repeated: t.Repeated}, nil
}

// Act carries out a verb of class write or claim, as Client.Act. No scope above that of the key is asked.
func (a *Author) Act(ctx context.Context, x scope.Action, once *aweighv1.Once) (*aweighv1.ActResponse, error) {
	h, o, err := a.submit(ctx, scope.Act, canon.Encode(x), &once)
	if err != nil {
		return nil, err
	}
	responses := 0
	if x.Class == action.Write {
		responses = 1
	}
	t, err := outcome(h, o, responses)
	if err != nil {
		return nil, err
	}
	return &aweighv1.ActResponse{Header: t.Header, Class: x.Class.String(), Uid: written(t), Repeated: t.Repeated}, nil
}

// written is the object that the first operation of a transaction wrote.
func written(t *aweighv1.TxnResponse) string {
	if len(t.Responses) == 0 {
		return ""
	}
	return t.Responses[0].GetPut().GetUid()
}

// submit signs a mutation, and waits for its outcome.
func (a *Author) submit(ctx context.Context, class scope.Class, content []byte, once **aweighv1.Once) (
	*aweighv1.Header, *aweighv1.Outcome, error) {
	fill(once)
	m := scope.Mutation{
		Scope: a.Scope, Class: class, Content: content, Justification: (*once).Justification, Caller: a.Caller,
		Nonce: (*once).Nonce, ValidUntil: aweigh.Instant((*once).ValidUntilNs), Grants: a.Grants,
		Patient: (*once).Patient,
	}
	grants, err := a.Chain()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for i := range grants { // which no mutation outlives
		m.ValidUntil = min(m.ValidUntil, grants[i].NotAfter)
	}
	if m.ValidUntil <= aweigh.InstantOf(time.Now()) && m.ValidUntil < aweigh.Instant((*once).ValidUntilNs) {
		return nil, nil, fmt.Errorf("%w: the grant of the author ended at %s", ErrDenied,
			m.ValidUntil.Time().UTC().Format(time.RFC3339))
	}
	least, err := scope.FormCost(a.Key.Public(), a.Limits, m)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	most := a.Limits.BlockCost - least
	for reserve := min(signedReserve, most); ; reserve = min(reserveGrowth*reserve, most) {
		b, err := scope.SignBy(a.Key, reserve, a.Limits, m)
		if errors.Is(err, scope.ErrInvalid) {
			err = fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if err != nil {
			return nil, nil, err
		}
		req := &aweighv1.SubmitRequest{Bundle: b.Raw()}
		r, err := write(ctx, a.Client, aweighv1connect.NodeClient.Submit, req, *once, false)
		if err != nil {
			return nil, nil, err
		}
		if len(r.Outcomes) != 1 {
			return nil, nil, fmt.Errorf("client: the node returned %d outcomes of one write", len(r.Outcomes))
		}
		if r.Outcomes[0].Code != scope.Exceeded.String() || reserve == most {
			return r.Header, r.Outcomes[0], nil
		}
	}
}

// outcome is what became of a write of so many operations, as Txn returns it.
func outcome(h *aweighv1.Header, o *aweighv1.Outcome, operations int) (*aweighv1.TxnResponse, error) {
	kind := ErrFailed
	switch o.Code {
	case scope.Applied.String(), scope.Duplicate.String():
		if o.Reason == "" {
			txn := o.Txn
			if txn == nil {
				txn = &aweighv1.TxnResponse{}
			}
			// The record has no responses. It answers what was sent again, whatever bundle carried it.
			txn.Header, txn.Repeated = h, o.Code == scope.Duplicate.String() || len(txn.Responses) < operations
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
