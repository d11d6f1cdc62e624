package etcd

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
)

// A watch ends when its client loses the right to it, which etcd's do not: no event is sent by a node that knows of the
// change.

// tokenLook is how often the token of a stream's client is looked at again.
const tokenLook = 2 * time.Second

// judge ends the watches that their client has no right to any more.
func (w *watchStream) judge() error {
	for _, x := range slices.Clone(w.all) {
		if _, err := w.mayStill(x); err != nil {
			return err
		}
	}
	return nil
}

// mayStill reports whether the client has the right to a watch, and ends the watch otherwise. As after a compaction,
// its number stays taken until the client cancels it.
func (w *watchStream) mayStill(x *watch) (bool, error) {
	if w.guard.Revision() == x.by.Revision {
		return true, nil
	}
	by, why := w.granted(w.ctx, true, func(r *auth.Rights) error { return r.MayRead(x.key, x.end) })
	if why == nil {
		x.by = by
		return true, nil
	}
	w.stop(x)
	return false, w.send(&etcdpb.WatchResponse{
		Header: w.header(w.newest(x.next - 1)), WatchId: x.id, Canceled: true, CancelReason: why.Error(),
	})
}

// tokenEnded reports that the token of a stream's client ended.
func tokenEnded(ctx context.Context) error {
	if r := authn.Again(ctx); r != nil {
		return status.Error(r.Code(), r.Error())
	}
	return nil
}
