package referral

import (
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// ErrMute means that too few anchors of a scope answered, or that too few gave the same answer.
var ErrMute = errors.New("node: too few anchors of a scope that this node does not hold answered alike in time; it may lack a quorum")

// errRefused is why a refusal does not count as an answer.
var errRefused = errors.New("it does not let this node read, as far as it knows")

// HedgeAfter is how long an anchor has to answer before one more anchor is asked.
const HedgeAfter = 150 * time.Millisecond

// tries is how often anchors are asked that give different answers.
const tries = 4

// Inquiry asks the anchors of a foreign scope one question, until enough of them have given the same answer. It first
// asks as many anchors as have more weight than may lie, and then one more whenever one fails or is slow. The first and
// those that are asked later give whole answers, and the others hashes (Castro and Liskov, OSDI 1999, section 5.1:
// digest replies). Of an answer that is a proof it asks one anchor first. It begins again when the scope moves on to
// another epoch. Answers as of different revisions may differ because the state changed. Then the anchors are asked
// again: as of one revision that is late enough, if the question can be asked as of one, and otherwise in the hope that
// the state does not change meanwhile.
//
// Next returns an anchor to ask, Hear takes its answer, Hedge is called when HedgeAfter has passed, and Result returns
// the outcome. An Inquiry does no I/O. It changes its Scope; one lock must guard both.
type Inquiry struct {
	of    *Scope
	ask   Question
	key   aweigh.Hash // of what is cached
	began aweigh.Instant
	age   time.Duration // of an answer from the cache

	round, try int
	epoch      *scope.Epoch
	order      []Preference
	trail      []Asked
	asked, out int    // how many of order were asked, and how many of those have not answered
	most       int    // how many of order may be asked by now
	brief      int    // how many of order give their answers in brief, but for the first
	whole      bool   // from now on none does
	heard      uint64 // weight of the anchors that answered
	refusing   uint64 // weight of those that refused the question
	refusals   int    // and how many
	unread     bool   // one of them lets this node read nothing
	denied     error  // why one of them refused, if the policy does not permit what was handed in
	responses
	last error // why the last answer that did not count did not
	bad  error // why no answer proved itself, or the scope's reason to refuse

	said     Answer
	outvoted int
	err      error
	ended    bool
}

// Query is a question to one anchor.
type Query struct {
	Anchor *scope.Anchor
	Ask    Question
	round  int
	epoch  aweigh.Epoch // the epoch in which it is asked
}

// Inquire begins an inquiry. It ends at once if the cache has the answer.
func (f *Scope) Inquire(ask Question, now aweigh.Instant) *Inquiry {
	q := &Inquiry{of: f, ask: ask, began: now, last: errors.New("no anchor answered")}
	if ask.cacheable() {
		q.key = cacheKey(&ask)
		if q.said, q.age, q.ended = f.cached(q.key, now); q.ended {
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
	q.asked, q.out, q.heard, q.refusing, q.refusals = 0, 0, 0, 0, 0
	q.unread, q.denied = false, nil
	q.responses.begin(q.epoch)
	weight := uint64(0)
	for q.most = 0; q.most < len(q.order) && weight <= q.all.budget; q.most++ {
		weight += q.weight(q.order[q.most].Anchor)
	}
	if q.ask.Proves() {
		q.most = min(q.most, 1)
	}
	if q.brief = q.most; q.whole || !q.ask.brevity() {
		q.brief = 0
	}
}

func (q *Inquiry) weight(a *scope.Anchor) uint64 { return q.epoch.Roster.Weights.Of(a.Key.ID()) }

// more allows Next to return one more anchor.
func (q *Inquiry) more() { q.most = min(q.most+1, len(q.order)) }

// Next returns the next anchor to ask; ok is false if none is to be asked now.
func (q *Inquiry) Next() (x Query, ok bool) {
	if q.ended || q.asked == q.most {
		return x, false
	}
	q.asked++
	q.out++
	p := q.order[q.asked-1]
	q.trail = append(q.trail, Asked{Why: p, Err: ErrOutrun, round: q.round})
	x = Query{Anchor: p.Anchor, Ask: q.ask, round: q.round, epoch: q.epoch.Number}
	x.Ask.Brief = q.asked > 1 && q.asked <= q.brief
	return x, true
}

// Hear takes the answer to a query, or the error for which there is none, and how long that took. The caller has
// verified an answer that proves itself; before that, it has made the scope enter the epoch that the answer names.
func (q *Inquiry) Hear(x Query, took time.Duration, a Answer, err error) {
	if err == nil && a.Failure == errGone.Error() {
		err = errGone
	}
	if err == nil && a.Epoch != x.epoch && !a.refused() && q.of.epoch.Number == x.epoch { // it did not prove that epoch
		err = fmt.Errorf("it is in epoch %d, and the scope in %d", a.Epoch, x.epoch)
	}
	if err == nil {
		_, err = a.digest(x.Ask.Brief)
	}
	q.of.met(x.Anchor.Key.ID(), took, err)
	if q.ended || x.round != q.round {
		return
	}
	if q.of.epoch != q.epoch {
		q.noted(x, took, err)
		q.begin()
		return
	}
	q.out--
	if err == nil && (a.refused() || q.ask.Kind == AskSubmit && a.denial() != nil) {
		err = errRefused
		if a.refused() {
			q.unread = true
		} else if q.denied == nil {
			q.denied = a.denial()
		}
		q.refusing += q.weight(x.Anchor)
		q.refusals++
	}
	q.noted(x, took, err)
	switch {
	case err != nil:
		if !errors.Is(err, ErrOutrun) {
			q.last = fmt.Errorf("%s: %w", x.Anchor.Name, err)
		}
		if q.ask.Proves() && errors.Is(err, scope.ErrProof) && q.bad == nil {
			q.bad = err
		}
		if q.refusing >= q.all.weights.Total()-q.all.budget && q.ask.Kind != AskSubmit {
			q.conclude(scope.ErrNoReader) // the others cannot answer
			return
		}
		q.more()
	case q.takes(x.Anchor, a):
		q.conclude(nil)
		return
	default:
		q.heard += q.weight(x.Anchor)
		if enough := q.all.weights.Total() - q.all.budget; q.heard >= enough && q.ask.Kind != AskSubmit {
			q.differ()
			return
		}
		if q.out == 0 || q.wanting() {
			q.more()
		}
	}
	q.exhausted()
}

// Renew begins again if the scope has entered another epoch, for example because another inquiry proved it.
func (q *Inquiry) Renew() {
	if !q.ended && q.of.epoch != q.epoch {
		q.begin()
	}
}

// exhausted ends the inquiry if all anchors were asked and none has yet to answer.
func (q *Inquiry) exhausted() {
	if q.out > 0 || q.asked < len(q.order) {
		return
	}
	switch {
	case q.wanting() && !q.whole:
		q.again()
	case q.refusals == len(q.order) && q.unread: // that one says nothing of what was handed in
		q.conclude(scope.ErrNoReader)
	case q.refusals == len(q.order): // none took it
		q.conclude(q.denied)
	default:
		q.conclude(fmt.Errorf("%w: scope %q: %w", ErrMute, q.of.genesis.Prefix(), q.last))
	}
}

// takes takes an answer, and reports whether there are enough.
func (q *Inquiry) takes(by *scope.Anchor, a Answer) bool {
	if !q.ask.Proves() {
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

// again asks for whole answers, because enough anchors agree and none of them gave its answer whole.
func (q *Inquiry) again() {
	q.whole = true
	q.begin()
}

// differ asks again, because the answers differ. After the last try it ends the inquiry.
func (q *Inquiry) differ() {
	if q.wanting() && !q.whole {
		q.again()
		return
	}
	if q.try++; q.try == tries || q.ask.Proves() {
		q.conclude(fmt.Errorf("%w: scope %q: %w", ErrMute, q.of.genesis.Prefix(), errDiffer))
		return
	}
	if at, ok := q.all.floor(); ok && at > 0 && q.ask.At == 0 && q.ask.Pins() {
		q.ask.At, q.pinned = at, true
	}
	q.begin()
}

// Hedge handles that HedgeAfter has passed: it ends the inquiry if enough anchors agree on receipts without their
// responses, and otherwise allows one more anchor to be asked.
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

// GiveUp ends the inquiry. Its result is the answer of enough anchors if there is one, and otherwise an error that
// wraps ErrMute and why.
func (q *Inquiry) GiveUp(why error) {
	if !q.ended {
		q.conclude(fmt.Errorf("%w: scope %q: %w (%w)", ErrMute, q.of.genesis.Prefix(), q.last, why))
	}
}

// conclude ends the inquiry with the answer of enough anchors, or with err if there is none.
func (q *Inquiry) conclude(err error) {
	q.ended = true
	if q.ask.Proves() {
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
	if q.ask.Kind != AskSubmit {
		for _, id := range liars {
			q.of.met(id, 0, errDiffer)
			q.outvotes(id)
		}
	}
	q.of.heard(&said)
	if q.key != (aweigh.Hash{}) {
		q.of.keep(q.key, &said, q.began)
	}
}

// Result returns the answer of enough anchors, or why there is none, once ended is true. The answer may be that the
// scope refuses (Answer.Failure).
func (q *Inquiry) Result() (a Answer, err error, ended bool) {
	return q.said, q.err, q.ended
}

// Age returns how long ago the anchors were asked, and whether the answer is from the cache.
func (q *Inquiry) Age(now aweigh.Instant) (age time.Duration, remembered bool) {
	return max(now.Sub(q.began), 1) + q.age, q.age > 0
}

// Outvoted returns how many anchors gave another answer than the one that counts.
func (q *Inquiry) Outvoted() int { return q.outvoted }

// Pinned reports whether anchors were asked as of a revision that anchors had named.
func (q *Inquiry) Pinned() bool { return q.pinned }
