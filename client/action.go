package client

import (
	"context"
	"errors"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Act carries out a verb on the object of a key. A missing or incomplete Once is filled
// in. The error wraps ErrDenied if a scope's policy does not allow the node to do it.
func (c *Client) Act(ctx context.Context, req *aweighv1.ActRequest) (*aweighv1.ActResponse, error) {
	fresh := fill(&req.Once)
	return write(ctx, c, aweighv1connect.NodeClient.Act, req, req.Once, fresh)
}

// Judge reports whether scopes would allow a verb.
func (c *Client) Judge(ctx context.Context, req *aweighv1.JudgeRequest) (*aweighv1.JudgeResponse, error) {
	return read(ctx, c, aweighv1connect.NodeClient.Judge, req)
}

// Signals gives each the signals to a key or a range of keys, and first a response that
// confirms the watch, until each fails or ctx ends. When the node goes away the error
// wraps ErrUnreachable: signals sent meanwhile are lost.
func (c *Client) Signals(ctx context.Context, req *aweighv1.SignalsRequest, each func(*aweighv1.SignalsResponse) error) (err error) {
	c.order(ctx, func(e *endpoint) bool {
		begun := false
		err = e.signals(ctx, req, func(x *aweighv1.SignalsResponse) error {
			begun = true
			return each(x)
		})
		return begun || !errors.Is(err, ErrUnreachable)
	})
	return errors.Join(err, ctx.Err())
}

func (e *endpoint) signals(ctx context.Context, req *aweighv1.SignalsRequest, each func(*aweighv1.SignalsResponse) error) error {
	err, stop := receive(ctx, e, aweighv1connect.NodeClient.Signals, req, each)
	if stop != nil {
		return stop
	}
	if err != nil {
		err = translate(err)
	}
	var f *failure
	if ctx.Err() == nil && (err == nil || errors.As(err, &f) && f.problem == nil) {
		err = fmt.Errorf("%w: it broke off; what was signalled meanwhile is lost", ErrUnreachable)
	}
	return err
}
