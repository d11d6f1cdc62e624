package etcd

import (
	"context"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
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
	err = s.look(ctx, node.Keys([]byte(m.key)), true, func(v *node.View) error { // the lease may have ended meanwhile
		res, err := v.Range([]byte(m.key), nil, rangeOf(&etcdpb.RangeRequest{KeysOnly: true}))
		if err == nil && (len(res.Kvs) == 0 || res.Kvs[0].CreateRevision != m.rev) {
			err = errSessionExpired
		}
		m.header = s.header(res.Revision)
		return err
	})
	if err != nil {
		s.abandon(ctx, m)
		return nil, problem(ctx, err)
	}
	return &etcdpb.LockResponse{Header: m.header, Key: []byte(m.key)}, nil
}

// Unlock implements etcdpb.LockServer.
func (s *lockServer) Unlock(ctx context.Context, r *etcdpb.UnlockRequest) (*etcdpb.UnlockResponse, error) {
	gone, err := s.kv.DeleteRange(ctx, &etcdpb.DeleteRangeRequest{Key: r.Key})
	if err != nil {
		return nil, err
	}
	return &etcdpb.UnlockResponse{Header: gone.Header}, nil
}
