package etcd

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// A node asks its clients who they are, and holds them to what their roles permit, once
// users are enabled. It goes by its own state of the root scope, which is some seconds old at
// most when a write or a linearizable read passes. What a user may do at which call is as in
// etcd 3.6.

// What etcd says of users and roles.
var (
	errUserEmpty    = status.Error(codes.InvalidArgument, "etcdserver: user name is empty")
	errUserNotFound = status.Error(codes.FailedPrecondition, "etcdserver: user name not found")
	errInvalidToken = status.Error(codes.Unauthenticated, "etcdserver: invalid auth token")
	errOldRevision  = status.Error(codes.InvalidArgument, "etcdserver: revision of auth store is old")
)

// guard knows the users and roles of the newest revision that was asked for.
type guard struct {
	mu     sync.Mutex
	access *scope.Access
	rights map[string]*rights
	// current is when this node knew for sure what was decided, in Unix nanoseconds; 0: never.
	current atomic.Int64
}

// access are the users and roles as this node knows them, nil if nobody is asked who they
// are.
func (s *service) access(ctx context.Context) (*scope.Access, error) {
	revision := s.node.Root().LastHead().Access
	if revision == 0 {
		return nil, nil
	}
	g := &s.guard
	g.mu.Lock()
	a := g.access
	g.mu.Unlock()
	if a == nil || a.Revision < revision {
		got, err := s.node.Access(ctx, false)
		if err != nil {
			return nil, statusFor(ctx, err)
		}
		a = &got
		g.mu.Lock()
		if g.access == nil || g.access.Revision < a.Revision {
			g.access, g.rights = a, make(map[string]*rights)
		}
		g.mu.Unlock()
	}
	if !a.Enabled {
		return nil, nil
	}
	return a, nil
}

// currentFor is how old what a node knows of users may be when it lets a write or a
// linearizable read pass.
const currentFor = 5 * time.Second

// current makes sure that this node knows the users and roles that were decided on some
// seconds ago: one that begins, or was cut off, may know of none. Where there were never
// any, it does so once.
func (s *service) current(ctx context.Context) error {
	g := &s.guard
	at := g.current.Load()
	if at != 0 && (s.node.Root().LastHead().Access == 0 || time.Since(time.Unix(0, at)) < currentFor) {
		return nil
	}
	if _, err := s.node.Access(ctx, true); err != nil {
		return statusFor(ctx, err)
	}
	g.current.Store(time.Now().UnixNano())
	return nil
}

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

// stillKnows says whether users and roles changed while something was read that was
// permitted by those of before.
func (s *service) stillKnows(g grant) error {
	if s.node.Root().LastHead().Access != g.revision {
		return errOldRevision
	}
	return nil
}

// caller is who makes a call; nil if nobody is asked. Errors are etcd's.
func (s *service) caller(ctx context.Context) (*rights, error) {
	a, err := s.access(ctx)
	if a == nil || err != nil {
		return nil, err
	}
	name, revision, byToken, err := s.presented(ctx, a.Revision)
	if err != nil {
		return nil, err
	}
	if revision > a.Revision { // another node knew of it first
		if a, err = s.awaitAccess(ctx, revision); a == nil || err != nil {
			return nil, err
		}
	}
	if u := a.User(name); byToken && (u == nil || revision < u.Since) { // deleted, or given another password: as in etcd, its tokens went with that
		return nil, errInvalidToken
	}
	g := &s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.access != a {
		if r := rightsOf(a, name); r != nil {
			return r, nil
		}
		return nil, errDenied
	}
	r := g.rights[name]
	if r == nil {
		if r = rightsOf(a, name); r == nil {
			return nil, errDenied
		}
		g.rights[name] = r
	}
	return r, nil
}

// lagsFor is how long a node waits for users and roles that another one knows.
const lagsFor = 2 * time.Second

// awaitAccess waits until this node knows the users and roles of a revision.
func (s *service) awaitAccess(ctx context.Context, revision int64) (*scope.Access, error) {
	ctx, cancel := context.WithTimeout(ctx, lagsFor)
	defer cancel()
	for {
		changed := s.node.Changed()
		if s.node.Root().LastHead().Access >= revision {
			return s.access(ctx)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // the status may come a moment after the block
		case <-ctx.Done():
			return nil, errTimeout
		}
	}
}

// presented is the user that a call names: by a token, or by the certificate that the
// client showed.
func (s *service) presented(ctx context.Context, revision int64) (name string, of int64, byToken bool, err error) {
	for _, key := range []string{"token", "authorization"} {
		if v := metadata.ValueFromIncomingContext(ctx, key); len(v) > 0 {
			t, err := s.bearer(strings.TrimPrefix(v[0], "Bearer "))
			if err != nil {
				return "", 0, true, errInvalidToken
			}
			return t.User, t.Revision, true, nil
		}
	}
	if p, ok := peer.FromContext(ctx); ok {
		if tls, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			for _, chain := range tls.State.VerifiedChains {
				if len(chain) > 0 && chain[0].Subject.CommonName != "" {
					return chain[0].Subject.CommonName, revision, false, nil
				}
			}
		}
	}
	return "", 0, false, errUserEmpty
}

