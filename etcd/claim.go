package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// Claims is what locks, elections and transactions that only read need of a node, besides Keys.
type Claims interface {
	Holds(ctx context.Context, ranges referral.Ranges) (bool, error)
	Look(ctx context.Context, t *scope.Txn, linearizable bool) (referral.Looked, error)
	Changed() <-chan struct{}
}

// Locks and elections are the same thing, by the recipe of etcd's own clients
// (package concurrency of clientv3), with which they mix: a client that wants to be
// first creates a key of its own under a common prefix, attached to its lease, and
// waits until all older ones are gone.

// claims are the operations of locks and elections on keys.
type claims struct {
	*service
	kv     *kvServer
	leases *leaseServer
}

// The errors of etcd's services, with their codes.
var (
	errSessionExpired = status.Error(codes.Unknown, "mutex: session is expired")
	errNotLeader      = status.Error(codes.Unknown, "election: not leader")
	errNobodyLeads    = status.Error(codes.Unknown, "election: no leader")
	errNoLeaderKey    = status.Error(codes.Unknown, `"leader" field must be provided`)
)

// sessionTTL is that of a lease without an ID in the request, as in etcd.
const sessionTTL = 60

// session is the lease to use: a new one, if none is named.
func (c *claims) session(ctx context.Context, lease int64) (int64, error) {
	if lease != 0 {
		return lease, nil
	}
	r, err := c.leases.LeaseGrant(ctx, &etcdpb.LeaseGrantRequest{TTL: sessionTTL})
	return r.GetID(), err
}

// claim is a key that wants to be first under its prefix.
type claim struct {
	prefix, key string
	rev         int64 // that created it
	lease       int64
	value       []byte
	header      *etcdpb.ResponseHeader
}

// enter creates the claim of a lease, or finds it.
func (c *claims) enter(ctx context.Context, name []byte, lease int64, value []byte) (*claim, error) {
	lease, err := c.session(ctx, lease)
	if err != nil {
		return nil, err
	}
	m := &claim{prefix: string(name) + "/", lease: lease, value: value}
	m.key = fmt.Sprintf("%s%x", m.prefix, lease)
	r, err := c.kv.Txn(ctx, &etcdpb.TxnRequest{
		Compare: []*etcdpb.Compare{createdAt(m.key, 0)},
		Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestPut{
			RequestPut: &etcdpb.PutRequest{Key: []byte(m.key), Value: value, Lease: lease},
		}}},
		Failure: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestRange{
			RequestRange: &etcdpb.RangeRequest{Key: []byte(m.key)},
		}}},
	})
	if err != nil {
		return nil, err
	}
	m.header, m.rev = r.Header, r.Header.Revision
	if !r.Succeeded {
		there := r.Responses[0].GetResponseRange().Kvs[0]
		m.rev, m.value = there.CreateRevision, there.Value
	}
	return m, nil
}

func createdAt(key string, rev int64) *etcdpb.Compare {
	return &etcdpb.Compare{
		Result: etcdpb.Compare_EQUAL, Target: etcdpb.Compare_CREATE, Key: []byte(key),
		TargetUnion: &etcdpb.Compare_CreateRevision{CreateRevision: rev},
	}
}

// How often it is looked whether a claim is first, in a scope that the node does not hold: each look asks its anchors,
// and so it is less often the longer it takes.
const (
	claimPoll = 250 * time.Millisecond
	claimMost = 2 * time.Second
)

// wait returns when no claim older than m is left.
func (c *claims) wait(ctx context.Context, m *claim) error {
	about := referral.Between([]byte(m.prefix), kv.PrefixEnd([]byte(m.prefix)))
	var before scope.KeyValue // the youngest of those that are older
	pause := claimPoll
	for linearizable := true; ; linearizable = false {
		held, err := c.node.Holds(ctx, about)
		if err != nil {
			return toStatus(ctx, err)
		}
		changed := c.node.Changed() // before reading, so that nothing falls in between
		first, err := c.first(ctx, m, &before, linearizable || !held)
		if err != nil && !held && ctx.Err() == nil && errors.Is(err, referral.ErrMute) {
			err = nil // too few of its anchors are reachable: no reason to give up, as for a scope that the node holds
		}
		if first || err != nil {
			return toStatus(ctx, err)
		}
		var poll <-chan time.Time
		if !held {
			changed, poll, pause = nil, time.After(pause), min(2*pause, claimMost)
		}
		if err := c.waitForChange(ctx, changed, poll); err != nil {
			return err
		}
	}
}

// first is whether no claim older than m is left. before is the youngest of those that are older, and nil at first.
func (c *claims) first(ctx context.Context, m *claim, before *scope.KeyValue, linearizable bool) (bool, error) {
	if before.Key != nil {
		r, _, err := c.node.Range(ctx, before.Key, nil, scope.Range{KeysOnly: true}, linearizable)
		if err != nil || len(r.Kvs) > 0 && r.Kvs[0].CreateRevision == before.CreateRevision {
			return false, err
		}
	}
	r, _, err := c.node.Range(ctx, []byte(m.prefix), kv.PrefixEnd([]byte(m.prefix)), scope.Range{
		MaxCreate: m.rev - 1, Sort: scope.ByCreate, Order: scope.Descending, Limit: 1, KeysOnly: true,
	}, linearizable)
	if err != nil || len(r.Kvs) == 0 {
		return err == nil, err
	}
	*before = r.Kvs[0]
	return false, nil
}

// waitForChange waits until something changed, or it is time to look.
func (s *service) waitForChange(ctx context.Context, changed <-chan struct{}, poll <-chan time.Time) error {
	select {
	case <-changed:
		return nil
	case <-poll:
		return nil
	case <-ctx.Done():
		return toStatus(ctx, ctx.Err())
	case <-s.stopping:
		return errStopped
	}
}

// oldest asks for the oldest of some keys.
var oldest = scope.Range{Sort: scope.ByCreate, Order: scope.Ascending, Limit: 1}

// cleanup is how long the node tries to remove a claim whose client has gone. Its
// lease does it in the end.
const cleanup = 5 * time.Second

// withdraw takes a claim back, if it is still the same.
func (c *claims) withdraw(ctx context.Context, key []byte, rev int64) (*etcdpb.TxnResponse, error) {
	return c.kv.Txn(ctx, &etcdpb.TxnRequest{
		Compare: []*etcdpb.Compare{createdAt(string(key), rev)},
		Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &etcdpb.DeleteRangeRequest{Key: key},
		}}},
	})
}

// abandon removes a claim for which no client waits any more.
func (c *claims) abandon(ctx context.Context, m *claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	// If it fails, the claim goes with its lease.
	_, _ = c.withdraw(ctx, []byte(m.key), m.rev)
}
