package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// validity is how long a write may wait for a quorum unless its Once sets it.
const validity = time.Minute

// The pause before a write is repeated, which doubles from one to the other.
const (
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = time.Second
	// watchRetryDelay is the pause before a watch that was cut off is begun again.
	watchRetryDelay = maxRetryDelay / 4
	// busyTries bounds how often a node that is busy is asked again.
	busyTries = 6
)

// NewOnce fills in empty fields: a random nonce, and a minute to become final.
func NewOnce(o *aweighv1.Once) *aweighv1.Once {
	once := &aweighv1.Once{Nonce: o.GetNonce(), ValidUntilNs: o.GetValidUntilNs(), Justification: o.GetJustification(), Patient: o.GetPatient()}
	if len(once.Nonce) == 0 {
		once.Nonce = make([]byte, 16)
		rand.Read(once.Nonce)
	}
	if once.ValidUntilNs == 0 {
		once.ValidUntilNs = time.Now().Add(validity).UnixNano()
	}
	return once
}

// fill fills in empty fields. The request is fresh if its nonce was drawn here: no node has seen it.
func fill(o **aweighv1.Once) (fresh bool) {
	fresh = len((*o).GetNonce()) == 0
	*o = NewOnce(*o)
	return fresh
}

// redate renews a fresh request that was refused because its time is over by that of the scope but not by this clock:
// it lasts as long from the scope's time as it was to last from now. A scope's time can be ahead of all clocks for a
// while.
func redate(err error, once *aweighv1.Once) bool {
	var f *failure
	if !errors.As(err, &f) || f.problem == nil || f.problem.Reason != "expired" || f.problem.ValidUntilNs < once.ValidUntilNs {
		return false
	}
	left := time.Duration(once.ValidUntilNs - time.Now().UnixNano())
	if left <= 0 { // it is over by this clock, too
		return false
	}
	once.ValidUntilNs = f.problem.ValidUntilNs + int64(max(left, time.Second))
	return true
}

// mayBeOrdered reports whether a repeated request, which is refused because its time is over by the clock of a node,
// may have been ordered: in a block of a time before that, which becomes final later.
func mayBeOrdered(err error, once *aweighv1.Once) bool {
	var f *failure
	return errors.As(err, &f) && f.problem != nil && f.problem.Reason == "expired" && f.problem.ValidUntilNs <= once.ValidUntilNs
}

// write makes a request that changes something, at most once. While nothing
// has been sent the nodes are tried in turn; then the one that may have taken
// the request is asked, again and again until it answers, ctx ends, or it stays
// away for patience.
func write[Req, Resp any](ctx context.Context, c *Client, ask method[Req, Resp], req *Req, once *aweighv1.Once, fresh bool) (resp *Resp, err error) {
	var taker *endpoint
	var failed []error
	for try, pause := 0, minRetryDelay; ; try, pause = try+1, min(2*pause, maxRetryDelay) {
		failed = failed[:0]
		c.order(ctx, func(e *endpoint) bool {
			resp, err = ask.at(ctx, e, req)
			if fresh && err != nil && redate(err, once) {
				resp, err = ask.at(ctx, e, req)
			}
			if err != nil && notTaken(err) {
				failed = append(failed, fmt.Errorf("%s: %w", e.address, err))
				return false
			}
			taker = e
			return true
		})
		if taker != nil || !errors.Is(errors.Join(failed...), ErrBusy) || try == busyTries || sleep(ctx, pause) != nil {
			break
		}
	}
	if taker == nil {
		return nil, errors.Join(failed...)
	}
	for pause, since := minRetryDelay, time.Now(); unknown(err) && ctx.Err() == nil && time.Since(since) < retryFor; pause = min(2*pause, maxRetryDelay) {
		if sleep(ctx, pause) != nil {
			break
		}
		var again error
		if resp, again = ask.at(ctx, taker, req); again == nil || !notTaken(again) {
			err = again
		}
	}
	if err != nil && !fresh && mayBeOrdered(err, once) {
		return nil, &Undecided{
			Once: once, Node: taker.address, Cause: taker.named(err), ValidUntil: time.Unix(0, once.ValidUntilNs),
		}
	}
	return resp, undecided(taker.named(err), once, taker)
}

// retryFor is how long a node that broke off a write is waited for.
const retryFor = 5 * time.Second

// undecided gives an error that leaves the outcome open its form.
func undecided(err error, once *aweighv1.Once, taker *endpoint) error {
	if err == nil || !errors.Is(err, ErrUndecided) && !unknown(err) {
		return pending(err)
	}
	u := &Undecided{Once: once, Node: taker.address, Cause: err, ValidUntil: time.Unix(0, once.ValidUntilNs)}
	var f *failure
	if errors.As(err, &f) && f.problem != nil {
		u.Mutation = f.problem.Mutation
		if at := f.problem.ValidUntilNs; at != 0 { // a node that stops does not send it
			u.ValidUntil = time.Unix(0, at)
		}
	}
	return u
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Put sets one key. A Once that is missing, or incomplete, is filled in.
func (c *Client) Put(ctx context.Context, req *aweighv1.PutRequest) (*aweighv1.PutResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Put, req, req.Once, fresh)
}

// Delete removes keys. A Once that is missing, or incomplete, is filled in.
func (c *Client) Delete(ctx context.Context, req *aweighv1.DeleteRequest) (*aweighv1.DeleteResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Delete, req, req.Once, fresh)
}

// Txn compares and changes several keys, all or none. A missing or incomplete
// Once is filled in. If a request had to be repeated after it had become final,
// the answer holds no responses.
func (c *Client) Txn(ctx context.Context, req *aweighv1.TxnRequest) (*aweighv1.TxnResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Txn, req, req.Once, fresh)
}

// Compact drops the content of revisions below one. A Once that is missing, or
// incomplete, is filled in.
func (c *Client) Compact(ctx context.Context, req *aweighv1.CompactRequest) (*aweighv1.CompactResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Compact, req, req.Once, fresh)
}
