package etcd

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Leases is what the API needs of a node to serve leases, besides Keys.
type Leases interface {
	Revoke(ctx context.Context, id int64, once node.Once) (machine.Receipt, error)
	KeepAlive(ctx context.Context, ids []int64) ([]int64, error)
	Lease(ctx context.Context, id int64, keys bool) (scope.Granted, [][]byte, bool, scope.Head, error)
	Clock() time.Time
}

// leaseServer implements etcd's Lease. Leases are part of the scope's state, and
// end by the blocks' time: whichever node a client talks to knows the same of them.
type leaseServer struct {
	etcdpb.UnimplementedLeaseServer
	*service
}

// LeaseGrant implements etcdpb.LeaseServer.
func (s *leaseServer) LeaseGrant(ctx context.Context, r *etcdpb.LeaseGrantRequest) (*etcdpb.LeaseGrantResponse, error) {
	id, receipt, err := s.node.Root().Grant(ctx, r.ID, r.TTL, node.Once{Caller: authn.Caller(ctx)})
	if err == nil {
		err = failure(receipt)
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	return &etcdpb.LeaseGrantResponse{Header: s.header(receipt.Revision), ID: id, TTL: max(r.TTL, scope.MinLeaseTTL)}, nil
}

// LeaseRevoke implements etcdpb.LeaseServer.
func (s *leaseServer) LeaseRevoke(ctx context.Context, r *etcdpb.LeaseRevokeRequest) (*etcdpb.LeaseRevokeResponse, error) {
	if r.ID == 0 {
		return nil, statusFor(ctx, scope.ErrLeaseNotFound)
	}
	receipt, err := s.node.Revoke(ctx, r.ID, node.Once{Caller: authn.Caller(ctx)})
	if err == nil {
		err = failure(receipt)
	}
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	return &etcdpb.LeaseRevokeResponse{Header: s.header(receipt.Revision)}, nil
}

// LeaseTimeToLive implements etcdpb.LeaseServer.
func (s *leaseServer) LeaseTimeToLive(ctx context.Context, r *etcdpb.LeaseTimeToLiveRequest) (out *etcdpb.LeaseTimeToLiveResponse, err error) {
	g, keys, ok, head, err := s.node.Lease(ctx, r.ID, r.Keys)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	out = &etcdpb.LeaseTimeToLiveResponse{Header: s.header(head.Revision), ID: r.ID, TTL: -1}
	if ok {
		left := g.Left(max(aweigh.InstantOf(s.node.Clock()), head.Time)) // its time may be ahead of the clock
		out.TTL, out.GrantedTTL, out.Keys = int64(left/time.Second), g.TTL, keys
	}
	return out, nil
}

// LeaseLeases implements etcdpb.LeaseServer. As in etcd, those that end first come
// first.
func (s *leaseServer) LeaseLeases(ctx context.Context, _ *etcdpb.LeaseLeasesRequest) (out *etcdpb.LeaseLeasesResponse, err error) {
	who, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	err = s.look(ctx, referral.Keys(), true, func(v *node.View) error {
		out = &etcdpb.LeaseLeasesResponse{Header: s.header(v.Head().Revision)}
		ids, err := v.Leases()
		for _, id := range ids {
			if who != nil {
				if err := s.guard.MayLease(ctx, who, id, who.MayRead); err != nil {
					return err
				}
			}
			out.Leases = append(out.Leases, &etcdpb.LeaseStatus{ID: id})
		}
		return err
	})
	return out, statusFor(ctx, err)
}

// LeaseKeepAlive implements etcdpb.LeaseServer. The leases for which a client asks
// while one round is on its way share the next one; answers come in the order of
// the questions.
func (s *leaseServer) LeaseKeepAlive(stream grpc.BidiStreamingServer[etcdpb.LeaseKeepAliveRequest, etcdpb.LeaseKeepAliveResponse]) error {
	ctx := stream.Context()
	asked, failed := make(chan int64, scope.MaxKeepAlives), make(chan error, 1)
	go func() {
		defer close(asked)
		for {
			r, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case asked <- r.ID:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	for {
		select {
		case id, ok := <-asked:
			if !ok {
				return ended(ctx, <-failed)
			}
			ids := []int64{id}
			for more := true; more && len(ids) < scope.MaxKeepAlives; {
				select {
				case id, more = <-asked:
					if more {
						ids = append(ids, id)
					}
				default:
					more = false
				}
			}
			if err := s.keepAlive(stream, ids); err != nil {
				return toStatus(ctx, err)
			}
		case <-s.stopping:
			return errStopped
		}
	}
}

// ended is the error of a stream whose client has closed its side.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return toStatus(ctx, err)
}

// keepAlive answers questions that came together.
func (s *leaseServer) keepAlive(stream grpc.BidiStreamingServer[etcdpb.LeaseKeepAliveRequest, etcdpb.LeaseKeepAliveResponse], ids []int64) error {
	header := s.header(s.node.Root().LastHead().Revision) // before, so that a revocation cannot be older than the answer
	all := slices.Compact(slices.Sorted(slices.Values(ids)))
	all = slices.DeleteFunc(all, func(id int64) bool { return id == 0 })
	ttls := make(map[int64]int64, len(all))
	if len(all) > 0 {
		got, err := s.node.KeepAlive(stream.Context(), all)
		if err != nil {
			return err
		}
		for i, id := range all {
			ttls[id] = got[i]
		}
	}
	for _, id := range ids {
		if err := stream.Send(&etcdpb.LeaseKeepAliveResponse{Header: header, ID: id, TTL: ttls[id]}); err != nil {
			return err
		}
	}
	return nil
}
