package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// ErrMute means that too few anchors of a scope answered, or answered alike.
var ErrMute = errors.New("node: too few anchors of a scope that this node does not hold answered alike in time; it may lack a quorum")

// ForeignHedge is how long an anchor has to answer before one more is asked.
const ForeignHedge = 150 * time.Millisecond

// foreignTries is how often anchors are asked that say different things.
const foreignTries = 4

// Inquiry asks the anchors of a foreign scope one thing, until enough of them have said the same:
// as many at once as have more weight than may lie, and one more whenever one fails or takes
// long. It begins again where the scope goes on to another epoch. What they say as of different moments may
// differ because it changes; then they are asked once more, as of one moment that is late enough if
// it can be said what was then, and else in the hope of a quieter one.
//
// Next says whom to ask, Hear takes what is said, Hedge is for when ForeignHedge has passed, and Result
// tells how it ended. It does no I/O, and changes its ForeignScope, with which it must be guarded.
type Inquiry struct {
	of    *ForeignScope
	ask   ForeignAsk
	key   aweigh.Hash // of what is cached
	began aweigh.Instant

	round, try int
	epoch      *scope.Epoch
	order      []*scope.Anchor
	asked, out int    // of order
	most       int    // of order, that may be asked by now
	heard      uint64 // weight of those who answered
	discussion
	last error // why somebody's answer did not count
	bad  error // why nothing that was said proved itself, or what the scope fails for

	said     ForeignAnswer
	outvoted int
	err      error
	ended    bool
}

// Query is what one anchor is to be asked.
type Query struct {
	Anchor *scope.Anchor
	Ask    ForeignAsk
	round  int
	epoch  aweigh.Epoch // in which it is asked
}

// Inquire begins to ask something.
func (f *ForeignScope) Inquire(ask ForeignAsk, now aweigh.Instant) *Inquiry {
	q := &Inquiry{of: f, ask: ask, began: now, last: errors.New("nobody answered")}
	if ask.cacheable() {
		q.key = cacheKey(&ask)
		if q.said, q.ended = f.cached(q.key, now); q.ended {
			return q
		}
	}
	q.least = f.least()
	if ask.Newest {
		q.least = max(q.least, f.newest)
	}
	q.begin()
	return q
}

// begin begins a round, in the newest epoch that is proven.
func (q *Inquiry) begin() {
	q.round++
	q.epoch, q.order = q.of.epoch, q.of.order()
	q.asked, q.out, q.heard = 0, 0, 0
	q.discussion.begin(q.epoch)
	weight := uint64(0)
	for q.most = 0; q.most < len(q.order) && weight <= q.all.budget; q.most++ {
		weight += q.weight(q.order[q.most])
	}
}

func (q *Inquiry) weight(a *scope.Anchor) uint64 { return q.epoch.Roster.Weights.Of(a.Key.ID()) }

// more lets one more anchor be asked.
func (q *Inquiry) more() { q.most = min(q.most+1, len(q.order)) }

// Next is whom to ask now, if anybody.
func (q *Inquiry) Next() (x Query, ok bool) {
	if q.ended || q.asked == q.most {
		return x, false
	}
	q.asked++
	q.out++
	return Query{Anchor: q.order[q.asked-1], Ask: q.ask, round: q.round, epoch: q.epoch.Number}, true
}

// Round tells one round from others: what was asked in an earlier one is no longer of interest.
func (q *Inquiry) Round() int { return q.round }

