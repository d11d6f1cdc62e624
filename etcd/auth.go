package etcd

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// authServer implements etcd's Auth. Users and roles are part of the root scope's state
// (scope.Access); whoever holds it holds the hashes of passwords.
type authServer struct {
	etcdpb.UnimplementedAuthServer
	*service
}

var (
	errAuthFailed  = status.Error(codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	errNotEnabled  = status.Error(codes.FailedPrecondition, "etcdserver: authentication is not enabled")
	errBadPassword = status.Error(codes.InvalidArgument, "aweigh: passwords have at most 72 bytes")
)

// Passwords are looked at one at a time: each takes a processor for a twentieth of a second,
// and anybody may ask. So that nobody keeps others out, few wait from one address.
const (
	hashesWaiting = 64
	hashesEach    = 4
)

// hashes is the queue of those whose passwords are to be looked at.
type hashes struct {
	turn    chan struct{} // holds a token while one is looked at
	mu      sync.Mutex
	waiting map[string]int // by address
	all     int
}

// withHash looks at a password when it is its turn.
func (s *service) withHash(ctx context.Context, do func() error) error {
	door := peerOf(ctx)
	from, _, _ := net.SplitHostPort(door)
	if net.ParseIP(from).IsLoopback() {
		from = door // these are of one machine, and behind one door
	}
	h := &s.hashes
	h.mu.Lock()
	if h.all >= hashesWaiting || h.waiting[from] >= hashesEach {
		h.mu.Unlock()
		return errTooManyRequests
	}
	if h.waiting == nil {
		h.waiting = make(map[string]int)
	}
	h.all++
	h.waiting[from]++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.all--; h.waiting[from] > 1 {
			h.waiting[from]--
		} else {
			delete(h.waiting, from)
		}
	}()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
		return do()
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// Authenticate implements etcdpb.AuthServer.
func (s *authServer) Authenticate(ctx context.Context, r *etcdpb.AuthenticateRequest) (*etcdpb.AuthenticateResponse, error) {
	a, err := s.node.Access(ctx, true)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	if !a.Enabled {
		return nil, errNotEnabled
	}
	err = s.withHash(ctx, func() error {
		u := a.User(r.Name)
		if u == nil || len(u.Password) == 0 || bcrypt.CompareHashAndPassword(u.Password, []byte(r.Password)) != nil {
			return errAuthFailed
		}
		return nil
	})
	if err != nil {
		s.log.Warn("a client of etcd failed to identify itself", "user", r.Name)
		return nil, err
	}
	return &etcdpb.AuthenticateResponse{Header: s.now(), Token: s.issue(r.Name, a.Revision)}, nil
}

// now is a header as of what this node knows.
func (s *service) now() *etcdpb.ResponseHeader { return s.header(s.node.Root().LastHead().Revision) }

// change has users and roles changed, as often as somebody else does so meanwhile. What
// edit leaves as it is changes nothing.
func (s *authServer) change(ctx context.Context, edit func(*accessEdit) error) (*etcdpb.ResponseHeader, error) {
	for {
		a, err := s.node.Access(ctx, true)
		if err != nil {
			return nil, statusFor(ctx, err)
		}
		e := accessEdit{Access: a}
		if err := edit(&e); err != nil {
			return nil, err
		}
		if !e.changed {
			return s.now(), nil
		}
		e.Revision++
		receipt, err := s.node.Permit(ctx, e.Access, node.Once{Justification: e.why})
		if err == nil {
			err = failure(receipt)
		}
		switch {
		case errors.Is(err, scope.ErrAccessChanged):
			continue
		case errors.Is(err, scope.ErrAccessAuthor):
			return nil, status.Error(codes.FailedPrecondition, "aweigh: users and roles are changed through nodes of anchors; this one is none")
		case errors.Is(err, scope.ErrInvalid):
			return nil, status.Error(codes.InvalidArgument, "aweigh: "+err.Error())
		case err != nil:
			return nil, statusFor(ctx, err)
		}
		// Calls that come from now on are held to it, at this node.
		for s.node.Root().LastHead().Access < e.Revision && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return s.header(receipt.Revision), nil
	}
}

// read are the users and roles for those who ask about them.
func (s *authServer) read(ctx context.Context) (*scope.Access, error) {
	a, err := s.node.Access(ctx, true)
	return &a, statusFor(ctx, err)
}

// AuthStatus implements etcdpb.AuthServer.
func (s *authServer) AuthStatus(ctx context.Context, _ *etcdpb.AuthStatusRequest) (*etcdpb.AuthStatusResponse, error) {
	a, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthStatusResponse{Header: s.now(), Enabled: a.Enabled, AuthRevision: uint64(a.Revision)}, nil
}

// AuthEnable implements etcdpb.AuthServer.
func (s *authServer) AuthEnable(ctx context.Context, _ *etcdpb.AuthEnableRequest) (*etcdpb.AuthEnableResponse, error) {
	h, err := s.change(ctx, (*accessEdit).enable)
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthEnableResponse{Header: h}, nil
}

// AuthDisable implements etcdpb.AuthServer.
func (s *authServer) AuthDisable(ctx context.Context, _ *etcdpb.AuthDisableRequest) (*etcdpb.AuthDisableResponse, error) {
	h, err := s.change(ctx, (*accessEdit).disable)
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthDisableResponse{Header: h}, nil
}

// hashed is what is kept of a password.
func (s *authServer) hashed(ctx context.Context, password, hash string) (out []byte, err error) {
	if hash != "" {
		return decodeHash(hash)
	}
	err = s.withHash(ctx, func() error {
		if out, err = bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost); err != nil {
			return errBadPassword
		}
		return nil
	})
	return out, err
}

