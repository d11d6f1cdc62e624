package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/scope"
)

// Pending reports a write that was ordered and waits for approval as a motion. It
// wraps ErrPending.
type Pending struct {
	Motion []byte
	Cause  error
}

// Error implements error.
func (p *Pending) Error() string { return p.Cause.Error() }

// Unwrap gives ErrPending and the cause.
func (p *Pending) Unwrap() []error { return []error{ErrPending, p.Cause} }

// pending gives an error of a write that waits for approval its form.
func pending(err error) error {
	var f *failure
	if errors.As(err, &f) && f.kind == ErrPending {
		return &Pending{Motion: f.problem.Mutation, Cause: err}
	}
	return err
}

// Motions lists the motions that are open, and with closed the others, too.
func (c *Client) Motions(ctx context.Context, closed bool) (*aweighv1.MotionsResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Motions, &aweighv1.MotionsRequest{Closed: closed, Linearizable: true})
}

// Waiting lists the motions that are open, and those that no block has opened yet: what waits at the node that answers
// would open them.
func (c *Client) Waiting(ctx context.Context) (*aweighv1.MotionsResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Motions, &aweighv1.MotionsRequest{Waiting: true, Linearizable: true})
}

// Motion reports how a motion stands. Its ID may be cut short.
func (c *Client) Motion(ctx context.Context, id []byte) (*aweighv1.MotionResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Motion, &aweighv1.MotionRequest{Id: id, Linearizable: true})
}

// Draft reports how a motion stands that a write at the node which answers may open, without asking the quorum.
func (c *Client) Draft(ctx context.Context, id []byte) (*aweighv1.MotionResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Motion, &aweighv1.MotionRequest{Id: id})
}

// ExportMotion asks for the proof of a motion, for voters without a network. It
// comes from a node unverified: call Verify with a network identity that you trust.
func (c *Client) ExportMotion(ctx context.Context, id []byte) (*scope.MotionProof, error) {
	resp, err := read(ctx, c, aweighv1connect.NodeClient.ExportMotion, &aweighv1.MotionRequest{Id: id})
	if err != nil {
		return nil, err
	}
	return scope.DecodeMotionProof(resp.Proof)
}

// WatchMotion calls each with the state of a motion, now and whenever it changes,
// until it is closed, each fails, or ctx ends. It continues with another node if
// one goes away, until no node answers for the time patience.
func (c *Client) WatchMotion(ctx context.Context, id []byte, each func(*aweighv1.MotionResponse) error) error {
	for seen := time.Now(); ; {
		closed, err := false, error(nil)
		c.order(ctx, func(e *endpoint) bool {
			closed, err = e.watchMotion(ctx, id, func(r *aweighv1.MotionResponse) error {
				seen = time.Now()
				return each(r)
			})
			return err == nil || !elsewhere(err)
		})
		if closed || err != nil && !elsewhere(err) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if time.Since(seen) > retryFor {
			return err
		}
		if err := sleep(ctx, watchRetryDelay); err != nil {
			return err
		}
	}
}

func (e *endpoint) watchMotion(ctx context.Context, id []byte, each func(*aweighv1.MotionResponse) error) (closed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.node.WatchMotion(ctx, connect.NewRequest(&aweighv1.MotionRequest{Id: id}))
	if err != nil {
		return false, translate(err)
	}
	defer stream.Close()
	for stream.Receive() {
		closed = stream.Msg().Motion.ClosedHeight > 0
		if err := each(stream.Msg()); err != nil {
			return closed, err
		}
	}
	if err := stream.Err(); err != nil {
		err = translate(err)
		var f *failure
		if errors.As(err, &f) && f.problem == nil && ctx.Err() == nil { // the node went away
			err = fmt.Errorf("%w: it broke off: %w", ErrUnreachable, err)
		}
		return closed, err
	}
	return closed, nil
}

// Vote signs a ballot with the anchor's key of a node, which must run on this
// machine.
func (c *Client) Vote(ctx context.Context, motion []byte, choice, comment string) (*aweighv1.VoteResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Vote, &aweighv1.VoteRequest{Motion: motion, Choice: choice, Comment: comment})
}

// HandIn gives a bundle of ballots to a node. To do so again is safe.
func (c *Client) HandIn(ctx context.Context, bundle []byte) (*aweighv1.HandInResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.HandIn, &aweighv1.HandInRequest{Bundle: bundle})
}

// Withdraw ends a motion that was proposed through the node.
func (c *Client) Withdraw(ctx context.Context, motion []byte, once *aweighv1.Once) (*aweighv1.WithdrawResponse, error) {
	req := &aweighv1.WithdrawRequest{Motion: motion, Once: once}
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Withdraw, req, req.Once, fresh)
}

// Ballots gives the ballots of a node's box to each, in bundles: those of the
// identities that are wanted, or all.
func (c *Client) Ballots(ctx context.Context, want [][]byte, each func(bundle []byte) error) error {
	return c.ballots(ctx, &aweighv1.BallotsRequest{Want: want}, func() {}, func(r *aweighv1.BallotsResponse) error {
		if len(r.Bundle) == 0 {
			return nil
		}
		return each(r.Bundle)
	})
}

// Inventory is the identities of the ballots in a node's box, in order, of 32 bytes
// each.
func (c *Client) Inventory(ctx context.Context) (names []byte, err error) {
	begin := func() { names = nil } // what one node began, another does not go on with
	err = c.ballots(ctx, &aweighv1.BallotsRequest{Inventory: true}, begin, func(r *aweighv1.BallotsResponse) error {
		names = append(names, r.Names...)
		return nil
	})
	return names, err
}

func (c *Client) ballots(ctx context.Context, req *aweighv1.BallotsRequest, begin func(), each func(*aweighv1.BallotsResponse) error) (err error) {
	c.order(ctx, func(e *endpoint) bool {
		begin()
		stream, callErr := e.node.Ballots(ctx, connect.NewRequest(req))
		if callErr != nil {
			err = translate(callErr)
			return !elsewhere(err)
		}
		defer stream.Close()
		for stream.Receive() {
			if err = each(stream.Msg()); err != nil {
				return true
			}
		}
		if err = stream.Err(); err != nil && !errors.Is(err, io.EOF) {
			err = translate(err)
		}
		return err == nil || !elsewhere(err)
	})
	return err
}
