package etcd

import (
	"context"
	"time"

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
		return nil, lightStatus(ctx, err)
	}
	x := s.rangeOf(r.Key, r.RangeEnd, 0)
	is, fresh := x.known(s.atMost)
	if !r.Serializable || !fresh {
		var err error
		if is, err = x.fetch(ctx); err != nil {
			return nil, lightStatus(ctx, err)
		}
	}
	switch {
	case how.Revision > is.revision:
		return nil, lightStatus(ctx, scope.ErrFutureRevision)
	case how.Revision > 0 && how.Revision < is.revision: // a proof is of the newest
		return nil, lightStatus(ctx, scope.ErrCompacted)
	}
	res := how.Of(is.kvs)
	out := rangeResponse(&res)
	out.Header = s.header(is.revision)
	return out, nil
}

// known returns what the range held by the last proof, and whether that is at most some time ago.
func (x *provenRange) known(atMost time.Duration) (is proven, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now, !x.at.IsZero() && time.Since(x.at) <= atMost
}

// Put implements etcdpb.KVServer.
func (*lightKV) Put(context.Context, *etcdpb.PutRequest) (*etcdpb.PutResponse, error) {
	return nil, refusedByLight("Put")
}

// DeleteRange implements etcdpb.KVServer.
func (*lightKV) DeleteRange(context.Context, *etcdpb.DeleteRangeRequest) (*etcdpb.DeleteRangeResponse, error) {
	return nil, refusedByLight("DeleteRange")
}

// Txn implements etcdpb.KVServer.
func (*lightKV) Txn(context.Context, *etcdpb.TxnRequest) (*etcdpb.TxnResponse, error) {
	return nil, refusedByLight("Txn")
}

// Compact implements etcdpb.KVServer.
func (*lightKV) Compact(context.Context, *etcdpb.CompactionRequest) (*etcdpb.CompactionResponse, error) {
	return nil, refusedByLight("Compact")
}

// lightMaintenance implements etcd's Maintenance for a Light.
type lightMaintenance struct {
	etcdpb.UnimplementedMaintenanceServer
	*light
}

// Status implements etcdpb.MaintenanceServer. The size is 1, since etcdctl divides by it.
func (s *lightMaintenance) Status(context.Context, *etcdpb.StatusRequest) (*etcdpb.StatusResponse, error) {
	return &etcdpb.StatusResponse{
		Header: s.header(0), Version: apiVersion, StorageVersion: storageVersion, DbSize: 1, DbSizeInUse: 1, IsLearner: true,
		DowngradeInfo: &etcdpb.DowngradeInfo{},
	}, nil
}