// UserAdd implements etcdpb.AuthServer.
func (s *authServer) UserAdd(ctx context.Context, r *etcdpb.AuthUserAddRequest) (*etcdpb.AuthUserAddResponse, error) {
	if r.Name == "" {
		return nil, errUserEmpty
	}
	var hash []byte
	if !r.Options.GetNoPassword() {
		var err error
		if hash, err = s.hashed(ctx, r.Password, r.HashedPassword); err != nil {
			return nil, err
		}
	}
	h, err := s.change(ctx, func(e *accessEdit) error { return e.addUser(r.Name, hash) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserAddResponse{Header: h}, nil
}

// UserGet implements etcdpb.AuthServer.
func (s *authServer) UserGet(ctx context.Context, r *etcdpb.AuthUserGetRequest) (*etcdpb.AuthUserGetResponse, error) {
	a, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	u := a.User(r.Name)
	if u == nil {
		return nil, errUserNotFound
	}
	return &etcdpb.AuthUserGetResponse{Header: s.now(), Roles: u.Roles}, nil
}

// UserList implements etcdpb.AuthServer.
func (s *authServer) UserList(ctx context.Context, _ *etcdpb.AuthUserListRequest) (*etcdpb.AuthUserListResponse, error) {
	a, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	out := &etcdpb.AuthUserListResponse{Header: s.now()}
	for i := range a.Users {
		out.Users = append(out.Users, a.Users[i].Name)
	}
	return out, nil
}

// UserDelete implements etcdpb.AuthServer.
func (s *authServer) UserDelete(ctx context.Context, r *etcdpb.AuthUserDeleteRequest) (*etcdpb.AuthUserDeleteResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.deleteUser(r.Name) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserDeleteResponse{Header: h}, nil
}

// UserChangePassword implements etcdpb.AuthServer.
func (s *authServer) UserChangePassword(ctx context.Context, r *etcdpb.AuthUserChangePasswordRequest) (*etcdpb.AuthUserChangePasswordResponse, error) {
	hash, err := s.hashed(ctx, r.Password, r.HashedPassword)
	if err != nil {
		return nil, err
	}
	h, err := s.change(ctx, func(e *accessEdit) error { return e.setPassword(r.Name, hash) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserChangePasswordResponse{Header: h}, nil
}

// UserGrantRole implements etcdpb.AuthServer.
func (s *authServer) UserGrantRole(ctx context.Context, r *etcdpb.AuthUserGrantRoleRequest) (*etcdpb.AuthUserGrantRoleResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.grantRole(r.User, r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserGrantRoleResponse{Header: h}, nil
}

// UserRevokeRole implements etcdpb.AuthServer.
func (s *authServer) UserRevokeRole(ctx context.Context, r *etcdpb.AuthUserRevokeRoleRequest) (*etcdpb.AuthUserRevokeRoleResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.revokeRole(r.Name, r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserRevokeRoleResponse{Header: h}, nil
}

// RoleAdd implements etcdpb.AuthServer.
func (s *authServer) RoleAdd(ctx context.Context, r *etcdpb.AuthRoleAddRequest) (*etcdpb.AuthRoleAddResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.addRole(r.Name) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleAddResponse{Header: h}, nil
}

// RoleGet implements etcdpb.AuthServer.
func (s *authServer) RoleGet(ctx context.Context, r *etcdpb.AuthRoleGetRequest) (*etcdpb.AuthRoleGetResponse, error) {
	a, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	out := &etcdpb.AuthRoleGetResponse{Header: s.now()}
	if r.Role == scope.RootName { // which needs no permissions
		out.Perm = []*etcdpb.Permission{{PermType: etcdpb.Permission_READWRITE, RangeEnd: []byte{0}}}
		return out, nil
	}
	x := a.Role(r.Role)
	if x == nil {
		return nil, errRoleNotFound
	}
	for i := range x.Grant {
		out.Perm = append(out.Perm, permissionOf(&x.Grant[i]))
	}
	return out, nil
}

// RoleList implements etcdpb.AuthServer.
func (s *authServer) RoleList(ctx context.Context, _ *etcdpb.AuthRoleListRequest) (*etcdpb.AuthRoleListResponse, error) {
	a, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	out := &etcdpb.AuthRoleListResponse{Header: s.now()}
	for i := range a.Roles {
		out.Roles = append(out.Roles, a.Roles[i].Name)
	}
	return out, nil
}

// RoleDelete implements etcdpb.AuthServer.
func (s *authServer) RoleDelete(ctx context.Context, r *etcdpb.AuthRoleDeleteRequest) (*etcdpb.AuthRoleDeleteResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.deleteRole(r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleDeleteResponse{Header: h}, nil
}

// RoleGrantPermission implements etcdpb.AuthServer.
func (s *authServer) RoleGrantPermission(ctx context.Context, r *etcdpb.AuthRoleGrantPermissionRequest) (*etcdpb.AuthRoleGrantPermissionResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.grant(r.Name, r.Perm) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleGrantPermissionResponse{Header: h}, nil
}

// RoleRevokePermission implements etcdpb.AuthServer.
func (s *authServer) RoleRevokePermission(ctx context.Context, r *etcdpb.AuthRoleRevokePermissionRequest) (*etcdpb.AuthRoleRevokePermissionResponse, error) {
	h, err := s.change(ctx, func(e *accessEdit) error { return e.revoke(r.Role, r.Key, r.RangeEnd) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleRevokePermissionResponse{Header: h}, nil
}
