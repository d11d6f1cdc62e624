package etcd

import (
	"context"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// lockServer implements etcd's Lock.
type lockServer struct {
	etcdpb.UnimplementedLockServer
	claims
}

// Lock implements etcdpb.LockServer: it waits until the lock is held.
func (s *lockServer) Lock(ctx context.Context, r *etcdpb.LockRequest) (*etcdpb.LockResponse, error) {
	m, err := s.enter(ctx, r.Name, r.Lease, nil)
	if err != nil {
		return nil, err
	}
	if err := s.wait(ctx, m); err != nil {
		s.abandon(ctx, m)
		return nil, err
	}
	res, head, err := s.node.Range(ctx, []byte(m.key), nil, scope.Range{KeysOnly: true}, true) // the lease may have ended meanwhile
	if err == nil && (len(res.Kvs) == 0 || res.Kvs[0].CreateRevision != m.rev) {
		err = errSessionExpired
	}
	if err != nil {
		s.abandon(ctx, m)
		return nil, statusFor(ctx, err)
	}
	return &etcdpb.LockResponse{Header: s.header(head.Revision), Key: []byte(m.key)}, nil
}

// Unlock implements etcdpb.LockServer.
func (s *lockServer) Unlock(ctx context.Context, r *etcdpb.UnlockRequest) (*etcdpb.UnlockResponse, error) {
	gone, err := s.kv.DeleteRange(ctx, &etcdpb.DeleteRangeRequest{Key: r.Key})
	if err != nil {
		return nil, err
	}
	return &etcdpb.UnlockResponse{Header: gone.Header}, nil
}
