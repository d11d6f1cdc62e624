package etcd

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/scope"
)

// Once users are enabled, clients of a node must identify themselves, and have the
// permissions of their roles. The node uses its own state of the root scope, which is some
// seconds old at most when a write or a linearizable read passes. What a user may do at which
// call is as in etcd 3.6.

// serialized reports whether a request is answered from what this node has, however old.
func serialized(request any) bool {
	switch x := request.(type) {
	case *etcdpb.RangeRequest:
		return x.Serializable
	case *etcdpb.TxnRequest:
		return readOnly(x) && serializable(x)
	case *etcdpb.StatusRequest, *etcdpb.AlarmRequest, *etcdpb.HashRequest, *etcdpb.HashKVRequest, *etcdpb.DefragmentRequest:
		return true
	case *etcdpb.MemberListRequest:
		return !x.Linearizable
	}
	return false
}

// permit reports why a caller may not make a request, unless it is about keys, which
// holds looks at where they are.
func (s *service) permit(ctx context.Context, request any) error {
	switch request.(type) {
	case *etcdpb.AuthenticateRequest, *healthpb.HealthCheckRequest, *etcdpb.RangeRequest, *etcdpb.PutRequest, *etcdpb.DeleteRangeRequest, *etcdpb.TxnRequest:
		return nil
	}
	_, err := s.holds(ctx, request)
	return err
}

// holds reports why a caller may not make a request, and by what it may.
func (s *service) holds(ctx context.Context, request any) (auth.Grant, error) {
	return s.granted(ctx, serialized(request), func(r *auth.Rights) error { return s.permits(ctx, r, request) })
}

// holdsTxn is holds for a request as the transaction that it is.
func (s *service) holdsTxn(ctx context.Context, request any, t *scope.Txn) (auth.Grant, error) {
	return s.granted(ctx, serialized(request), func(r *auth.Rights) error { return s.guard.MayTxn(ctx, r, t) })
}

// granted reports why a caller may not make a request, and by what it may. may looks at the rights of a user.
func (s *service) granted(ctx context.Context, local bool, may func(*auth.Rights) error) (auth.Grant, error) {
	g, err := s.guard.Permit(ctx, local, func(r *auth.Rights) error {
		if r == nil {
			return s.withoutUsers(ctx)
		}
		return may(r)
	})
	return g, worded(ctx, err)
}

// errUsersOnly refuses calls while users are not enabled, where the port is for users alone.
var errUsersOnly = status.Error(codes.PermissionDenied,
	"aweigh: this port is for identified users, and users are not enabled: enable them at a node that asks clients for certificates (etcd-trusted-ca-file) or has insecure set")

// withoutUsers reports why a caller may not make a request while users are not enabled. As in etcd, tokens of users and
// names in certificates do not count then. A token of an issuer does: it names a caller which is to be a user.
func (s *service) withoutUsers(ctx context.Context) error {
	refused := authn.Refused(ctx)
	switch id, _ := authn.FromContext(ctx); {
	case refused != nil && refused.Kind == authn.OIDC:
		return status.Error(refused.Code(), refused.Error())
	case id.Kind == authn.OIDC:
		return auth.ErrTokensOfUsers
	case s.usersOnly:
		return errUsersOnly
	}
	return nil
}

// caller returns the rights of the user that makes a call, nil if users are not enabled.
func (s *service) caller(ctx context.Context) (*auth.Rights, error) {
	who, err := s.guard.Caller(ctx)
	if who == nil && err == nil {
		err = s.withoutUsers(ctx)
	}
	return who, worded(ctx, err)
}

// stillKnows reports whether users and roles changed while something was read that
// was permitted by those of before.
func (s *service) stillKnows(g auth.Grant) error { return s.guard.Still(g.Revision) }

// worded is statusFor for errors that may have etcd's words already.
func worded(ctx context.Context, err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return statusFor(ctx, err)
}

