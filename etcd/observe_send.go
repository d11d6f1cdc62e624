package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// observerSlow is how long an observer may take nothing. Meanwhile what is read for it takes room of other watches.
const observerSlow = 10 * time.Second

var errObserverSlow = status.Error(codes.ResourceExhausted, "etcdserver: the observer takes nothing")

// sender sends in a goroutine of its own until ctx ends, so that an observer that takes nothing is given up after slow.
// An error of send cancels ctx.
func sender(ctx context.Context, cancel context.CancelCauseFunc, send func(*etcdpb.LeaderResponse) error, slow time.Duration) (
	tell func(*etcdpb.LeaderResponse) error) {
	next := make(chan *etcdpb.LeaderResponse)
	go func() {
		for {
			select {
			case r := <-next:
				if err := send(r); err != nil {
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func(r *etcdpb.LeaderResponse) error {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case next <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errObserverSlow
		}
	}
}

// attend cancels ctx when the server stops, and when its client goes or its token ends.
func (s *service) attend(ctx context.Context, cancel context.CancelCauseFunc) {
	look := time.NewTicker(tokenLook)
	defer look.Stop()
	for {
		err := s.waitForChange(ctx, nil, look.C)
		if err == nil {
			err = tokenEnded(ctx)
		}
		if err != nil {
			cancel(err)
			return
		}
	}
}
