package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// askForeign asks an anchor of a scope for those who do not hold it; a foreignAsk follows, and a
// foreignAnswer comes back.
const askForeign = "foreign/1"

// What is asked for.
const (
	foreignLook    = 1 // what a transaction that only reads finds: a scope.Txn; a foreignLooked
	foreignResolve = 2 // what a name stands for: a foreignName; a Resolved
	foreignSubmit  = 3 // to decide on a bundle, and what became of it: the bundle; foreignReceipts
	foreignProve   = 4 // the proof of a key's newest change: the key; a scope.KeyProof
	foreignRefer   = 5 // who decides about keys that are delegated: foreignKeys; scope.Referrals
	foreignHistory = 6 // what happened to an object: a foreignPast; foreignDeeds
	foreignOutcome = 8 // what became of a mutation: its identity; a foreignReceipt, or nothing
	foreignJudge   = 7 // what the scope says to a verb: a foreignQuery; a foreignSaid
)

type foreignAsk struct {
	_      struct{} `cbor:",toarray"`
	Kind   uint8
	Newest bool  // as new as all that was acknowledged before
	At     int64 // as of this revision; 0: the newest there
	Body   []byte
}

type foreignAnswer struct {
	_        struct{}     `cbor:",toarray"`
	Epoch    aweigh.Epoch // in which the scope is
	Height   aweigh.Height
	Time     aweigh.Instant // of the block at Height
	Revision int64          // up to which the scope is closed there
	Failure  string         // scope.FailureIn; "" if there is none
	Body     []byte
}

type foreignKeys struct {
	_      struct{} `cbor:",toarray"`
	Ranges []foreignRange
}

type foreignRange struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
}

// manner is how an anchor answers.
type manner struct {
	took  time.Duration // smoothed
	fails int           // in a row
}

// foreignHedge is how long an anchor has to answer before one more is asked.
const foreignHedge = 150 * time.Millisecond

// answered is an anchor's answer, or why there is none.
type answered struct {
	anchor *scope.Anchor
	foreignAnswer
	err error
}

// errNewEpoch means that the scope went on to another epoch while it was asked.
var errNewEpoch = errors.New("node: the scope began another epoch")

// ErrMute means that too few anchors of a scope answered, or answered alike.
var ErrMute = errors.New("node: too few anchors of a scope that this node does not hold answered alike in time; it may lack a quorum (a serializable read may be answered all the same)")

// errDiffer is why, where they answered.
var errDiffer = errors.New("they say different things")

// request asks one peer something of the scope.
func (f *foreign) request(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(f.address, []byte(what), canon.Encode(content))
	return f.of.host.Request(ctx, p, req, most)
}

// asking is one question to a scope's anchors.
type asking struct {
	foreignAsk
	begin func(*scope.Epoch)                // with the epoch in which it is asked; again if there is another
	hear  func(*scope.Epoch, answered) bool // takes an answer, and reports whether it has enough
	ripe  func() bool                       // it has enough if nothing better comes soon; nil: it has not
}

// ask asks anchors, as many at once as have more weight than may lie and one more
// whenever one takes long or fails, until there is enough. It begins again where the scope
// goes on to another epoch.
func (f *foreign) ask(ctx context.Context, q asking) error {
	ctx, cancel := f.of.deadline(ctx)
	defer cancel()
	f.use()
	for {
		e := f.known()
		q.begin(e)
		err := f.askIn(ctx, e, q)
		if !errors.Is(err, errNewEpoch) {
			return err
		}
	}
}