// Hear takes what an anchor said after a while, or why it said nothing that counts. The caller
// has verified what proves itself, and before that had the scope enter the epoch that the
// answer names.
func (q *Inquiry) Hear(x Query, took time.Duration, a ForeignAnswer, err error) {
	if err == nil && a.Failure == errGone.Error() {
		err = errGone
	}
	if err == nil && a.Epoch != x.epoch && q.of.epoch.Number == x.epoch { // it has not proven another
		err = fmt.Errorf("it is in epoch %d, and the scope in %d", a.Epoch, x.epoch)
	}
	q.of.met(x.Anchor.Key.ID(), took, err)
	if q.ended || x.round != q.round {
		return
	}
	if q.of.epoch != q.epoch {
		q.begin()
		return
	}
	q.out--
	switch {
	case err != nil:
		if !errors.Is(err, ErrOutrun) {
			q.last = fmt.Errorf("%s: %w", x.Anchor.Name, err)
		}
		if q.ask.proves() && errors.Is(err, scope.ErrProof) && q.bad == nil {
			q.bad = err
		}
		q.more()
	case q.takes(x.Anchor, a):
		q.conclude(nil)
		return
	default:
		q.heard += q.weight(x.Anchor)
		if enough := q.all.weights.Total() - q.all.budget; q.heard >= enough && q.ask.Kind != ForeignSubmit {
			q.differ()
			return
		}
		if q.out == 0 {
			q.more()
		}
	}
	q.exhausted()
}

// Renew begins again if the scope has gone on to another epoch, as somebody else has proven.
func (q *Inquiry) Renew() {
	if !q.ended && q.of.epoch != q.epoch {
		q.begin()
	}
}

// exhausted ends the inquiry if nobody is left to answer.
func (q *Inquiry) exhausted() {
	if q.out == 0 && q.asked == len(q.order) {
		q.conclude(fmt.Errorf("%w: scope %q: %w", ErrMute, q.of.genesis.Prefix(), q.last))
	}
}

// takes takes an answer, and reports whether there is enough.
func (q *Inquiry) takes(by *scope.Anchor, a ForeignAnswer) bool {
	if !q.ask.proves() {
		return q.hear(&q.ask, by, a)
	}
	if why := scope.Failure(a.Failure); why != nil {
		if q.bad == nil {
			q.bad = why
		}
		return false
	}
	q.said = a
	return true
}

// differ asks once more, since those who answered say different things.
func (q *Inquiry) differ() {
	if q.try++; q.try == foreignTries || q.ask.proves() {
		q.conclude(fmt.Errorf("%w: scope %q: %w", ErrMute, q.of.genesis.Prefix(), errDiffer))
		return
	}
	if at, ok := q.all.floor(); ok && at > 0 && q.ask.At == 0 && q.ask.pins() {
		q.ask.At, q.pinned = at, true
	}
	q.begin()
}

// Hedge lets one more be asked, since ForeignHedge has passed, or contents itself with what
// was said.
func (q *Inquiry) Hedge() {
	if q.ended {
		return
	}
	if _, _, ok := q.bare.agreed(); ok {
		q.conclude(nil)
		return
	}
	q.more()
}

// GiveUp ends the inquiry, unless enough was said already.
func (q *Inquiry) GiveUp(why error) {
	if !q.ended {
		q.conclude(fmt.Errorf("%w: scope %q: %w (%w)", ErrMute, q.of.genesis.Prefix(), q.last, why))
	}
}

// conclude ends the inquiry: with what enough said, if they did.
func (q *Inquiry) conclude(err error) {
	q.ended = true
	if q.ask.proves() {
		if q.err = err; err != nil && q.bad != nil {
			q.err = q.bad
		}
		return
	}
	said, liars, ok := q.outcome()
	if !ok {
		q.err = err
		return
	}
	q.said, q.outvoted = said, len(liars)
	if q.ask.Kind != ForeignSubmit {
		for _, id := range liars {
			q.of.met(id, 0, errDiffer)
		}
	}
	if q.key != (aweigh.Hash{}) {
		q.of.keep(q.key, &said, q.began)
	}
	q.of.heard(&said)
}

// Result is what enough anchors said, or why they did not, once that is known. What they
// said may be that the scope fails for something.
func (q *Inquiry) Result() (a ForeignAnswer, err error, ended bool) {
	return q.said, q.err, q.ended
}

// Outvoted is how many anchors said something else than what counts.
func (q *Inquiry) Outvoted() int { return q.outvoted }

// Pinned reports whether anchors were asked as of a revision that they named themselves.
func (q *Inquiry) Pinned() bool { return q.pinned }
