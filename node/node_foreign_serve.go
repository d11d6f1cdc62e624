package node

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

const (
	foreignCost      = 100     // of an answer, in µs of one processor
	foreignCostBytes = 8 << 10 // and in bytes given, besides its own
	foreignWait      = 2 * time.Second
	foreignBytes     = 6 << 20  // of keys and values in one answer
	foreignFew       = 500      // of the versions below, which most questions do with
	foreignVisits    = 20_000   // versions of keys that one question may look at, at 1 µs each
	foreignQuestion  = 64 << 10 // bytes of a question that is no bundle
	foreignOps       = 128      // of one question
	foreignBlock     = 2_000    // µs, for a question that may take a block
	foreignEntry     = 20       // µs, of each entry of a history
)

// errUnasked answers questions in no known form.
var errUnasked = errors.New("node: no question that is known")

// serveForeign answers for the scope to a peer that does not hold it, from the peer's budget.
func (n *Part) serveForeign(ctx context.Context, p Peer, ask ForeignAsk) ([]byte, error) {
	e := n.roll.epoch()
	key := n.anchor.Load()
	if key == nil {
		return nil, ErrNoAnchor
	}
	if err := n.of.pin.holds(); err != nil {
		return nil, err
	}
	if ask.Kind != ForeignSubmit && len(ask.Body) > foreignQuestion {
		return nil, errUnasked
	}
	if err := n.pays(ctx, p, foreignCost, foreignCostBytes+len(ask.Body)); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	a := ForeignAnswer{Epoch: e.Number}
	defer func() { refund(n.budgets.of(p).given, a.paid-len(a.Body)) }()
	if _, seated := e.Roster.Seat(key.Public().ID()); !seated { // who asks knows an epoch in which it was
		return canon.Encode(Unseated(e.Number)), nil
	}
	if err := n.answerForeign(ctx, p, ask, &a); err != nil {
		if a.Failure = scope.FailureIn(err); a.Failure == "" {
			return nil, err
		}
	}
	if len(a.Body) > foreignBytes+foreignBytes/8 {
		a.Failure, a.Body = scope.FailureIn(scope.ErrTooMuch), nil
	}
	return canon.Encode(a), nil
}

// pays takes µs and bytes from a peer's budget, and waits for its turn. What would wait for
// long is refused, and costs nothing.
func (n *Part) pays(ctx context.Context, p Peer, work, bytes int) error {
	if err := n.turn(ctx, n.budgets.of(p).given, bytes); err != nil || n.budgets.anchor(p) {
		return err
	}
	return n.turn(ctx, n.budgets.shared(p), work)
}

// refund gives back what was paid and not used, or takes what was used beyond it.
func refund(l *rate.Limiter, unused int) {
	l.ReserveN(time.Now(), max(-unused, -l.Burst()))
}

// unspent gives a peer back µs that it paid for and that were not used.
func (n *Part) unspent(p Peer, work int) {
	if !n.budgets.anchor(p) {
		refund(n.budgets.shared(p), work)
	}
}

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

// answerForeign answers a question.
func (n *Part) answerForeign(ctx context.Context, p Peer, ask ForeignAsk, a *ForeignAnswer) (err error) {
	switch ask.Kind {
	case ForeignSubmit:
		a.Body, err = n.submitForeign(ctx, p, ask.Body, a)
		return err
	case ForeignProve, ForeignRefer:
		if err := n.pays(ctx, p, foreignBlock, 0); err != nil {
			return err
		}
		if ask.Kind == ForeignRefer {
			a.Body, err = n.referForeign(ctx, ask.Body, a)
		} else {
			a.Body, err = n.proveForeign(ctx, ask.Body, a)
		}
		return err
	case ForeignJudge:
		a.Body, err = n.judgeForeign(ctx, p, ask, a)
		return err
	case ForeignLook, ForeignResolve, ForeignHistory, ForeignOutcome, ForeignEvents:
	default:
		return errUnasked
	}
	v, err := n.viewForeign(ctx, p, ask)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head := v.Head()
	a.said(&head)
	if ask.pins() && ask.At > 0 {
		a.Revision = ask.At
	}
	switch ask.Kind {
	case ForeignLook:
		a.Body, err = n.lookForeign(ctx, p, v, ask, a)
	case ForeignResolve:
		var x ForeignName
		if err = canon.Decode(ask.Body, &x); err == nil {
			err = n.ownsForeign(v, Keys(x.Key))
		}
		if err == nil && x.Version > 0 { // its history is walked
			err = n.pays(ctx, p, foreignBlock, 0)
		}
		if err == nil {
			var r Resolved
			r, err = v.resolved(ctx, x.Key, x.Version)
			if err == nil || r.Moved != nil {
				a.Body = canon.Encode(r)
			}
		}
	case ForeignHistory:
		var x foreignPast
		if err = canon.Decode(ask.Body, &x); err == nil {
			err = n.ownsForeign(v, Keys(x.Key))
		}
		if err == nil && (x.Limit < 1 || x.Limit > foreignEntries) {
			err = errUnasked
		}
		if err == nil {
			err = n.pays(ctx, p, int(x.Limit)*foreignEntry, 0)
		}
		if err == nil {
			a.Body, err = n.historyForeign(ctx, v, x)
		}
	case ForeignEvents:
		var x foreignWatch
		if err = canon.Decode(ask.Body, &x); err == nil && (len(x.Key) == 0 || !scope.Covers(n.prefix, x.Key, x.End)) {
			err = errUnasked
		}
		if h := v.Head(); err == nil && x.From <= h.Revision { // there may be changes
			if err = n.pays(ctx, p, foreignChanges/4, foreignBytes); err == nil {
				a.paid = foreignBytes
			}
		}
		if err == nil {
			a.Body, err = tellEvents(v.State, &x, ask.At)
		}
	case ForeignOutcome:
		a.Body, err = tellOutcome(v.State, ask.Body)
	}
	return err
}

