package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// askForeign asks an anchor of a scope for those who do not hold it; a ForeignAsk follows, and a
// ForeignAnswer comes back.
const askForeign = "foreign/1"

// request asks one peer something of the scope.
func (f *foreign) request(ctx context.Context, p peer.ID, what string, content any, most int) ([]byte, error) {
	req := slices.Concat(f.address, []byte(what), canon.Encode(content))
	return f.of.host.Request(ctx, p, req, most)
}

// answered is what came of asking one anchor.
type answered struct {
	Query
	ForeignAnswer
	took time.Duration
	err  error
}

// ask carries out an inquiry. What proves itself does so to check, which is called for one
// answer after another: the last one that it took is the one that counts.
func (f *foreign) ask(ctx context.Context, ask ForeignAsk, check func(body []byte) error) (ForeignAnswer, error) {
	ctx, cancel := f.of.deadline(ctx)
	defer cancel()
	f.use()
	a, err := f.inquire(ctx, ask, check)
	if errors.Is(err, ErrMute) && ctx.Err() == nil && f.catchUp(ctx) { // others govern it by now
		return f.inquire(ctx, ask, check)
	}
	return a, err
}

// silence is for how long nobody may answer before others are asked who governs the scope by now.
const silence = 4 * ForeignHedge

func (f *foreign) inquire(ctx context.Context, ask ForeignAsk, check func(body []byte) error) (ForeignAnswer, error) {
	asking, stop := context.WithCancel(ctx) // whoever is still asked in the end
	defer stop()
	f.mu.Lock()
	q := f.knows.Inquire(ask, f.of.runner.now())
	f.mu.Unlock()
	hedge := time.NewTicker(ForeignHedge)
	defer hedge.Stop()
	answers, moved := make(chan answered), make(chan struct{}, 1)
	quiet := time.AfterFunc(silence, func() {
		if f.catchUp(asking) {
			moved <- struct{}{}
		}
	})
	defer quiet.Stop()
	for {
		f.mu.Lock()
		for x, ok := q.Next(); ok; x, ok = q.Next() {
			go f.put(asking, q, x, answers)
		}
		a, err, ended := q.Result()
		if ended && err == nil && !ask.proves() {
			f.knows.stood(&a, f.of.runner.now())
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
				if err := check(a.Body); err != nil { // no honest anchor says so
					a.err = fmt.Errorf("%w: %w", scope.ErrProof, err)
				}
			}
			f.mu.Lock()
			q.Hear(a.Query, a.took, a.ForeignAnswer, a.err)
			f.mu.Unlock()
		case <-hedge.C:
			f.mu.Lock()
			q.Hedge()
			f.mu.Unlock()
		case <-ctx.Done():
			f.mu.Lock()
			q.GiveUp(ctx.Err())
			f.mu.Unlock()
		}
	}
}

// put asks one anchor for an inquiry, and has it prove another epoch. Where others were
// faster, or the time was over, only that is noted.
func (f *foreign) put(ctx context.Context, q *Inquiry, x Query, answers chan<- answered) {
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
	q.Hear(x, took, ForeignAnswer{}, ErrOutrun)
}

func (f *foreign) askOne(ctx context.Context, x Query) (a ForeignAnswer, err error) {
	id, err := f.of.called.id(Peer(x.Anchor.Peer))
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

// connectEvery is how often it is looked whether an anchor is connected.
const connectEvery = 20 * time.Millisecond
