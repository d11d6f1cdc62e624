package client

import (
	"context"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Hints calls changed when nodes say that a key of [key, end), in the sense of scope.Op, has changed, until ctx ends or
// no node answers. What nodes say proves nothing: see Verified.
func (c *Client) Hints(ctx context.Context, key, end []byte, changed func()) error {
	return c.Watch(ctx, &aweighv1.WatchRequest{Key: key, RangeEnd: end}, func(w *aweighv1.WatchResponse) error {
		if !w.Created {
			changed()
		}
		return nil
	})
}
