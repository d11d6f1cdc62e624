package etcd

import (
	"context"
	"encoding/binary"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
)

// maintenanceServer implements etcd's Maintenance.
type maintenanceServer struct {
	etcdpb.UnimplementedMaintenanceServer
	*service
}

// The versions of etcd for clients, which choose their requests by them.
const (
	apiVersion     = "3.6.16"
	clusterVersion = "3.6"
	storageVersion = "3.6.0"
)

// Status implements etcdpb.MaintenanceServer. The leader is that of the view that
// the node is in; raft's index is the height.
func (s *maintenanceServer) Status(ctx context.Context, _ *etcdpb.StatusRequest) (*etcdpb.StatusResponse, error) {
	o := s.node.Root().Overview()
	taken, live := s.size()
	out := &etcdpb.StatusResponse{
		Header: s.header(o.Head.Revision), Version: apiVersion, StorageVersion: storageVersion,
		DbSize: taken, DbSizeInUse: live,
		RaftIndex: uint64(o.Known), RaftAppliedIndex: uint64(o.Head.Height), RaftTerm: term(&o.Head),
		DbSizeQuota: s.node.Root().Limits().ScopeBytes,
		IsLearner:   s.learner(), DowngradeInfo: &etcdpb.DowngradeInfo{},
	}
	if o.Reach.Weight >= o.Reach.Needed {
		out.Leader = MemberOf(o.Leader)
	} else {
		out.Errors = append(out.Errors, noLeader)
	}
	if o.Lost {
		out.Errors = append(out.Errors, "aweigh: this anchor has lost its record and signs nothing; see \"aweigh doctor\"")
	}
	return out, nil
}

// learner reports whether this node is an observer.
func (s *service) learner() bool { return s.node.Root().Overview().Self == (aweigh.AnchorID{}) }

// Alarm implements etcdpb.MaintenanceServer. It is an alarm of this node's that the root scope
// holds as much as its policy allows; and one of a member with a scope's identity, for those
// who ask about that, that another does. It ends when the scope holds less: to disarm it does
// nothing.
func (s *maintenanceServer) Alarm(_ context.Context, r *etcdpb.AlarmRequest) (*etcdpb.AlarmResponse, error) {
	out := &etcdpb.AlarmResponse{Header: s.now()}
	switch {
	case r.Action == etcdpb.AlarmRequest_ACTIVATE:
		return nil, status.Error(codes.Unimplemented, "aweigh: alarms are not raised by hand; a scope's policy limits how much it holds (limits.scope_bytes)")
	case r.Alarm != etcdpb.AlarmType_NONE && r.Alarm != etcdpb.AlarmType_NOSPACE:
		return out, nil
	}
	out.Alarms = s.alarms(r.MemberID)
	return out, nil
}

// Defragment implements etcdpb.MaintenanceServer.
func (s *maintenanceServer) Defragment(context.Context, *etcdpb.DefragmentRequest) (*etcdpb.DefragmentResponse, error) {
	s.log.Info("asked to defragment: the store gives space back by itself, nothing was done")
	return &etcdpb.DefragmentResponse{}, nil // without a header, as in etcd
}

// Hash implements etcdpb.MaintenanceServer: the start of the state's digest, on
// which all nodes agree at each height.
func (s *maintenanceServer) Hash(ctx context.Context, _ *etcdpb.HashRequest) (out *etcdpb.HashResponse, err error) {
	err = s.look(ctx, referral.Keys(), false, func(v *node.View) error {
		h := v.Head()
		out = &etcdpb.HashResponse{Header: s.header(h.Revision), Hash: binary.BigEndian.Uint32(h.Digest[:])}
		return nil
	})
	return out, statusFor(ctx, err)
}

// HashKV implements etcdpb.MaintenanceServer. It reads all keys, so one at a time.
func (s *maintenanceServer) HashKV(ctx context.Context, r *etcdpb.HashKVRequest) (out *etcdpb.HashKVResponse, err error) {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-ctx.Done():
		return nil, statusFor(ctx, ctx.Err())
	}
	err = s.look(ctx, referral.Keys(), false, func(v *node.View) error {
		h := v.Head()
		all, err := s.keyspaceOf(ctx, v, r.Revision, false)
		if err != nil {
			return err
		}
		sum, err := hashKeys(all, func() error { return s.goesOn(ctx) })
		out = &etcdpb.HashKVResponse{
			Header: s.header(max(h.Revision, all.revision)), Hash: sum, CompactRevision: h.Compacted, HashRevision: all.revision,
		}
		if h.Compacted == 0 {
			out.CompactRevision = -1 // as etcd says of what was never compacted
		}
		return err
	})
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	return out, nil
}
