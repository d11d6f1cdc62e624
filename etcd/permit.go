package etcd

import (
	"bytes"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
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

// grant is what a caller was permitted a request by.
type grant struct {
	revision int64        // of users and roles
	by       *auth.Rights // nil: users are not enabled
}

// holds reports why a caller may not make a request, and by what it may. A refusal is by the newest users and roles: a
// node that did not hear of a change yet refuses nothing that the change allows.
func (s *service) holds(ctx context.Context, request any) (g grant, err error) {
	if serialized(request) {
		return s.holdsHere(ctx, request)
	}
	if err := s.guard.Current(ctx); err != nil {
		return g, worded(ctx, err)
	}
	if g, err = s.holdsHere(ctx, request); err != nil && s.guard.Newer(ctx, g.revision) {
		return s.holdsHere(ctx, request)
	}
	return g, err
}

// holdsHere is holds by the users and roles that this node knows.
func (s *service) holdsHere(ctx context.Context, request any) (g grant, err error) {
	g.revision = s.guard.Revision()
	if g.by, err = s.caller(ctx); g.by == nil || err != nil {
		return g, err
	}
	return g, s.permits(ctx, g.by, request)
}

// errUsersOnly refuses calls while users are not enabled, where the port is for users alone.
var errUsersOnly = status.Error(codes.PermissionDenied,
	"aweigh: this port is for identified users, and users are not enabled: enable them at a node that asks clients for certificates (etcd-trusted-ca-file) or has insecure set")

// caller returns the rights of the user that makes a call, nil if users are not enabled.
func (s *service) caller(ctx context.Context) (*auth.Rights, error) {
	who, err := s.guard.Caller(ctx)
	if who == nil && err == nil && s.usersOnly {
		return nil, errUsersOnly
	}
	return who, worded(ctx, err)
}

// stillKnows reports whether users and roles changed while something was read that
// was permitted by those of before.
func (s *service) stillKnows(g grant) error { return s.guard.Still(g.revision) }

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
	case *etcdpb.PutRequest:
		return s.permitsPut(ctx, r, x)
	case *etcdpb.DeleteRangeRequest:
		return permitsDelete(r, x)
	case *etcdpb.TxnRequest:
		return s.permitsTxn(ctx, r, x)
	case *etcdpb.LeaseRevokeRequest:
		return s.permitsLease(ctx, r, x.ID, r.MayWrite)
	case *etcdpb.LeaseTimeToLiveRequest:
		if x.Keys {
			return s.permitsLease(ctx, r, x.ID, r.MayRead)
		}
	case *etcdpb.LeaseKeepAliveRequest:
		return s.permitsLease(ctx, r, x.ID, r.MayWrite)
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

func (s *service) permitsPut(ctx context.Context, r *auth.Rights, x *etcdpb.PutRequest) error {
	if err := r.MayWrite(x.Key, nil); err != nil {
		return err
	}
	if x.Lease != 0 { // or its end would delete what the user may not
		if err := s.permitsLease(ctx, r, x.Lease, r.MayWrite); err != nil {
			return err
		}
	}
	if x.PrevKv {
		return r.MayRead(x.Key, nil)
	}
	return nil
}

func permitsDelete(r *auth.Rights, x *etcdpb.DeleteRangeRequest) error {
	if err := r.MayWrite(x.Key, x.RangeEnd); err != nil || !x.PrevKv {
		return err
	}
	return r.MayRead(x.Key, x.RangeEnd)
}

func (s *service) permitsTxn(ctx context.Context, r *auth.Rights, x *etcdpb.TxnRequest) error {
	for _, c := range x.Compare {
		if err := r.MayRead(c.Key, c.RangeEnd); err != nil {
			return err
		}
	}
	for _, branch := range [][]*etcdpb.RequestOp{x.Success, x.Failure} {
		for _, op := range branch {
			var err error
			switch op := op.Request.(type) {
			case *etcdpb.RequestOp_RequestRange:
				err = r.MayRead(op.RequestRange.GetKey(), op.RequestRange.GetRangeEnd())
			case *etcdpb.RequestOp_RequestPut:
				if op.RequestPut != nil {
					err = s.permitsPut(ctx, r, op.RequestPut)
				}
			case *etcdpb.RequestOp_RequestDeleteRange:
				if op.RequestDeleteRange != nil {
					err = permitsDelete(r, op.RequestDeleteRange)
				}
			case *etcdpb.RequestOp_RequestTxn:
				if op.RequestTxn != nil {
					err = s.permitsTxn(ctx, r, op.RequestTxn)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// permitsLease reports why a user may not do something with all keys of a lease.
func (s *service) permitsLease(ctx context.Context, r *auth.Rights, id int64, may func(key, end []byte) error) error {
	if r.Root() {
		return nil
	}
	if slices.ContainsFunc(s.node.Scopes(), func(x node.ScopeInfo) bool { return !x.Held || x.Behind }) { // it may have keys there
		return errDenied
	}
	_, keys, _, _, err := s.node.Lease(ctx, id, true)
	if err != nil {
		return statusFor(ctx, err)
	}
	for _, k := range keys {
		if err := may(k, nil); err != nil {
			return err
		}
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

// permitted is a stream whose requests are permitted one by one.
type permitted struct {
	grpc.ServerStream
	service *service
}

// RecvMsg implements grpc.ServerStream. What is not permitted ends the stream, but for
// watches, of which each is refused by itself.
func (p permitted) RecvMsg(m any) error {
	if err := p.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if _, watch := m.(*etcdpb.WatchRequest); watch {
		return nil
	}
	return p.service.permit(p.Context(), m)
}
