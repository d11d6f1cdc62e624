package etcd

import (
	"bytes"
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// electionServer implements etcd's Election.
type electionServer struct {
	etcdpb.UnimplementedElectionServer
	claims
}

// Campaign implements etcdpb.ElectionServer: it waits until it leads.
func (s *electionServer) Campaign(ctx context.Context, r *etcdpb.CampaignRequest) (*etcdpb.CampaignResponse, error) {
	m, err := s.enter(ctx, r.Name, r.Lease, r.Value)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(m.value, r.Value) { // it ran already, under another word
		if _, err := s.proclaim(ctx, []byte(m.key), m.rev, m.lease, r.Value); err != nil {
			s.abandon(ctx, m)
			return nil, err
		}
	}
	if err := s.wait(ctx, m); err != nil {
		if ctx.Err() != nil {
			s.abandon(ctx, m)
		}
		return nil, err
	}
	return &etcdpb.CampaignResponse{
		Header: m.header, Leader: &etcdpb.LeaderKey{Name: r.Name, Key: []byte(m.key), Rev: m.rev, Lease: m.lease},
	}, nil
}

// Proclaim implements etcdpb.ElectionServer.
func (s *electionServer) Proclaim(ctx context.Context, r *etcdpb.ProclaimRequest) (*etcdpb.ProclaimResponse, error) {
	if r.Leader == nil {
		return nil, errNoLeaderKey
	}
	lease, err := s.session(ctx, r.Leader.Lease)
	if err != nil {
		return nil, err
	}
	h, err := s.proclaim(ctx, r.Leader.Key, r.Leader.Rev, lease, r.Value)
	if err != nil {
		return nil, err
	}
	return &etcdpb.ProclaimResponse{Header: h}, nil
}

// proclaim changes what a leader says of itself.
func (s *electionServer) proclaim(ctx context.Context, key []byte, rev, lease int64, value []byte) (*etcdpb.ResponseHeader, error) {
	t, err := s.kv.Txn(ctx, &etcdpb.TxnRequest{
		Compare: []*etcdpb.Compare{createdAt(string(key), rev)},
		Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestPut{
			RequestPut: &etcdpb.PutRequest{Key: key, Value: value, Lease: lease},
		}}},
	})
	if err == nil && !t.Succeeded {
		err = errNotLeader
	}
	return t.GetHeader(), err
}

// Resign implements etcdpb.ElectionServer.
func (s *electionServer) Resign(ctx context.Context, r *etcdpb.ResignRequest) (*etcdpb.ResignResponse, error) {
	if r.Leader == nil {
		return nil, errNoLeaderKey
	}
	t, err := s.withdraw(ctx, r.Leader.Key, r.Leader.Rev)
	if err != nil {
		return nil, err
	}
	return &etcdpb.ResignResponse{Header: t.Header}, nil
}

// Leader implements etcdpb.ElectionServer.
func (s *electionServer) Leader(ctx context.Context, r *etcdpb.LeaderRequest) (*etcdpb.LeaderResponse, error) {
	prefix := append(bytes.Clone(r.Name), '/')
	res, head, err := s.node.Range(ctx, prefix, kv.PrefixEnd(prefix), oldest, true)
	if err == nil && len(res.Kvs) == 0 {
		err = errNobodyLeads
	}
	if err != nil {
		return nil, problem(ctx, err)
	}
	return &etcdpb.LeaderResponse{Header: s.header(head.Revision), Kv: kvOf(&res.Kvs[0])}, nil
}

// Observe implements etcdpb.ElectionServer: it tells who leads, each word of its,
// and who leads next.
func (s *electionServer) Observe(r *etcdpb.LeaderRequest, stream grpc.ServerStreamingServer[etcdpb.LeaderResponse]) error {
	o := observer{service: s.service, prefix: append(bytes.Clone(r.Name), '/')}
	ctx := stream.Context()
	for linearizable := true; ; linearizable = false {
		changed := s.node.Changed() // before reading, so that nothing falls in between
		err := s.look(ctx, node.Between(o.prefix, kv.PrefixEnd(o.prefix)), linearizable, o.look)
		for i := 0; i < len(o.news) && err == nil; i++ { // after the view is closed: sending may take long
			err = stream.Send(o.news[i])
		}
		if err == nil && !o.more {
			err = s.rest(ctx, changed, nil)
		}
		if err != nil {
			return told(ctx, err)
		}
	}
}

// observer follows the leaders of one election.
type observer struct {
	*service
	prefix []byte
	news   []*etcdpb.LeaderResponse // of one look
	leader []byte                   // its key; nil while none is known
	next   int64                    // revision to go on from; 0: look who leads
	more   bool                     // can be read at once
}

// observeMost is about how many changes one look reads.
const observeMost = 1000

// look tells what one state has that is new.
func (o *observer) look(v *node.View) error {
	o.more, o.news = false, nil
	if o.next == 0 {
		r, err := v.Range(o.prefix, kv.PrefixEnd(o.prefix), oldest)
		if err != nil {
			return err
		}
		if o.next = v.Head().Revision + 1; len(r.Kvs) > 0 {
			o.follow(v.Head().Revision, &r.Kvs[0])
		}
		return nil
	}
	key, end := o.leader, []byte(nil)
	if key == nil {
		key, end = o.prefix, kv.PrefixEnd(o.prefix)
	}
	events, next, err := v.Events(o.next, v.Head().Revision, key, end, observeMost)
	if errors.Is(err, scope.ErrCompacted) {
		o.leader, o.next, o.more = nil, 0, true
		return nil
	}
	if err != nil {
		return err
	}
	o.next, o.more = max(next, o.next), next <= v.Head().Revision
	for i := range events {
		e := &events[i]
		switch {
		case o.leader == nil && e.Class == lineage.Delete:
		case e.Class == lineage.Delete: // who is next stood there before
			o.leader, o.next, o.more = nil, 0, true
			return nil
		case o.leader == nil:
			o.next, o.more = e.Kv.ModRevision+1, true // what follows concerns it alone
			o.follow(e.Kv.ModRevision, &e.Kv)
			return nil
		default:
			o.follow(e.Kv.ModRevision, &e.Kv)
		}
	}
	return nil
}

// follow notes news of a leader.
func (o *observer) follow(revision int64, kv *scope.KeyValue) {
	o.leader = bytes.Clone(kv.Key)
	o.news = append(o.news, &etcdpb.LeaderResponse{Header: o.header(revision), Kv: kvOf(kv)})
}
