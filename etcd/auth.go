package etcd

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Users is what the API needs of a node to serve users and roles.
type Users interface {
	Access(ctx context.Context, linearizable bool) (scope.Access, error)
	Permit(ctx context.Context, a scope.Access, once node.Once) (machine.Receipt, error)
}

// authServer implements etcd's Auth. Users and roles are part of the root scope's state
// (scope.Access); every node that holds it holds the hashes of passwords.
type authServer struct {
	etcdpb.UnimplementedAuthServer
	*service
}

var errNotEnabled = status.Error(codes.FailedPrecondition, "etcdserver: authentication is not enabled")

// Authenticate implements etcdpb.AuthServer.
func (s *authServer) Authenticate(ctx context.Context, r *etcdpb.AuthenticateRequest) (*etcdpb.AuthenticateResponse, error) {
	a, err := s.node.Access(ctx, true)
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	if !a.Enabled {
		return nil, errNotEnabled
	}
	key, err := s.passwords.Check(ctx, peerOf(ctx), a.User(r.Name), r.Password)
	if err != nil {
		s.log.Warn("a client of etcd failed to identify itself", "user", r.Name)
		return nil, err
	}
	return &etcdpb.AuthenticateResponse{Header: s.now(), Token: s.guard.Issue(r.Name, a.Revision, key)}, nil
}

// now is a header as of what this node knows.
func (s *service) now() *etcdpb.ResponseHeader { return s.header(s.node.Root().LastHead().Revision) }

// change changes users and roles, and tries again if another change comes first. If
// edit changes nothing, neither does change.
func (s *authServer) change(ctx context.Context, edit func(*auth.Edit) error) (*etcdpb.ResponseHeader, error) {
	for {
		a, err := s.node.Access(ctx, true)
		if err != nil {
			return nil, statusFor(ctx, err)
		}
		e := auth.Edit{Access: a}
		if err := edit(&e); err != nil {
			return nil, err
		}
		if !e.Changed {
			return s.now(), nil
		}
		e.Revision++
		receipt, err := s.node.Permit(ctx, e.Access, node.Once{Justification: e.Why, Caller: authn.Caller(ctx)})
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
		if err := s.guard.Await(ctx, e.Revision); err != nil {
			return nil, err
		}
		return s.header(receipt.Revision), nil
	}
}

// read are the users and roles for requests about them.
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
	h, err := s.change(ctx, (*auth.Edit).Enable)
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthEnableResponse{Header: h}, nil
}

// AuthDisable implements etcdpb.AuthServer.
func (s *authServer) AuthDisable(ctx context.Context, _ *etcdpb.AuthDisableRequest) (*etcdpb.AuthDisableResponse, error) {
	h, err := s.change(ctx, (*auth.Edit).Disable)
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthDisableResponse{Header: h}, nil
}

// UserAdd implements etcdpb.AuthServer.
func (s *authServer) UserAdd(ctx context.Context, r *etcdpb.AuthUserAddRequest) (*etcdpb.AuthUserAddResponse, error) {
	if r.Name == "" {
		return nil, auth.ErrUserEmpty
	}
	var kept auth.Kept
	if !r.Options.GetNoPassword() {
		var err error
		if kept, err = s.passwords.Hash(ctx, peerOf(ctx), r.Password, r.HashedPassword); err != nil {
			return nil, err
		}
	}
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.AddUser(r.Name, kept) })
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
		return nil, auth.ErrUserNotFound
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
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.DeleteUser(r.Name) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserDeleteResponse{Header: h}, nil
}

// UserChangePassword implements etcdpb.AuthServer.
func (s *authServer) UserChangePassword(ctx context.Context, r *etcdpb.AuthUserChangePasswordRequest) (*etcdpb.AuthUserChangePasswordResponse, error) {
	kept, err := s.passwords.Hash(ctx, peerOf(ctx), r.Password, r.HashedPassword)
	if err != nil {
		return nil, err
	}
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.SetPassword(r.Name, kept) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserChangePasswordResponse{Header: h}, nil
}

// UserGrantRole implements etcdpb.AuthServer.
func (s *authServer) UserGrantRole(ctx context.Context, r *etcdpb.AuthUserGrantRoleRequest) (*etcdpb.AuthUserGrantRoleResponse, error) {
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.GrantRole(r.User, r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserGrantRoleResponse{Header: h}, nil
}

// UserRevokeRole implements etcdpb.AuthServer.
func (s *authServer) UserRevokeRole(ctx context.Context, r *etcdpb.AuthUserRevokeRoleRequest) (*etcdpb.AuthUserRevokeRoleResponse, error) {
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.RevokeRole(r.Name, r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthUserRevokeRoleResponse{Header: h}, nil
}

// RoleAdd implements etcdpb.AuthServer.
func (s *authServer) RoleAdd(ctx context.Context, r *etcdpb.AuthRoleAddRequest) (*etcdpb.AuthRoleAddResponse, error) {
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.AddRole(r.Name) })
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
		return nil, auth.ErrRoleNotFound
	}
	for i := range x.Grant {
		out.Perm = append(out.Perm, auth.PermissionOf(&x.Grant[i]))
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
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.DeleteRole(r.Role) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleDeleteResponse{Header: h}, nil
}

// RoleGrantPermission implements etcdpb.AuthServer.
func (s *authServer) RoleGrantPermission(ctx context.Context, r *etcdpb.AuthRoleGrantPermissionRequest) (*etcdpb.AuthRoleGrantPermissionResponse, error) {
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.Grant(r.Name, r.Perm) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleGrantPermissionResponse{Header: h}, nil
}

// RoleRevokePermission implements etcdpb.AuthServer.
func (s *authServer) RoleRevokePermission(ctx context.Context, r *etcdpb.AuthRoleRevokePermissionRequest) (*etcdpb.AuthRoleRevokePermissionResponse, error) {
	h, err := s.change(ctx, func(e *auth.Edit) error { return e.Revoke(r.Role, r.Key, r.RangeEnd) })
	if err != nil {
		return nil, err
	}
	return &etcdpb.AuthRoleRevokePermissionResponse{Header: h}, nil
}
