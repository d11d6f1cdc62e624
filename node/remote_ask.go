package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// askForeign asks an anchor of a scope a question for a node that does not hold the scope. A referral.Question
// follows, and a referral.Answer is returned.
const askForeign = "foreign/1"

// request sends one peer a request about the scope.
func (f *remoteScope) request(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(f.address, []byte(what), canon.Encode(content))
	return f.of.host.Request(ctx, p, req, most)
}

// answered is the outcome of asking one anchor.
type answered struct {
	referral.Query
	referral.Answer
	took time.Duration
	err  error
}

// ask carries out an inquiry. If answers are proofs, check verifies them, and is called for one answer after another:
// the last one that it accepts counts.
func (f *remoteScope) ask(ctx context.Context, ask referral.Question, check func(body []byte) error) (referral.Answer, error) {
	ctx, cancel := f.of.root.deadline(ctx)
	defer cancel()
	f.use()
	a, err := f.inquire(ctx, ask, check)
	// It may have another government.
	if (errors.Is(err, referral.ErrMute) || errors.Is(err, scope.ErrNoReader)) && ctx.Err() == nil && f.catchUp(ctx) {
		again, second := f.inquire(ctx, ask, check)
		if ask.Kind == referral.AskSubmit && errors.Is(err, referral.ErrMute) && errors.Is(second, scope.ErrDenied) {
			return a, err // an anchor of the first inquiry may have taken it
		}
		return again, second
	}
	return a, err
}

// silence is how long no anchor may answer before other peers are asked for the scope's present government.
const silence = 4 * referral.HedgeAfter

func (f *remoteScope) inquire(ctx context.Context, ask referral.Question, check func(body []byte) error) (referral.Answer, error) {
	asking, stop := context.WithCancel(ctx) // for requests that are still open in the end
	defer stop()
	f.mu.Lock()
	q := f.knows.Inquire(ask, f.of.root.runner.now())
	f.mu.Unlock()
	hedge := time.NewTicker(referral.HedgeAfter)
	defer hedge.Stop()
	answers, moved := make(chan answered), make(chan struct{}, 1)
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		f.mu.Lock()
		for x, ok := q.Next(); ok; x, ok = q.Next() {
			f.of.tasks.start("asking an anchor", func(context.Context) { f.put(asking, q, x, answers) })
		}
		a, err, ended := q.Result()
		if ended && err == nil && !ask.Proves() {
			f.knows.StoodAt(&a, f.of.root.runner.now())
		}
		if ended {
			record(ctx, f.genesis.Prefix(), q)
			age, remembered := q.Age(f.of.root.runner.now())
			noteAge(ctx, age, remembered)
		}
		f.mu.Unlock()
		if ended {
			return a, err
		}
		select {
		case <-moved:
			f.mu.Lock()
			q.Renew()
			f.mu.Unlock()
		case a := <-answers:
			if quiet.Stop(); a.err == nil && a.Failure == "" && check != nil {
				if err := check(a.Body); err != nil { // no honest anchor answers that
					a.err = fmt.Errorf("%w: %w", scope.ErrProof, err)
				}
			}
			f.mu.Lock()
			q.Hear(a.Query, a.took, a.Answer, a.err)
			f.mu.Unlock()
		case <-quiet.C:
			f.of.tasks.start("asking for a government", func(context.Context) {
				if f.catchUp(asking) {
					moved <- struct{}{}
				}
			})
		case <-hedge.C:
			f.mu.Lock()
			q.Hedge()
			f.mu.Unlock()
		case <-ctx.Done():
			f.mu.Lock()
			q.GiveUp(ctx.Err())
			f.mu.Unlock()
		case <-f.of.tasks.ctx.Done(): // no question is under way any more, or will be
			f.mu.Lock()
			q.GiveUp(ErrStopped)
			f.mu.Unlock()
		}
	}
}

// put asks one anchor for an inquiry, and makes it prove another epoch. If other anchors were faster, or the time was
// over, it notes only that.
func (f *remoteScope) put(ctx context.Context, q *referral.Inquiry, x referral.Query, answers chan<- answered) {
	begin := time.Now()
	a, err := f.askOne(ctx, x)
	took := time.Since(begin)
	if ctx.Err() == nil {
		select {
		case answers <- answered{x, a, took, err}:
			return
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	q.Hear(x, took, referral.Answer{}, referral.ErrOutrun)
}

func (f *remoteScope) askOne(ctx context.Context, x referral.Query) (a referral.Answer, err error) {
	id, err := f.of.called.id(machine.Peer(x.Anchor.Peer))
	if err != nil {
		return a, err
	}
	raw, err := f.request(ctx, id, askForeign, x.Ask, maxPart)
	for errors.Is(err, p2p.ErrNotConnected) {
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(connectEvery):
		}
		raw, err = f.request(ctx, id, askForeign, x.Ask, maxPart)
	}
	if err == nil {
		err = canon.Decode(raw, &a)
	}
	if err == nil && a.Epoch > f.known().Number {
		err = f.settle(ctx, id, a.Epoch)
	}
	return a, err
}

// connectEvery is how often the node checks whether an anchor is connected.
const connectEvery = 20 * time.Millisecond