// viewForeign is the state that a question is about: one that is closed up to the revision
// that it names.
func (n *Part) viewForeign(ctx context.Context, p Peer, ask ForeignAsk) (*View, error) {
	v, err := n.Read(ctx, ask.Newest)
	if err != nil || ask.At <= 0 {
		return v, err
	}
	if h := v.Head(); h.Closed() >= ask.At {
		return v, nil
	}
	if err := errors.Join(v.Close(), n.pays(ctx, p, foreignBlock, 0)); err != nil { // a block may have to close it
		return nil, err
	}
	// Who asks may have heard of scopes that this node knows nothing of.
	head := n.LastHead()
	possible := scope.ClockRevision(head.Started, n.runner.now())
	if err := n.of.closedKnowing(ctx, n, ask.At, possible); err != nil {
		return nil, err
	}
	if v, err = n.Read(ctx, false); err != nil {
		return nil, err
	}
	if h := v.Head(); h.Closed() < ask.At {
		return nil, errors.Join(scope.ErrFutureRevision, v.Close())
	}
	return v, nil
}

// ownsForeign says why some keys are not the scope's own.
func (n *Part) ownsForeign(v *View, ranges Ranges) (err error) {
	ranges(func(key, end []byte) bool {
		if len(key) == 0 || !scope.Covers(n.prefix, key, end) {
			err = errUnasked
		}
		return err == nil
	})
	if err == nil {
		err = v.owns(ranges)
	}
	return err
}

// lookForeign is what a transaction that only reads finds, in a bounded answer.
func (n *Part) lookForeign(ctx context.Context, p Peer, v *View, ask ForeignAsk, a *ForeignAnswer) ([]byte, error) {
	var t scope.Txn
	if err := canon.Decode(ask.Body, &t); err != nil {
		return nil, err
	}
	if !onlyReads(&t) {
		return nil, errWrites
	}
	if err := t.Check(n.Limits()); err != nil {
		return nil, err
	}
	if err := n.ownsForeign(v, t.Ranges); err != nil {
		return nil, err
	}
	size, err := n.weighForeign(ctx, p, v, &t, ask.At)
	if err != nil {
		return nil, err
	}
	if err := n.pays(ctx, p, 0, size); err != nil {
		return nil, err
	}
	a.paid = size
	return tellLook(v.State, &t, ask.At)
}

// weighForeign is how many bytes of records a transaction reads. The peer pays for a few visits before they are made, and
// where these do not do, for as many as a question may make; what is left is given back.
func (n *Part) weighForeign(ctx context.Context, p Peer, v *View, t *scope.Txn, at int64) (size int, err error) {
	for _, most := range []int{foreignFew, foreignVisits} {
		if err := n.pays(ctx, p, most, 0); err != nil {
			return 0, err
		}
		room, visits := foreignBytes, most
		err = weigh(v.State, t, at, &room, &visits)
		n.unspent(p, max(visits, 0))
		if size = foreignBytes - room; err == nil || visits >= 0 && room < 0 {
			break
		}
	}
	return size, err
}

// proveForeign proves the newest change of a key.
func (n *Part) proveForeign(ctx context.Context, key []byte, a *ForeignAnswer) (body []byte, err error) {
	err = n.covered(ctx, func(v *View) error {
		if err := n.ownsForeign(v, Keys(key)); err != nil {
			return err
		}
		p, err := n.proveKey(ctx, v, key)
		if err != nil {
			return err
		}
		head := v.Head()
		a.said(&head)
		body = p.Encode()
		return nil
	})
	return body, err
}

// referForeign are the referrals for keys that the scope has delegated.
func (n *Part) referForeign(ctx context.Context, body []byte, a *ForeignAnswer) ([]byte, error) {
	var keys ForeignKeys
	if err := canon.Decode(body, &keys); err != nil {
		return nil, err
	}
	if len(keys.Ranges) > foreignOps {
		return nil, scope.ErrTooManyOps
	}
	var all []scope.Referral
	err := n.coveredFrom(ctx, false, func(v *View) (err error) {
		if all, err = tellReferrals(v.State, n.History(), &keys); err == nil {
			h := v.Head()
			a.said(&h)
		}
		return err
	})
	return canon.Encode(all), err
}

// submitForeign hands a peer's bundle in, as one of the peer's and not of this node's clients,
// and tells what became of it.
func (n *Part) submitForeign(ctx context.Context, p Peer, raw []byte, a *ForeignAnswer) ([]byte, error) {
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
		err = errOtherScope
	}
	if err != nil {
		a.Failure = err.Error() // all say so alike: it will never be taken
		return nil, nil
	}
	if b.Looks() > int64(n.budgets.of(p).work.Burst()) {
		return nil, ErrBusy
	} else if !n.paid(p, b) {
		return nil, ErrStopped
	}
	receipts, err := n.submit(ctx, Submit{Bundle: b, From: p})
	if errors.As(err, new(*ExpiredError)) {
		a.Failure = err.Error() // likewise
		h := n.LastHead()
		a.said(&h)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range receipts {
		a.Height, a.Revision = receipts[i].Height, max(a.Revision, receipts[i].Revision)
	}
	if v, err := n.views.open(); err == nil { // when that was
		h := v.Head()
		a.Time = h.Time
		if err := n.views.release(v); err != nil {
			return nil, err
		}
	}
	return EncodeReceipts(receipts), nil
}
