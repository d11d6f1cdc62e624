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
func sender(ctx context.Context, send func(*etcdpb.LeaderResponse) error, slow time.Duration) func(*etcdpb.LeaderResponse) error {
	next, failed := make(chan *etcdpb.LeaderResponse), make(chan error, 1)
	go func() {
		for {
			select {
			case r := <-next:
				if err := send(r); err != nil {
					failed <- err
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
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errObserverSlow
		}
	}
}