// permits reports why a user may not make a request.
func (s *service) permits(ctx context.Context, r *auth.Rights, request any) error {
	switch x := request.(type) {
	case *etcdpb.RangeRequest:
		return r.MayRead(x.Key, x.RangeEnd)
	case *etcdpb.WatchCreateRequest:
		return r.MayRead(watched(x))
	case *etcdpb.LeaseRevokeRequest:
		return s.guard.MayLease(ctx, r, x.ID, r.MayWrite)
	case *etcdpb.LeaseTimeToLiveRequest:
		if x.Keys {
			return s.guard.MayLease(ctx, r, x.ID, r.MayRead)
		}
	case *etcdpb.LeaseKeepAliveRequest:
		return s.guard.MayLease(ctx, r, x.ID, r.MayWrite)
	case *etcdpb.LockRequest:
		return permitsClaim(r, x.Name)
	case *etcdpb.CampaignRequest:
		return permitsClaim(r, x.Name)
	case *etcdpb.UnlockRequest, *etcdpb.ProclaimRequest, *etcdpb.ResignRequest: // the keys that they change say
	case *etcdpb.LeaseGrantRequest, *etcdpb.LeaseLeasesRequest, *etcdpb.StatusRequest, *etcdpb.MemberListRequest:
	case *etcdpb.LeaderRequest:
		return r.MayRead(claimed(x.Name))
	case *etcdpb.AlarmRequest:
		if x.Action != etcdpb.AlarmRequest_GET {
			return r.MayRule()
		}
	case *etcdpb.AuthUserGetRequest:
		if x.Name != r.Name {
			return r.MayRule()
		}
	case *etcdpb.AuthRoleGetRequest:
		if !slices.Contains(r.Roles, x.Role) {
			return r.MayRule()
		}
	default: // what changes users, roles, or the whole
		return r.MayRule()
	}
	return nil
}

// claimed are the keys of a lock, or of an election.
func claimed(name []byte) (key, end []byte) {
	key = append(bytes.Clone(name), '/')
	return key, scope.PrefixEnd(key)
}

// permitsClaim reports why a user may not take part in a lock or an election.
func permitsClaim(r *auth.Rights, name []byte) error {
	key, end := claimed(name)
	if err := r.MayWrite(key, end); err != nil {
		return err
	}
	return r.MayRead(key, end)
}

// permitted is a stream whose requests are permitted one by one, and whose answers end when the right to them does.
// Watches, of which each is refused by itself, look after their rights themselves.
type permitted struct {
	grpc.ServerStream
	service *service
	ctx     context.Context // with the caller
	method  string

	mu       sync.Mutex
	request  any   // the last one; nil: none, or one about watches
	revision int64 // of the users and roles by which it was permitted
	begun    bool  // it is recorded: a stream may last for days
}

// Context implements grpc.ServerStream.
func (p *permitted) Context() context.Context { return p.ctx }

// RecvMsg implements grpc.ServerStream.
func (p *permitted) RecvMsg(m any) error {
	if err := p.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := tokenEnded(p.ctx); err != nil {
		return err
	}
	if _, watch := m.(*etcdpb.WatchRequest); watch {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.request, p.revision = m, p.service.guard.Revision()
	return p.service.permit(p.ctx, m)
}

// SendMsg implements grpc.ServerStream.
func (p *permitted) SendMsg(m any) error {
	err := tokenEnded(p.ctx)
	if err == nil {
		err = p.still()
	}
	if err != nil {
		return err
	}
	p.begin()
	return p.ServerStream.SendMsg(m)
}

// begin records a stream with its first answer. Watches record themselves.
func (p *permitted) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun && p.method != watchMethod {
		p.begun = true
		p.service.note(p.ctx, p.method, p.request, requestlog.ErrBegun)
	}
}

// still reports why the last request is not permitted any more.
func (p *permitted) still() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	revision := p.service.guard.Revision()
	if p.request == nil || p.revision == revision {
		return nil
	}
	p.revision = revision
	return p.service.permit(p.ctx, p.request)
}
