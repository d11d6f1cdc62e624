package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

const (
	foreignCost      = 100     // of an answer, in µs of one processor
	foreignCostBytes = 8 << 10 // and in bytes given, besides its own
	foreignKeyCost   = 64      // and for each key looked at
	foreignWait      = 2 * time.Second
	foreignBytes     = 6 << 20 // of keys and values in one answer
	foreignOps       = 128     // of one question
)

// errUnasked answers questions in no known form.
var errUnasked = errors.New("node: no question that is known")

// serveForeign answers for the scope to a peer that does not hold it, from the peer's budget.
func (n *Part) serveForeign(ctx context.Context, p Peer, ask foreignAsk) ([]byte, error) {
	e := n.roll.epoch()
	if key := n.anchor.Load(); key == nil {
		return nil, ErrNoAnchor
	} else if _, seated := e.Roster.Seat(key.Public().ID()); !seated {
		return nil, ErrUnseated
	}
	x := n.budgets.of(p)
	if err := n.turn(ctx, x.given, foreignCostBytes+len(ask.Body)); err != nil {
		return nil, err
	}
	if !n.budgets.anchor(p) {
		if err := n.turn(ctx, n.budgets.shared(p), foreignCost); err != nil {
			return nil, err
		}
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	a := foreignAnswer{Epoch: e.Number}
	looked, err := n.answerForeign(ctx, p, ask, &a)
	if err != nil {
		if a.Failure = scope.FailureIn(err); a.Failure == "" {
			return nil, err
		}
	}
	if len(a.Body) > foreignBytes+foreignBytes/8 {
		return nil, scope.ErrTooMuch
	}
	reserve(x.given, time.Now(), len(a.Body)+looked*foreignKeyCost)
	return canon.Encode(a), nil
}

// turn takes from a budget, and waits for its turn. What would wait for long is refused,
// and costs nothing.
func (n *Part) turn(ctx context.Context, l *rate.Limiter, cost int) error {
	r := l.ReserveN(time.Now(), min(cost, l.Burst()))
	wait := r.Delay()
	if wait > foreignWait {
		r.Cancel()
		return ErrBusy
	}
	if wait > 0 && !n.pauseFor(ctx, wait) {
		return ErrStopped
	}
	return nil
}

// answerForeign answers a question, and says how many keys it took to look at.
func (n *Part) answerForeign(ctx context.Context, p Peer, ask foreignAsk, a *foreignAnswer) (looked int, err error) {
	switch ask.Kind {
	case foreignSubmit:
		a.Body, err = n.submitForeign(ctx, p, ask.Body, a)
		return 0, err
	case foreignProve:
		proof, head, err := n.Prove(ctx, ask.Body)
		if err == nil {
			a.said(&head)
			a.Body = proof.Encode()
		}
		return 0, err
	case foreignRefer:
		a.Body, err = n.referForeign(ctx, ask.Body, a)
		return 0, err
	case foreignJudge:
		a.Body, err = n.judgeForeign(ctx, ask)
		return 0, err
	case foreignLook, foreignResolve, foreignHistory:
	default:
		return 0, errUnasked
	}
	if ask.At > 0 {
		if err := n.of.closed(ctx, n, ask.At); err != nil {
			return 0, err
		}
	}
	v, err := n.Read(ctx, ask.Newest)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head := v.Head()
	a.said(&head)
	switch ask.Kind {
	case foreignLook:
		a.Body, looked, err = n.lookForeign(v, ask)
	case foreignResolve:
		var x foreignName
		if err = canon.Decode(ask.Body, &x); err == nil {
			var r Resolved
			r, err = v.resolved(ctx, x.Key, x.Version)
			if err == nil || r.Moved != nil {
				a.Body = canon.Encode(r)
			}
		}
	case foreignHistory:
		var x foreignPast
		if err = canon.Decode(ask.Body, &x); err == nil {
			a.Body, err = n.historyForeign(ctx, v, x)
		}
	}
	return looked, err
}

// said notes as of when an answer is.
func (a *foreignAnswer) said(h *scope.Head) {
	a.Height, a.Time, a.Revision = h.Height, h.Time, h.Closed()
}

// lookForeign is what a transaction that only reads finds, in a bounded answer.
func (n *Part) lookForeign(v *View, ask foreignAsk) (body []byte, looked int, err error) {
	var t scope.Txn
	if err := canon.Decode(ask.Body, &t); err != nil {
		return nil, 0, err
	}
	if len(t.Compare)+len(t.Success)+len(t.Failure) > foreignOps {
		return nil, 0, scope.ErrTooManyOps
	}
	t.Ranges(func(key, end []byte) bool {
		if !scope.Covers(n.prefix, key, end) {
			err = errUnasked
		}
		return err == nil
	})
	if err == nil {
		err = v.owns(t.Ranges)
	}
	if err != nil {
		return nil, 0, err
	}
	if ask.At > 0 {
		for _, branch := range [][]scope.Op{t.Success, t.Failure} {
			for i := range branch {
				if r := branch[i].Range; r != nil && r.Revision == 0 {
					r.Revision = ask.At
				}
			}
		}
		if len(t.Compare) > 0 { // they are about the newest
			return nil, 0, scope.ErrTooMuch
		}
	}
	got, err := v.look(&t, foreignBytes)
	if err != nil {
		return nil, 0, err
	}
	got.Revision = 0
	for i := range got.Responses {
		r := &got.Responses[i].Range
		r.Revision = 0 // which differs
		looked += int(r.Count)
	}
	return canon.Encode(got), looked, nil
}

// referForeign are the referrals for keys that the scope has delegated.
func (n *Part) referForeign(ctx context.Context, body []byte, a *foreignAnswer) ([]byte, error) {
	var keys foreignKeys
	if err := canon.Decode(body, &keys); err != nil {
		return nil, err
	}
	if len(keys.Ranges) > foreignOps {
		return nil, scope.ErrTooManyOps
	}
	var all []scope.Referral
	err := n.coveredFrom(ctx, false, func(v *View) error {
		all = nil
		var touched []scope.Delegation
		for _, x := range keys.Ranges {
			some, err := v.Touching(x.Key, x.End)
			if err != nil {
				return err
			}
			for _, d := range some {
				if !slices.ContainsFunc(touched, func(x scope.Delegation) bool { return x.Child == d.Child }) && len(touched) < foreignReferrals {
					touched = append(touched, d)
				}
			}
		}
		for _, d := range touched {
			head, err := n.cover(v.Head().Height, d.Height)
			if err != nil {
				return err
			}
			r, err := scope.NewReferral(head, v.State, d.Prefix)
			if err != nil {
				return err
			}
			all = append(all, r)
		}
		h := v.Head()
		a.said(&h)
		return nil
	})
	return canon.Encode(all), err
}

// foreignReferrals bounds the referrals in one answer. A range over more is asked for again.
const foreignReferrals = 64

// submitForeign hands a peer's bundle in, as one of the peer's and not of this node's clients,
// and tells what became of it.
func (n *Part) submitForeign(ctx context.Context, p Peer, raw []byte, a *foreignAnswer) ([]byte, error) {
	if d := n.budgets.wait(p, rawFrame(tagBundle, raw)); d > foreignWait {
		return nil, ErrBusy
	} else if d > 0 && !n.pause(d) {
		return nil, ErrStopped
	}
	b, err := scope.CheckBundle(raw, n.roll.checker().Limits, votes.Verify)
	if err == nil && isSignal(b) {
		err = scope.ErrSignal
	}
	if err == nil && b.Scope() != n.id {
		err = fmt.Errorf("%w: a bundle for another scope", ErrNotTaken)
	}
	if err != nil {
		return nil, err
	}
	receipts, err := n.submit(ctx, Submit{Bundle: b, From: p})
	if err != nil {
		return nil, err
	}
	out := make([]foreignReceipt, len(receipts))
	for i := range receipts {
		r := &receipts[i]
		out[i] = foreignReceipt{
			Mutation: r.Mutation, Code: uint8(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded,
			Height: r.Height, Responses: r.Responses,
		}
		a.Height, a.Revision = r.Height, max(a.Revision, r.Revision)
	}
	if v, err := n.views.open(); err == nil { // when that was
		h := v.Head()
		a.Time = h.Time
		if err := n.views.release(v); err != nil {
			return nil, err
		}
	}
	return canon.Encode(out), nil
}

// foreignReceipt is a Receipt.
type foreignReceipt struct {
	_         struct{} `cbor:",toarray"`
	Mutation  aweigh.Hash
	Code      uint8
	Reason    string
	Revision  int64
	Succeeded bool
	Height    aweigh.Height
	Responses []scope.Response
}

// bareReceipts are receipts without responses; what is no such thing stays as it is.
func bareReceipts(body []byte) []byte {
	var all []foreignReceipt
	if canon.Decode(body, &all) != nil {
		return body
	}
	for i := range all {
		all[i].Responses = nil
	}
	return canon.Encode(all)
}

func (r *foreignReceipt) receipt(id aweigh.ScopeID) Receipt {
	return Receipt{
		Outcome: scope.Outcome{
			Mutation: r.Mutation, Code: scope.Code(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded, Responses: r.Responses,
		},
		Height: r.Height, Scope: id,
	}
}
