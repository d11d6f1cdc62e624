package etcd

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// lightKV implements etcd's KV for a Light.
type lightKV struct {
	etcdpb.UnimplementedKVServer
	*light
}

// Range implements etcdpb.KVServer. A serializable read takes what was proven at most LightConfig.AtMost ago.
func (s *lightKV) Range(ctx context.Context, r *etcdpb.RangeRequest) (*etcdpb.RangeResponse, error) {
	how := rangeOf(r)
	if err := wellFormedOp(&scope.Op{Kind: scope.OpRange, Key: r.Key, Range: &how}, 0); err != nil {
		return nil, s.status(ctx, err)
	}
	if emptyRange(r.Key, r.RangeEnd) {
		return &etcdpb.RangeResponse{Header: s.header(1)}, nil
	}
	x := s.remembered(r.Key, r.RangeEnd)
	is, fresh := x.known(s.atMost)
	if !r.Serializable || !fresh {
		var err error
		if is, err = x.fetch(ctx); err != nil {
			return nil, s.status(ctx, err)
		}
	}
	switch {
	case how.Revision > is.revision: // it may be of another range
		return nil, status.Error(codes.OutOfRange,
			"aweigh: a light reader answers as of now, and not as of a revision; leave it out")
	case how.Revision > 0 && how.Revision < is.revision: // a proof is of the newest
		return nil, s.status(ctx, scope.ErrCompacted)
	}
	lightConnOf(ctx).tell(x, is.revision)
	res := how.Of(is.kvs)
	out := rangeResponse(&res)
	out.Header = s.header(is.revision)
	return out, nil
}

// emptyRange reports whether a range has no keys, whatever they hold.
func emptyRange(key, end []byte) bool {
	return len(end) > 0 && !scope.ToEnd(end) && bytes.Compare(key, end) >= 0
}

// known returns what the range held by the last proof, and whether that is at most some time ago.
func (x *provenRange) known(atMost time.Duration) (is proven, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now, !x.at.IsZero() && time.Since(x.at) <= atMost
}

// lightMaintenance implements etcd's Maintenance for a Light.
type lightMaintenance struct {
	etcdpb.UnimplementedMaintenanceServer
	*light
}

// Status implements etcdpb.MaintenanceServer. The size is 1, since etcdctl divides by it.
func (s *lightMaintenance) Status(context.Context, *etcdpb.StatusRequest) (*etcdpb.StatusResponse, error) {
	return &etcdpb.StatusResponse{
		Header: s.header(0), Version: apiVersion, StorageVersion: storageVersion, DbSize: 1, DbSizeInUse: 1,
		IsLearner: true, DowngradeInfo: &etcdpb.DowngradeInfo{},
	}, nil
}

// Alarm implements etcdpb.MaintenanceServer: nodes have alarms, which are not shown here. etcdctl asks for them to see
// whether an endpoint is healthy.
func (s *lightMaintenance) Alarm(_ context.Context, r *etcdpb.AlarmRequest) (*etcdpb.AlarmResponse, error) {
	if r.Action != etcdpb.AlarmRequest_GET {
		return nil, status.Error(codes.Unimplemented, "")
	}
	return &etcdpb.AlarmResponse{Header: s.header(0)}, nil
}
