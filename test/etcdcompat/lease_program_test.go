package etcdcompat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// leaseStep is one thing that a program does with leases. Exactly one field is set.
type leaseStep struct {
	Grant  *etcdserverpb.LeaseGrantRequest
	Revoke *etcdserverpb.LeaseRevokeRequest
	Keep   *etcdserverpb.LeaseKeepAliveRequest
	Left   *etcdserverpb.LeaseTimeToLiveRequest
	List   bool
}

// leaseID is one of few. What is granted lasts for so long, and for so different
// times, that no clock matters; and 4711 is never granted.
func (g *generator) leaseID() int64 { return []int64{1, 2, 3, -4, 4711}[g.r.IntN(5)] }

func ttlOf(id int64) int64 { return 100_000 * max(id, -id) }

func (g *generator) lease() *leaseStep {
	id := g.leaseID()
	switch g.r.IntN(8) {
	case 0:
		return &leaseStep{Revoke: &etcdserverpb.LeaseRevokeRequest{ID: id}}
	case 1:
		return &leaseStep{Keep: &etcdserverpb.LeaseKeepAliveRequest{ID: id}}
	case 2, 3:
		return &leaseStep{Left: &etcdserverpb.LeaseTimeToLiveRequest{ID: id, Keys: g.chance(80)}}
	case 4:
		return &leaseStep{List: true}
	}
	r := &etcdserverpb.LeaseGrantRequest{ID: g.r.Int64N(4) + 1, TTL: 100_000}
	if r.ID == 4 {
		r.ID = -4
	}
	if r.TTL = ttlOf(r.ID); g.chance(5) {
		r.TTL = 9_000_000_001
	}
	return &leaseStep{Grant: r}
}

// String is for people who look at a program that failed.
func (l *leaseStep) String() string {
	switch {
	case l.Grant != nil:
		return fmt.Sprintf("grant %v", l.Grant)
	case l.Revoke != nil:
		return fmt.Sprintf("revoke %v", l.Revoke)
	case l.Keep != nil:
		return fmt.Sprintf("keep alive %v", l.Keep)
	case l.Left != nil:
		return fmt.Sprintf("time to live %v", l.Left)
	}
	return "list"
}

func (r *runner) lease(x step) (string, error) {
	c := etcdserverpb.NewLeaseClient(r.conn(x.Node))
	switch l := x.Lease; {
	case l.Grant != nil:
		return answer(c.LeaseGrant(r.ctx, clone(l.Grant)))
	case l.Revoke != nil:
		return answer(c.LeaseRevoke(r.ctx, clone(l.Revoke)))
	case l.Left != nil:
		left, err := c.LeaseTimeToLive(r.ctx, clone(l.Left))
		if err == nil {
			if d := ttlOf(l.Left.ID) - left.TTL; d >= 0 && d <= 60 { // seconds that went by
				left.TTL = ttlOf(l.Left.ID)
			}
			slices.SortFunc(left.Keys, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
		}
		return answer(left, err)
	case l.Keep != nil:
		kept, err := keepAlive(r.ctx, r.conn(x.Node), l.Keep.ID)
		return fmt.Sprintf("lease %d lasts %d", kept.GetID(), kept.GetTTL()), err
	}
	return answer(c.LeaseLeases(r.ctx, &etcdserverpb.LeaseLeasesRequest{}))
}

// keepAlive asks once, on a stream of its own.
func keepAlive(ctx context.Context, conn *grpc.ClientConn, id int64) (*etcdserverpb.LeaseKeepAliveResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := etcdserverpb.NewLeaseClient(conn).LeaseKeepAlive(ctx)
	if err == nil {
		err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: id})
	}
	if err != nil {
		return nil, err
	}
	return stream.Recv()
}

// revokeAll leaves no lease for the next program.
func (r *runner) revokeAll() error {
	c := etcdserverpb.NewLeaseClient(r.conn(0))
	all, err := c.LeaseLeases(r.ctx, &etcdserverpb.LeaseLeasesRequest{})
	for _, l := range all.GetLeases() {
		_, revoked := c.LeaseRevoke(r.ctx, &etcdserverpb.LeaseRevokeRequest{ID: l.ID})
		err = errors.Join(err, revoked)
	}
	return err
}
