package etcd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

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

// proclaim changes a leader's value.
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
		return nil, statusFor(ctx, err)
	}
	return &etcdpb.LeaderResponse{Header: s.header(head.Revision), Kv: kvOf(&res.Kvs[0])}, nil
}

// Observe implements etcdpb.ElectionServer: it sends the leader, each of its
// values, and the next leader.
func (s *electionServer) Observe(r *etcdpb.LeaderRequest, stream grpc.ServerStreamingServer[etcdpb.LeaderResponse]) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	o := observer{service: s.service, prefix: append(bytes.Clone(r.Name), '/')}
	o.tell = sender(ctx, cancel, stream.Send, observerSlow)
	go s.attend(ctx, cancel)
	for {
		err := o.look(ctx)
		if err != nil && ctx.Err() != nil {
			return worded(ctx, context.Cause(ctx))
		}
		if err != nil {
			return toStatus(ctx, err)
		}
	}
}

// observer follows the leaders of one election.
type observer struct {
	*service
	prefix []byte
	tell   func(*etcdpb.LeaderResponse) error
	leader []byte // its key; nil while none is known
	last   int64  // revision of its last word
	next   int64  // revision to go on from; 0: look for the leader
}

// errLeads ends a watch: another client leads, or none.
var errLeads = errors.New("etcd: another leader")

// look tells who leads, if that is not known, and then what it says until another does.
func (o *observer) look(ctx context.Context) error {
	key, end := o.prefix, kv.PrefixEnd(o.prefix)
	if o.next == 0 {
		r, head, err := o.node.Range(ctx, key, end, oldest, true)
		if err != nil {
			return err
		}
		if o.next = head.Revision + 1; len(r.Kvs) > 0 {
			if err := o.said(head.Revision, &r.Kvs[0]); err != nil {
				return err
			}
		}
	}
	if o.leader != nil {
		key, end = o.leader, nil
	}
	err := o.node.Watch(ctx, key, end, o.next, func(c node.Changes) error {
		for i := range c.Events {
			if err := o.event(c.Events[i]); err != nil {
				return err
			}
		}
		o.next = max(o.next, c.Revision+1)
		return nil
	})
	switch {
	case errors.Is(err, scope.ErrCompacted):
		o.leader, o.next = nil, 0
		return o.waitForChange(ctx, nil, time.After(claimPoll)) // scopes may be compacted to different revisions
	case errors.Is(err, errLeads):
		return nil
	}
	return err
}

// event takes what became of the leader's key, or of all while there is none.
func (o *observer) event(e *scope.Event) error {
	gone := e.Class == lineage.Delete
	switch {
	case e.Kv.ModRevision <= o.last:
		return nil
	case o.leader == nil && gone:
		return nil
	case gone: // who is next stood there before
		o.leader, o.next = nil, 0
		return errLeads
	case o.leader == nil:
		o.next = e.Kv.ModRevision + 1 // what follows concerns it alone
		return cmp.Or(o.said(e.Kv.ModRevision, &e.Kv), errLeads)
	}
	return o.said(e.Kv.ModRevision, &e.Kv)
}

// said tells a word of a leader.
func (o *observer) said(revision int64, kv *scope.KeyValue) error {
	o.leader, o.last = bytes.Clone(kv.Key), kv.ModRevision
	return o.tell(&etcdpb.LeaderResponse{Header: o.header(revision), Kv: kvOf(kv)})
}
