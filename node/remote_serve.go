package node

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

const (
	foreignCost      = 100     // of an answer, in µs of one processor
	foreignCostBytes = 8 << 10 // and in bytes given, besides its own
	foreignWait      = 2 * time.Second
	foreignFew       = 500      // of the versions below; most questions need no more
	foreignVisits    = 20_000   // versions of keys that one question may look at, at 1 µs each
	foreignQuestion  = 64 << 10 // bytes of a question that is no bundle
	foreignOps       = 128      // of one question
	foreignBlock     = 2_000    // µs, for a question that may take a block
	foreignEntry     = 20       // µs, of each entry of a history
)

// serveForeign answers a question about the scope from a peer that does not hold it, at the cost of the peer's budget.
func (n *Replica) serveForeign(ctx context.Context, p machine.Peer, ask referral.Question) ([]byte, error) {
	e := n.epochs.epoch()
	key := n.anchor.Load()
	if key == nil {
		return nil, ErrNoAnchor
	}
	if err := n.of.pin.holds(); err != nil {
		return nil, err
	}
	if ask.Kind != referral.AskSubmit && len(ask.Body) > foreignQuestion {
		return nil, referral.ErrUnasked
	}
	if err := n.pays(ctx, p, foreignCost, foreignCostBytes+len(ask.Body)); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	a := referral.Answer{Epoch: e.Number}
	defer func() { refund(n.budgets.Given(p), a.Paid-len(a.Body)) }()
	if _, seated := e.Roster.Seat(key.Public().ID()); !seated { // the asker knows an epoch in which it had a seat
		return canon.Encode(referral.Unseated(e.Number)), nil
	}
	if err := n.answerForeign(ctx, p, ask, &a); err != nil {
		if errors.Is(err, scope.ErrNoReader) {
			n.measured.unread.Add(1)
		}
		if a.Failure = scope.FailureIn(err); a.Failure == "" {
			return nil, err
		}
	}
	if len(a.Body) > referral.MaxBytes+referral.MaxBytes/8 {
		a.Failure, a.Body = scope.FailureIn(scope.ErrTooMuch), nil
	}
	return canon.Encode(a), nil
}

// pays takes µs and bytes from a peer's budget, and waits for its turn. It refuses what would wait for long; that
// costs nothing.
func (n *Replica) pays(ctx context.Context, p machine.Peer, work, bytes int) error {
	if err := n.turn(ctx, n.budgets.Given(p), bytes); err != nil || n.epochs.Anchor(p) {
		return err
	}
	return n.turn(ctx, n.budgets.Shared(p), work)
}

// refund gives back what was paid and not used, or takes what was used beyond it.
func refund(l *rate.Limiter, unused int) {
	l.ReserveN(time.Now(), max(-unused, -l.Burst()))
}

// unspent gives back to a peer µs that it paid for and that were not used.
func (n *Replica) unspent(p machine.Peer, work int) {
	if !n.epochs.Anchor(p) {
		refund(n.budgets.Shared(p), work)
	}
}

func (n *Replica) turn(ctx context.Context, l *rate.Limiter, cost int) error {
	r := l.ReserveN(time.Now(), min(cost, l.Burst()))
	wait := r.Delay()
	if wait > foreignWait {
		r.Cancel()
		return machine.ErrBusy
	}
	if wait > 0 && !n.pauseFor(ctx, wait) {
		return ErrStopped
	}
	return nil
}

