package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// submitForeign hands in a peer's bundle, as the peer's and not as one of this node's clients, and returns its
// outcome.
func (n *Replica) submitForeign(ctx context.Context, p machine.Peer, raw []byte, a *referral.Answer) ([]byte, error) {
	frame := machine.RawFrame(machine.TagBundle, raw)
	if err := n.chargeFrame(p, frame); err != nil {
		return nil, err
	}
	msg, err := n.budgets.Check(n.epochs.checker(), p, frame, false)
	in, _ := msg.(machine.BundleIn)
	b := in.Bundle
	if err == nil && isSignal(b) {
		err = scope.ErrSignal
	}
	if err == nil && b.Scope() != n.id {
		err = machine.ErrOtherScope
	}
	switch {
	case errors.Is(err, scope.ErrDenied): // by this node's epoch
		a.Failure = scope.Reason(err)
		return nil, nil
	case refusal.Of(err) == refusal.Full:
		return nil, machine.ErrBusy
	case err != nil:
		a.Failure = err.Error() // all anchors give the same text: it will never be accepted
		return nil, nil
	}
	if err := n.hides(p, b); err != nil {
		return nil, err
	}
	if b.Looks() > int64(n.budgets.Burst(p)) {
		return nil, machine.ErrBusy
	} else if !n.payForPrice(p, b) {
		if n.stopped() {
			return nil, ErrStopped
		}
		return nil, machine.ErrBusy
	}
	receipts, err := n.submit(ctx, machine.Submit{Bundle: b, From: p})
	if errors.As(err, new(*machine.ExpiredError)) {
		a.Failure = err.Error() // likewise
		h := n.LastHead()
		a.Said(&h)
		return nil, nil
	}
	if errors.Is(err, scope.ErrDenied) || errors.Is(err, scope.ErrElsewhere) { // nothing was ordered
		a.Failure = scope.Reason(err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range receipts {
		a.Height, a.Revision = receipts[i].Height, max(a.Revision, receipts[i].Revision)
	}
	if v, err := n.views.open(); err == nil { // when that was
		a.Time = v.Head().Time
		if err := n.views.release(v); err != nil {
			return nil, err
		}
	}
	return referral.EncodeReceipts(receipts), nil
}
