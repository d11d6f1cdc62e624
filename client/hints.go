package client

import (
	"context"
	"math/rand/v2"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Hints calls changed when a node says that a key of [key, end), in the sense of scope.Op, has changed, and when it
// begins to listen, until ctx ends or the node goes away. What it says proves nothing: see Verified. Each call takes
// any of the nodes, and none comes first because it answered.
func (c *Client) Hints(ctx context.Context, key, end []byte, changed func()) error {
	e := c.endpoints[rand.IntN(len(c.endpoints))]
	return e.watch(ctx, &aweighv1.WatchRequest{Key: key, RangeEnd: end}, func(*aweighv1.WatchResponse) error {
		changed()
		return nil
	})
}