func (f *foreign) askIn(ctx context.Context, e *scope.Epoch, q asking) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	order := f.order(e)
	answers := make(chan answered, len(order))
	total := e.Roster.Weights.Total()
	budget := e.Policy.Rules.Mode.FaultBudget(total)
	asked, out, weight, heard := 0, 0, uint64(0), uint64(0)
	more := func() {
		if asked < len(order) {
			a := order[asked]
			asked, out, weight = asked+1, out+1, weight+e.Roster.Weights.Of(a.Key.ID())
			go func() { answers <- f.askOne(ctx, e, a, q.foreignAsk) }()
		}
	}
	for weight <= budget && asked < len(order) {
		more()
	}
	hedge := time.NewTicker(foreignHedge)
	defer hedge.Stop()
	last := errors.New("nobody answered")
	for out > 0 {
		select {
		case a := <-answers:
			out--
			switch {
			case errors.Is(a.err, errNewEpoch):
				return errNewEpoch
			case a.err != nil:
				last = fmt.Errorf("%s: %w", a.anchor.Name, a.err)
				more()
				continue
			case q.hear(e, a):
				return nil
			}
			if heard += e.Roster.Weights.Of(a.anchor.Key.ID()); heard >= total-budget && q.Kind != foreignSubmit {
				return fmt.Errorf("%w: scope %q: %w", ErrMute, f.genesis.Prefix(), errDiffer)
			}
			if out == 0 {
				more()
			}
		case <-hedge.C:
			if q.ripe != nil && q.ripe() {
				return nil
			}
			more()
		case <-ctx.Done():
			return fmt.Errorf("%w: scope %q: %w (%w)", ErrMute, f.genesis.Prefix(), last, ctx.Err())
		}
	}
	return fmt.Errorf("%w: scope %q: %w", ErrMute, f.genesis.Prefix(), last)
}

// askOne asks one anchor, once it is connected. errNewEpoch says that it proved another
// epoch.
func (f *foreign) askOne(ctx context.Context, e *scope.Epoch, a *scope.Anchor, ask foreignAsk) answered {
	begin := time.Now()
	out := answered{anchor: a}
	out.err = func() error {
		id, err := f.of.called.id(Peer(a.Peer))
		if err != nil {
			return err
		}
		raw, err := f.request(ctx, id, askForeign, ask, maxPart)
		for errors.Is(err, p2p.ErrNotConnected) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(connectEvery):
			}
			raw, err = f.request(ctx, id, askForeign, ask, maxPart)
		}
		if err == nil {
			err = canon.Decode(raw, &out.foreignAnswer)
		}
		if err != nil {
			return err
		}
		switch {
		case out.Epoch > e.Number:
			if err := f.settle(ctx, id, out.Epoch); err != nil {
				return err
			}
			return errNewEpoch
		case out.Epoch < e.Number:
			return fmt.Errorf("it is in epoch %d, and the scope in %d", out.Epoch, e.Number)
		}
		return nil
	}()
	f.noteManner(a.Key.ID(), time.Since(begin), out.err)
	return out
}

// connectEvery is how often it is looked whether an anchor is connected.
const connectEvery = 20 * time.Millisecond

