package client

import (
	"context"
	"errors"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Tail calls each for every page of the entries of a scope's history, in order: to the end of the history or, with
// req.Follow, until ctx ends. It returns the error of each. It asks the nodes in turn until one begins; if that one
// goes away, the error wraps ErrUnreachable, and a request from the last page's Next on goes on after it.
func (c *Client) Tail(ctx context.Context, req *aweighv1.TailRequest, each func(*aweighv1.TailResponse) error) error {
	var err error
	c.order(ctx, func(e *endpoint) bool {
		began := false
		ended, stopped := receive(ctx, e, aweighv1connect.NodeClient.Tail, req, func(r *aweighv1.TailResponse) error {
			began = true
			return each(r)
		})
		switch {
		case stopped != nil:
			err = stopped
		case ended != nil && ctx.Err() != nil:
			err = ctx.Err()
		case ended != nil:
			err = e.named(translate(ended))
		case req.Follow && ctx.Err() == nil:
			err = fmt.Errorf("%w: it ended the history that it was to follow", ErrUnreachable)
		default:
			err = nil
		}
		return began || err == nil || !elsewhere(err) && !errors.Is(err, ErrUnreachable)
	})
	return err
}