// answerForeign answers a question.
func (n *Replica) answerForeign(ctx context.Context, p machine.Peer, ask referral.Question, a *referral.Answer) (err error) {
	switch ask.Kind { // the others say which keys they are about
	case referral.AskSubmit, referral.AskJudge, referral.AskOutcome:
		if err := n.refuses(p, nil); err != nil {
			return err
		}
	}
	switch ask.Kind {
	case referral.AskSubmit:
		a.Body, err = n.submitForeign(ctx, p, ask.Body, a)
		return err
	case referral.AskProve, referral.AskReferrals:
		if err := n.pays(ctx, p, foreignBlock, 0); err != nil {
			return err
		}
		if ask.Kind == referral.AskReferrals {
			a.Body, err = n.referForeign(ctx, p, ask.Body, a)
		} else {
			a.Body, err = n.proveForeign(ctx, p, ask.Body, a)
		}
		return err
	case referral.AskJudge:
		a.Body, err = n.judgeForeign(ctx, p, ask, a)
		return err
	case referral.AskLook, referral.AskResolve, referral.AskHistory, referral.AskOutcome, referral.AskEvents:
	default:
		return referral.ErrUnasked
	}
	v, err := n.viewForeign(ctx, p, ask)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head := v.Head()
	a.Said(&head)
	if ask.Pins() && ask.At > 0 {
		a.Revision = ask.At
	}
	switch ask.Kind {
	case referral.AskLook:
		a.Body, err = n.lookForeign(ctx, p, v, ask, a)
	case referral.AskResolve:
		var x referral.Name
		if err = canon.Decode(ask.Body, &x); err == nil {
			err = n.ownsForeign(p, v, referral.Keys(x.Key))
		}
		if err == nil && x.Version > 0 { // its history is walked
			err = n.pays(ctx, p, foreignBlock, 0)
		}
		if err == nil {
			var r referral.Resolved
			r, err = v.resolved(ctx, x.Key, x.Version)
			if err == nil || r.Moved != nil {
				a.Body = canon.Encode(r)
			}
		}
	case referral.AskHistory:
		var x foreignPast
		if err = canon.Decode(ask.Body, &x); err == nil {
			err = n.ownsForeign(p, v, referral.Keys(x.Key))
		}
		if err == nil && (x.Limit < 1 || x.Limit > foreignEntries) {
			err = referral.ErrUnasked
		}
		if err == nil {
			err = n.pays(ctx, p, int(x.Limit)*foreignEntry, 0)
		}
		if err == nil {
			a.Body, err = n.historyForeign(ctx, v, x)
		}
	case referral.AskEvents:
		var x referral.Watch
		if err = canon.Decode(ask.Body, &x); err == nil && (len(x.Key) == 0 || !scope.Covers(n.prefix, x.Key, x.End)) {
			err = referral.ErrUnasked
		}
		if err == nil {
			err = n.refuses(p, referral.Between(x.Key, x.End))
		}
		if h := v.Head(); err == nil && x.From <= h.Revision { // there may be changes
			if err = n.pays(ctx, p, referral.MaxChanges/4, referral.MaxBytes); err == nil {
				a.Paid = referral.MaxBytes
			}
		}
		if err == nil {
			a.Body, err = referral.TellEvents(v.State, &x, ask.At)
		}
	case referral.AskOutcome:
		a.Body, err = referral.TellOutcome(v.State, ask.Body)
	}
	return err
}

// viewForeign returns the state that a question is about, which is closed up to the revision that the question names.
func (n *Replica) viewForeign(ctx context.Context, p machine.Peer, ask referral.Question) (*View, error) {
	v, err := n.Read(ctx, ask.Newest)
	if err != nil || ask.At <= 0 {
		return v, err
	}
	if h := v.Head(); h.ClosedTimestamp() >= ask.At {
		return v, nil
	}
	if err := errors.Join(v.Close(), n.pays(ctx, p, foreignBlock, 0)); err != nil { // a block may have to close it
		return nil, err
	}
	// The asker may have heard of scopes that this node does not know.
	head := n.LastHead()
	possible := scope.ClockRevision(head.Started, n.runner.now())
	if err := n.of.closedKnowing(ctx, n, ask.At, possible); err != nil {
		return nil, err
	}
	if v, err = n.Read(ctx, false); err != nil {
		return nil, err
	}
	if h := v.Head(); h.ClosedTimestamp() < ask.At {
		return nil, errors.Join(scope.ErrFutureRevision, v.Close())
	}
	return v, nil
}

// ownsForeign returns why some keys are not the scope's own, or the peer may not read them, nil if neither is so.
func (n *Replica) ownsForeign(p machine.Peer, v *View, ranges referral.Ranges) (err error) {
	ranges(func(key, end []byte) bool {
		if len(key) == 0 || !scope.Covers(n.prefix, key, end) {
			err = referral.ErrUnasked
		}
		return err == nil
	})
	if err == nil {
		err = n.refuses(p, ranges)
	}
	if err == nil {
		err = v.owns(ranges)
	}
	return err
}

