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
// It judges the peer's rights before it looks at the state of this node.
func (n *Replica) serveForeign(ctx context.Context, p machine.Peer, ask referral.Question) ([]byte, error) {
	e := n.epochs.epoch()
	if ask.Kind != referral.AskSubmit && ask.Kind != referral.AskReceive && len(ask.Body) > foreignQuestion {
		return nil, referral.ErrUnasked
	}
	if err := n.charge(ctx, p, foreignCost, foreignCostBytes+len(ask.Body)); err != nil {
		return nil, err
	}
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	q, err := readInquiry(&ask)
	if err == nil {
		err = n.chargeProof(ctx, p, &q)
	}
	if err == nil {
		err = n.refusesInquiry(p, &q)
	}
	key, seated := n.anchor.Load(), false
	if key != nil {
		_, seated = e.Roster.Seat(key.Public().ID())
	}
	switch {
	case errors.Is(err, scope.ErrNoReader):
		return n.refuseForeign(seated), nil
	case err != nil:
		return nil, err
	case key == nil:
		return nil, ErrNoAnchor
	case n.of.pin.holds() != nil:
		return nil, n.of.pin.holds()
	case !seated: // the asker knows an epoch in which it had a seat
		return canon.Encode(referral.Unseated(e.Number)), nil
	}
	a := referral.Answer{Epoch: e.Number}
	read := 0 // bytes that the answer took to make
	defer func() { refund(n.budgets.Given(p), a.Paid-read) }()
	if err := n.answerForeign(ctx, p, &q, &a); err != nil {
		if errors.Is(err, scope.ErrNoReader) {
			return n.refuseForeign(seated), nil
		}
		if a.Failure = scope.FailureIn(err); a.Failure == "" {
			return nil, err
		}
	}
	if len(a.Body) > referral.MaxBytes+referral.MaxBytes/8 {
		a.Failure, a.Body = scope.FailureIn(scope.ErrTooMuch), nil
	}
	read = len(a.Body) // a hash in place of them costs its asker as much
	a.Shorten(&ask)
	return canon.Encode(a), nil
}

// refuseForeign is the answer to a peer that may not read what it asks for. It learns nothing else, not even the epoch.
func (n *Replica) refuseForeign(seated bool) []byte {
	n.measured.unread.Add(1)
	if !seated { // what this node knows of readers may be old
		return canon.Encode(referral.Unseated(0))
	}
	return canon.Encode(referral.Refused())
}