// permit says why a caller may not make a request, unless it is about keys, which holds
// looks at where they are.
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
	revision int64   // of users and roles
	by       *rights // nil: nobody is asked
}

// holds says why a caller may not make a request, and by what it may.
func (s *service) holds(ctx context.Context, request any) (g grant, err error) {
	if !serialized(request) {
		if err := s.current(ctx); err != nil {
			return g, err
		}
	}
	g.revision = s.node.Root().LastHead().Access
	if g.by, err = s.caller(ctx); g.by == nil || err != nil {
		return g, err
	}
	return g, s.permits(ctx, g.by, request)
}

// permits says why a user may not make a request.
func (s *service) permits(ctx context.Context, r *rights, request any) error {
	switch x := request.(type) {
	case *etcdpb.RangeRequest:
		return r.mayRead(x.Key, x.RangeEnd)
	case *etcdpb.PutRequest:
		return s.permitsPut(ctx, r, x)
	case *etcdpb.DeleteRangeRequest:
		return permitsDelete(r, x)
	case *etcdpb.TxnRequest:
		return s.permitsTxn(ctx, r, x)
	case *etcdpb.LeaseRevokeRequest:
		return s.permitsLease(ctx, r, x.ID, r.mayWrite)
	case *etcdpb.LeaseTimeToLiveRequest:
		if x.Keys {
			return s.permitsLease(ctx, r, x.ID, r.mayRead)
		}
	case *etcdpb.LeaseKeepAliveRequest:
		return s.permitsLease(ctx, r, x.ID, r.mayWrite)
	case *etcdpb.LockRequest:
		return permitsClaim(r, x.Name)
	case *etcdpb.CampaignRequest:
		return permitsClaim(r, x.Name)
	case *etcdpb.UnlockRequest, *etcdpb.ProclaimRequest, *etcdpb.ResignRequest: // the keys that they change say
	case *etcdpb.LeaseGrantRequest, *etcdpb.LeaseLeasesRequest, *etcdpb.StatusRequest, *etcdpb.MemberListRequest:
	case *etcdpb.LeaderRequest:
		return r.mayRead(claimed(x.Name))
	case *etcdpb.AlarmRequest:
		if x.Action != etcdpb.AlarmRequest_GET {
			return r.mayRule()
		}
	case *etcdpb.AuthUserGetRequest:
		if x.Name != r.name {
			return r.mayRule()
		}
	case *etcdpb.AuthRoleGetRequest:
		if !slices.Contains(r.roles, x.Role) {
			return r.mayRule()
		}
	default: // what changes users, roles, or the whole
		return r.mayRule()
	}
	return nil
}

func (s *service) permitsPut(ctx context.Context, r *rights, x *etcdpb.PutRequest) error {
	if err := r.mayWrite(x.Key, nil); err != nil {
		return err
	}
	if x.Lease != 0 { // or its end would delete what the user may not
		if err := s.permitsLease(ctx, r, x.Lease, r.mayWrite); err != nil {
			return err
		}
	}
	if x.PrevKv {
		return r.mayRead(x.Key, nil)
	}
	return nil
}

func permitsDelete(r *rights, x *etcdpb.DeleteRangeRequest) error {
	if err := r.mayWrite(x.Key, x.RangeEnd); err != nil || !x.PrevKv {
		return err
	}
	return r.mayRead(x.Key, x.RangeEnd)
}

func (s *service) permitsTxn(ctx context.Context, r *rights, x *etcdpb.TxnRequest) error {
	for _, c := range x.Compare {
		if err := r.mayRead(c.Key, c.RangeEnd); err != nil {
			return err
		}
	}
	for _, branch := range [][]*etcdpb.RequestOp{x.Success, x.Failure} {
		for _, op := range branch {
			var err error
			switch op := op.Request.(type) {
			case *etcdpb.RequestOp_RequestRange:
				err = r.mayRead(op.RequestRange.GetKey(), op.RequestRange.GetRangeEnd())
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

// permitsLease says why a user may not do something with all keys of a lease.
func (s *service) permitsLease(ctx context.Context, r *rights, id int64, may func(key, end []byte) error) error {
	if r.root {
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

// permitsClaim says why a user may not take part in a lock or an election.
func permitsClaim(r *rights, name []byte) error {
	key, end := claimed(name)
	if err := r.mayWrite(key, end); err != nil {
		return err
	}
	return r.mayRead(key, end)
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