func (f *foreign) noteManner(id aweigh.AnchorID, took time.Duration, err error) {
	late := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if late && took < foreignHedge {
		return // others were faster
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.seen[id]
	switch {
	case late: // it may be dead
		m.took = max(m.took, took)
	case errors.Is(err, errNewEpoch):
	case err != nil:
		m.fails++
	case m.fails > 0 || m.took == 0:
		m.fails, m.took = 0, took
	default:
		m.took += (took - m.took) / 8
	}
	f.seen[id] = m
}

// outvoted notes that an anchor said what others did not.
func (f *foreign) outvoted(id aweigh.AnchorID) { f.noteManner(id, 0, errDiffer) }

// order is whom to ask first: those with weight that failed least and answered fastest,
// those never asked before the slow ones.
func (f *foreign) order(e *scope.Epoch) (all []*scope.Anchor) {
	for i := range e.Roster.Anchors {
		if a := &e.Roster.Anchors[i]; e.Roster.Weights.Of(a.Key.ID()) > 0 {
			all = append(all, a)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rank := func(a *scope.Anchor) time.Duration {
		m := f.seen[a.Key.ID()]
		return m.took + time.Duration(min(m.fails, 16))*time.Second
	}
	slices.SortStableFunc(all, func(a, b *scope.Anchor) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// first asks anchors until check takes what one says: for what proves itself.
func (f *foreign) first(ctx context.Context, ask foreignAsk, check func(e *scope.Epoch, body []byte) error) error {
	var bad error
	err := f.ask(ctx, asking{
		foreignAsk: ask,
		begin:      func(*scope.Epoch) { bad = nil },
		hear: func(e *scope.Epoch, a answered) bool {
			err := scope.Failure(a.Failure)
			if err == nil {
				if err = check(e, a.Body); err != nil { // no honest anchor says so
					f.outvoted(a.anchor.Key.ID())
				}
			}
			if bad == nil || err == nil {
				bad = err
			}
			return err == nil
		},
	})
	if err != nil && bad != nil {
		return bad
	}
	return err
}

// agree asks for what anchors must say alike. What they say as of different moments may
// differ because it changes. Then they are asked once more: as of one moment that is late
// enough if it can be said what was then, and else in the hope of a quieter one.
func (f *foreign) agree(ctx context.Context, ask foreignAsk) (said answered, err error) {
	key := aweigh.Sum([]byte("aweigh/foreign/1"), canon.Encode(ask))
	cacheable := !ask.Newest && ask.Kind != foreignSubmit
	if said, ok := f.cached(key); ok && cacheable {
		return said, nil
	}
	asked := ask.At
	for try := 1; ; try++ {
		x := f.discuss(ask)
		x.pinned = ask.At != asked
		err := f.ask(ctx, x.asking)
		if said, ok := x.outcome(); ok {
			if cacheable {
				f.keep(key, said)
			}
			f.heard(said)
			return said, nil
		}
		if try == foreignTries || ask.Kind == foreignSubmit || !errors.Is(err, errDiffer) {
			return answered{}, err
		}
		if at, ok := x.all.floor(); ok && at > 0 && ask.At == 0 && ask.Kind == foreignLook {
			ask.At = at
		}
	}
}

// foreignTries is how often anchors are asked that say different things.
const foreignTries = 4

// discussion is what anchors say to one question.
type discussion struct {
	asking
	of     *foreign
	pinned bool       // to a revision that anchors named, and not the one who asks
	least  int64      // a revision below which an answer is not as new as was asked for
	all    *agreement // of what they say
	bare   *agreement // of receipts alone: an anchor may have lost the responses
	said   map[aweigh.Hash][]answered
}

func (f *foreign) discuss(ask foreignAsk) *discussion {
	x := &discussion{of: f, least: f.genesis.Descent.Revision}
	if ask.Newest {
		f.mu.Lock()
		x.least = max(x.least, f.newest)
		f.mu.Unlock()
	}
	x.asking = asking{foreignAsk: ask, begin: x.begin, hear: x.hear, ripe: func() bool { _, _, ok := x.bare.agreed(); return ok }}
	return x
}

func (x *discussion) begin(e *scope.Epoch) {
	x.all, x.bare = newAgreement(e.Roster.Weights, e.Policy.Rules.Mode), newAgreement(e.Roster.Weights, e.Policy.Rules.Mode)
	x.said = make(map[aweigh.Hash][]answered)
}

func (x *discussion) hear(_ *scope.Epoch, a answered) bool {
	behind := x.At == 0 && a.Revision < x.least || x.pinned && scope.Failure(a.Failure) == scope.ErrFutureRevision
	if behind && x.Kind != foreignSubmit {
		return false
	}
	x.take(x.all, a)
	if x.Kind == foreignSubmit {
		a.Body = bareReceipts(a.Body)
		x.take(x.bare, a)
	}
	_, _, ok := x.all.agreed()
	return ok
}

func (x *discussion) take(to *agreement, a answered) {
	sum := aweigh.Sum([]byte(a.Failure), []byte{0}, a.Body)
	to.hear(word{anchor: a.anchor.Key.ID(), sum: sum, revision: a.Revision})
	x.said[sum] = append(x.said[sum], a)
}

// outcome is what enough of them said, as of a moment that one of them named and no later
// than that of an honest one.
func (x *discussion) outcome() (a answered, ok bool) {
	sum, revision, ok := x.all.agreed()
	if !ok {
		sum, revision, ok = x.bare.agreed()
	}
	var most uint64
	for _, said := range x.said[sum] {
		if !ok || said.Revision != revision {
			continue
		}
		var weight uint64 // of those who say that it was so in the same block
		for _, other := range x.said[sum] {
			if other.Height == said.Height && other.Time == said.Time {
				weight += x.all.weights.Of(other.anchor.Key.ID())
			}
		}
		if weight > most || weight == most && said.Height < a.Height {
			a, most = said, weight
		}
	}
	for other, all := range x.said { // order-free: each is noted
		if ok && other != sum && x.Kind != foreignSubmit {
			for i := range all {
				x.of.outvoted(all[i].anchor.Key.ID())
			}
		}
	}
	return a, ok
}
