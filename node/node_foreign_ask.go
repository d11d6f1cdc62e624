package node

import (
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

// ErrMute means that too few anchors answered.
var ErrMute = errors.New("node: too few anchors of a scope that this node does not hold answered alike")

// request asks one peer something of the scope.
func (f *foreign) request(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(f.address, []byte(what), canon.Encode(content))
	return f.of.host.Request(ctx, p, req, most)
}

// ask asks anchors, as many at once as have more weight than may lie and one more
// whenever one takes long or fails, until hear has enough. It begins again where the scope
// goes on to another epoch.
func (f *foreign) ask(ctx context.Context, ask foreignAsk, begin func(*scope.Epoch), hear func(*scope.Epoch, answered) (enough bool)) error {
	ctx, cancel := f.of.deadline(ctx)
	defer cancel()
	f.use()
	for {
		e := f.known()
		begin(e)
		err := f.askIn(ctx, e, ask, hear)
		if !errors.Is(err, errNewEpoch) {
			return err
		}
	}
}

func (f *foreign) askIn(ctx context.Context, e *scope.Epoch, ask foreignAsk, hear func(*scope.Epoch, answered) (enough bool)) error {
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
			go func() { answers <- f.askOne(ctx, a, ask) }()
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
			if a.err == nil && a.Epoch > e.Number {
				id, _ := f.of.called.id(Peer(a.anchor.Peer))
				if a.err = f.settle(ctx, id, a.Epoch); a.err == nil {
					return errNewEpoch
				}
			}
			if a.err == nil && a.Epoch < e.Number {
				a.err = fmt.Errorf("it is in epoch %d, and the scope in %d", a.Epoch, e.Number)
			}
			if a.err != nil {
				last = fmt.Errorf("%s: %w", a.anchor.Name, a.err)
				more()
				continue
			}
			if hear(e, a) {
				return nil
			}
			if heard += e.Roster.Weights.Of(a.anchor.Key.ID()); heard >= total-budget && ask.Kind != foreignSubmit {
				return fmt.Errorf("%w: scope %q: %w", ErrMute, f.genesis.Prefix(), errors.New("they say different things"))
			}
			if out == 0 {
				more()
			}
		case <-hedge.C:
			more()
		case <-ctx.Done():
			return fmt.Errorf("%w: scope %q: %w (%w)", ErrMute, f.genesis.Prefix(), last, ctx.Err())
		}
	}
	return fmt.Errorf("%w: scope %q: %w", ErrMute, f.genesis.Prefix(), last)
}

// askOne asks one anchor, once it is connected.
func (f *foreign) askOne(ctx context.Context, a *scope.Anchor, ask foreignAsk) answered {
	out := answered{anchor: a}
	id, err := f.of.called.id(Peer(a.Peer))
	if err != nil {
		out.err = err
		return out
	}
	begin := time.Now()
	var raw []byte
	for {
		raw, err = f.request(ctx, id, askForeign, ask, maxPart)
		if !errors.Is(err, p2p.ErrNotConnected) {
			break
		}
		select {
		case <-ctx.Done():
			out.err = err
			return out
		case <-time.After(connectEvery):
		}
	}
	if err == nil {
		err = canon.Decode(raw, &out.foreignAnswer)
	}
	out.err = err
	f.noteManner(a.Key.ID(), time.Since(begin), err)
	return out
}

// connectEvery is how often it is looked whether an anchor is connected.
const connectEvery = 20 * time.Millisecond

func (f *foreign) noteManner(id aweigh.AnchorID, took time.Duration, err error) {
	if errors.Is(err, context.Canceled) {
		return // others were faster
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.seen[id]
	if err != nil {
		m.fails++
	} else if m.fails = 0; m.took == 0 {
		m.took = took
	} else {
		m.took += (took - m.took) / 8
	}
	f.seen[id] = m
}

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
	slices.SortStableFunc(all, func(a, b *scope.Anchor) int { return int(rank(a) - rank(b)) })
	return all
}

// first asks anchors one by one, as it were, until check takes what one says: for what
// proves itself.
func (f *foreign) first(ctx context.Context, ask foreignAsk, check func(e *scope.Epoch, body []byte) error) error {
	var bad error
	err := f.ask(ctx, ask, func(*scope.Epoch) { bad = nil }, func(e *scope.Epoch, a answered) bool {
		if bad = scope.Failure(a.Failure); bad == nil {
			bad = check(e, a.Body)
		}
		if bad != nil {
			f.of.log.Debug("an answer of a scope that is not held here does not hold", "scope", string(f.genesis.Prefix()), "anchor", a.anchor.Name, "error", bad)
		}
		return bad == nil
	})
	if err != nil && bad != nil {
		return bad
	}
	return err
}

// agree asks for what anchors must say alike. What they say as of different moments may
// differ because it changes; then they are asked once more, as of one that is late enough.
func (f *foreign) agree(ctx context.Context, ask foreignAsk) (said answered, err error) {
	key := aweigh.Sum([]byte("aweigh/foreign/1"), canon.Encode(ask))
	if !ask.Newest && ask.Kind != foreignSubmit {
		if said, ok := f.cached(key); ok {
			return said, nil
		}
	}
	for {
		var all, bare *agreement // of bare receipts: an anchor may have lost the responses
		var said map[aweigh.Hash]answered
		hear := func(to *agreement, a answered) {
			sum := aweigh.Sum([]byte(a.Failure), []byte{0}, a.Body)
			to.hear(word{anchor: a.anchor.Key.ID(), sum: sum, revision: a.Revision})
			if old, ok := said[sum]; !ok || a.Height < old.Height { // what it is as of at least
				said[sum] = a
			}
		}
		err := f.ask(ctx, ask, func(e *scope.Epoch) {
			all, bare = newAgreement(e.Roster.Weights, e.Policy.Rules.Mode), newAgreement(e.Roster.Weights, e.Policy.Rules.Mode)
			said = make(map[aweigh.Hash]answered)
		}, func(_ *scope.Epoch, a answered) bool {
			hear(all, a)
			if ask.Kind == foreignSubmit {
				a.Body = bareReceipts(a.Body)
				hear(bare, a)
			}
			_, _, ok := all.agreed()
			return ok
		})
		sum, revision, ok := all.agreed()
		if !ok {
			sum, revision, ok = bare.agreed()
		}
		if ok {
			a := said[sum]
			a.Revision = revision
			f.keep(key, a)
			return a, nil
		}
		at, ok := all.floor()
		if !ok || ask.At != 0 || ask.Kind == foreignSubmit || ctx.Err() != nil {
			return answered{}, err
		}
		ask.At, ask.Newest = at, false
	}
}