// lookForeign returns the result of a transaction that only reads, in a bounded answer.
func (n *Replica) lookForeign(ctx context.Context, p machine.Peer, v *View, ask referral.Question, a *referral.Answer) ([]byte, error) {
	var t scope.Txn
	if err := canon.Decode(ask.Body, &t); err != nil {
		return nil, err
	}
	if !referral.OnlyReads(&t) {
		return nil, referral.ErrWrites
	}
	if err := t.Check(n.Limits()); err != nil {
		return nil, err
	}
	if err := n.ownsForeign(p, v, t.Ranges); err != nil {
		return nil, err
	}
	size, err := n.weighForeign(ctx, p, v, &t, ask.At)
	if err != nil {
		return nil, err
	}
	if err := n.pays(ctx, p, 0, size); err != nil {
		return nil, err
	}
	a.Paid = size
	return referral.TellLook(v.State, &t, ask.At)
}

// weighForeign returns how many bytes of records a transaction reads. The peer pays in advance for a few visits, and
// if these do not suffice, for as many as a question may make; what is left is given back.
func (n *Replica) weighForeign(ctx context.Context, p machine.Peer, v *View, t *scope.Txn, at int64) (size int, err error) {
	for _, most := range []int{foreignFew, foreignVisits} {
		if err := n.pays(ctx, p, most, 0); err != nil {
			return 0, err
		}
		room, visits := referral.MaxBytes, most
		err = referral.Cost(v.State, t, at, &room, &visits)
		n.unspent(p, max(visits, 0))
		if size = referral.MaxBytes - room; err == nil || visits >= 0 && room < 0 {
			break
		}
	}
	return size, err
}

// proveForeign proves the newest change of a key.
func (n *Replica) proveForeign(ctx context.Context, p machine.Peer, key []byte, a *referral.Answer) (body []byte, err error) {
	err = n.covered(ctx, func(v *View) error {
		if err := n.ownsForeign(p, v, referral.Keys(key)); err != nil {
			return err
		}
		proof, err := n.proveKey(ctx, v, key)
		if err != nil {
			return err
		}
		head := v.Head()
		a.Said(&head)
		body = proof.Encode()
		return nil
	})
	return body, err
}

// referForeign returns the referrals for keys that the scope has delegated.
func (n *Replica) referForeign(ctx context.Context, p machine.Peer, body []byte, a *referral.Answer) ([]byte, error) {
	var keys referral.RangeList
	if err := canon.Decode(body, &keys); err != nil {
		return nil, err
	}
	if len(keys.Ranges) > foreignOps {
		return nil, scope.ErrTooManyOps
	}
	if err := n.refuses(p, keys.Each); err != nil {
		return nil, err
	}
	var all []scope.Referral
	err := n.coveredFrom(ctx, false, func(v *View) (err error) {
		if all, err = referral.TellReferrals(v.State, n.History(), &keys); err == nil {
			h := v.Head()
			a.Said(&h)
		}
		return err
	})
	return canon.Encode(all), err
}

// affords charges a peer for a frame, and waits for its turn, at most for foreignWait. A neighbour is charged only if
// it need not wait, so it is charged again after it has waited.
func (n *Replica) affords(p machine.Peer, frame []byte) error {
	last := time.Now().Add(foreignWait)
	for {
		d := n.budgets.Wait(p, frame)
		switch {
		case d == 0:
			return nil
		case time.Now().Add(d).After(last):
			return machine.ErrBusy
		case !n.pause(d):
			return ErrStopped
		case !n.budgets.Neighbour(p):
			return nil
		}
	}
}

// submitForeign hands in a peer's bundle, as the peer's and not as one of this node's clients, and returns its
// outcome.
func (n *Replica) submitForeign(ctx context.Context, p machine.Peer, raw []byte, a *referral.Answer) ([]byte, error) {
	if err := n.affords(p, machine.RawFrame(machine.TagBundle, raw)); err != nil {
		return nil, err
	}
	b, err := scope.CheckBundle(raw, n.epochs.checker().Limits, votes.Verify)
	if err == nil && isSignal(b) {
		err = scope.ErrSignal
	}
	if err == nil && b.Scope() != n.id {
		err = machine.ErrOtherScope
	}
	if err != nil {
		a.Failure = err.Error() // all anchors give the same text: it will never be accepted
		return nil, nil
	}
	if b.Looks() > int64(n.budgets.Burst(p)) {
		return nil, machine.ErrBusy
	} else if !n.paid(p, b) {
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
	return referral.EncodeReceipts(receipts), nil
}