// charge takes µs and bytes from a peer's budget, and waits for its turn. It refuses what would wait for long; that
// costs nothing.
func (n *Replica) charge(ctx context.Context, p machine.Peer, work, bytes int) error {
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

// inquiry is a question in its decoded form: the one field that belongs to its kind is set.
type inquiry struct {
	referral.Question
	look  scope.Txn
	name  referral.Name
	past  foreignHistory
	watch referral.Watch
	list  referral.RangeList
	keys  foreignKeys
	sent  *scope.TransferProof
	about referral.Ranges // the keys that it reads; nil if it needs a part in the scope
}

// readInquiry decodes a question.
func readInquiry(ask *referral.Question) (q inquiry, err error) {
	q.Question = *ask
	switch ask.Kind {
	case referral.AskLook:
		err = canon.Decode(ask.Body, &q.look)
		q.about = q.look.Ranges
	case referral.AskResolve:
		err = canon.Decode(ask.Body, &q.name)
		q.about = referral.Keys(q.name.Key)
	case referral.AskProve:
		q.about = referral.Keys(ask.Body)
	case referral.AskReferrals:
		err = canon.Decode(ask.Body, &q.list)
		q.about = q.list.Each
	case referral.AskHistory:
		err = canon.Decode(ask.Body, &q.past)
		q.about = referral.Keys(q.past.Key)
	case referral.AskEvents:
		err = canon.Decode(ask.Body, &q.watch)
		q.about = referral.Between(q.watch.Key, q.watch.End)
	case referral.AskProveRange:
		err = canon.Decode(ask.Body, &q.keys)
		q.about = referral.Between(q.keys.Key, q.keys.End)
	case referral.AskReceive:
		q.sent, _ = scope.DecodeTransferProof(ask.Body) // of what is none, only a peer that may read hears
	case referral.AskSubmit, referral.AskJudge, referral.AskOutcome:
	default:
		err = referral.ErrUnasked
	}
	return q, err
}

// refusesInquiry returns why a peer may not ask that, and ErrUnasked for keys that are not below the scope's prefix.
func (n *Replica) refusesInquiry(p machine.Peer, q *inquiry) error {
	if q.about == nil {
		return n.excludesAsker(p, q)
	}
	if err := n.refuses(p, q.about); err != nil {
		return err
	}
	inside := q.Kind == referral.AskReferrals || q.about(func(key, end []byte) bool {
		return len(key) > 0 && scope.Covers(n.prefix, key, end)
	})
	if !inside {
		return referral.ErrUnasked
	}
	return nil
}

// answerForeign answers a question that the peer may ask.
func (n *Replica) answerForeign(ctx context.Context, p machine.Peer, q *inquiry, a *referral.Answer) (err error) {
	switch q.Kind {
	case referral.AskSubmit:
		a.Body, err = n.submitForeign(ctx, p, q.Body, a)
		return err
	case referral.AskReceive:
		a.Body, err = n.receiveForeign(ctx, q.sent, a)
		return err
	case referral.AskProve, referral.AskReferrals, referral.AskProveRange:
		if err := n.charge(ctx, p, foreignBlock, 0); err != nil {
			return err
		}
		switch q.Kind {
		case referral.AskReferrals:
			a.Body, err = n.referForeign(ctx, &q.list, a)
		case referral.AskProveRange:
			a.Body, err = n.proveRangeForeign(ctx, p, q, a)
		default:
			a.Body, err = n.proveForeign(ctx, p, q, a)
		}
		return err
	case referral.AskJudge:
		a.Body, err = n.judgeForeign(ctx, p, q.Question, a)
		return err
	}
	v, err := n.viewForeign(ctx, p, q.Question)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head := v.Head()
	a.Said(&head)
	if q.Pins() && q.At > 0 {
		a.Revision = q.At
	}
	switch q.Kind {
	case referral.AskLook:
		a.Body, err = n.lookForeign(ctx, p, v, q, a)
	case referral.AskResolve:
		if err = v.owns(q.about); err == nil && q.name.Version > 0 { // its history is walked
			err = n.charge(ctx, p, foreignBlock, 0)
		}
		if err == nil {
			var r referral.Resolved
			r, err = v.resolved(ctx, q.name.Key, q.name.Version)
			if err == nil || r.Moved != nil {
				if hidden := n.hidesNames(p, r.Names()); hidden != nil {
					return hidden
				}
				a.Body = canon.Encode(r)
			}
		}
	case referral.AskHistory:
		if err = v.owns(q.about); err == nil && (q.past.Limit < 1 || q.past.Limit > foreignEntries) {
			err = referral.ErrUnasked
		}
		if err == nil {
			err = n.charge(ctx, p, int(q.past.Limit)*foreignEntry, 0)
		}
		if err == nil {
			a.Body, err = n.historyForeign(ctx, p, v, q.past)
		}
	case referral.AskEvents:
		if h := v.Head(); q.watch.From <= h.Revision { // there may be changes
			if err = n.charge(ctx, p, referral.MaxChanges/4, referral.MaxBytes); err == nil {
				a.Paid = referral.MaxBytes
			}
		}
		if err == nil {
			a.Body, err = referral.TellEvents(v.State, &q.watch, q.At)
		}
	case referral.AskOutcome:
		a.Body, err = referral.TellOutcome(v.State, q.Body)
	}
	return err
}

// viewForeign returns the state that a question is about, which is closed up to the revision that the question names.
func (n *Replica) viewForeign(ctx context.Context, p machine.Peer, ask referral.Question) (*View, error) {
	v, err := n.Read(ctx, ask.Newest)
	if err != nil || ask.At <= 0 {
		return v, err
	}
	h := v.Head()
	if h.ClosedTimestamp() >= ask.At {
		return v, nil
	}
	if !h.Clocked { // revisions go by changes, and no block without one closes any
		return nil, errors.Join(scope.ErrFutureRevision, v.Close())
	}
	if err := errors.Join(v.Close(), n.charge(ctx, p, foreignBlock, 0)); err != nil { // a block may have to close it
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

// lookForeign returns the result of a transaction that only reads, in a bounded answer.
func (n *Replica) lookForeign(
	ctx context.Context, p machine.Peer, v *View, q *inquiry, a *referral.Answer,
) ([]byte, error) {
	t := &q.look
	if !referral.OnlyReads(t) {
		return nil, referral.ErrWrites
	}
	if err := t.Check(n.Limits()); err != nil {
		return nil, err
	}
	if err := v.owns(q.about); err != nil {
		return nil, err
	}
	size, err := n.weighForeign(ctx, p, v, t, q.At)
	if err != nil {
		return nil, err
	}
	if err := n.charge(ctx, p, 0, size); err != nil {
		return nil, err
	}
	a.Paid = size
	return referral.TellLook(v.State, t, q.At)
}

// weighForeign returns how many bytes of records a transaction reads. The peer pays in advance for a few visits, and
// if these do not suffice, for as many as a question may make; what is left is given back.
func (n *Replica) weighForeign(ctx context.Context, p machine.Peer, v *View, t *scope.Txn, at int64) (size int, err error) {
	for _, most := range []int{foreignFew, foreignVisits} {
		if err := n.charge(ctx, p, most, 0); err != nil {
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
func (n *Replica) proveForeign(ctx context.Context, p machine.Peer, q *inquiry, a *referral.Answer) (body []byte, err error) {
	err = n.covered(ctx, func(v *View) error {
		if err := v.owns(q.about); err != nil {
			return err
		}
		proof, err := n.proveKey(ctx, v, q.Body)
		if err == nil {
			err = n.hidesProof(p, proof)
		}
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
func (n *Replica) referForeign(ctx context.Context, keys *referral.RangeList, a *referral.Answer) ([]byte, error) {
	if len(keys.Ranges) > foreignOps {
		return nil, scope.ErrTooManyOps
	}
	var all []scope.Referral
	err := n.coveredFrom(ctx, false, func(v *View) (err error) {
		if all, err = referral.TellReferrals(v.State, n.History(), keys); err == nil {
			h := v.Head()
			a.Said(&h)
		}
		return err
	})
	return canon.Encode(all), err
}

// chargeFrame charges a peer for a frame, and waits for its turn, at most for foreignWait. A neighbour is charged only
// if it need not wait, so it is charged again after it has waited.
func (n *Replica) chargeFrame(p machine.Peer, frame []byte) error {
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
