package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// permitting is the part of a node that the API needs for users.
type permitting interface {
	Access(ctx context.Context, linearizable bool) (scope.Access, error)
	Permit(ctx context.Context, a scope.Access, once node.Once) (machine.Receipt, error)
}

// Users implements aweighv1connect.NodeHandler.
func (s *service) Users(ctx context.Context, req *connect.Request[aweighv1.UsersRequest]) (*connect.Response[aweighv1.UsersResponse], error) {
	a, heard, err := s.access(ctx, req.Msg.Linearizable)
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.UsersResponse{Header: s.named(s.read(s.at.Overview().Head, heard)), Enabled: a.Enabled, Revision: a.Revision}
	for i := range a.Users {
		u := &a.Users[i]
		out.Users = append(out.Users, &aweighv1.User{Name: u.Name, Password: len(u.Password) > 0, Roles: u.Roles})
	}
	for i := range a.Roles {
		out.Roles = append(out.Roles, &aweighv1.Role{Name: a.Roles[i].Name, Permissions: permissionsOf(&a.Roles[i])})
	}
	return connect.NewResponse(out), nil
}

func permissionsOf(r *scope.Role) (out []*aweighv1.Permission) {
	for _, g := range r.Grant {
		out = append(out, &aweighv1.Permission{Read: g.Read, Write: g.Write, Key: g.Key, RangeEnd: g.End})
	}
	return out
}

// WhoAmI implements aweighv1connect.NodeHandler.
func (s *service) WhoAmI(ctx context.Context, _ *connect.Request[aweighv1.WhoAmIRequest]) (*connect.Response[aweighv1.WhoAmIResponse], error) {
	id, _ := authn.FromContext(ctx)
	out := &aweighv1.WhoAmIResponse{
		Header: s.read(s.at.Overview().Head, false), Identity: id.String(), Owner: owner(ctx),
	}
	a, err := s.node.Access(ctx, false)
	if err != nil {
		return nil, problem(err)
	}
	out.AnchorKey = near(ctx) == nil && (out.Owner || !a.Enabled) // of an enabled network, a caller has to be a user
	if out.Enabled = a.Enabled; !a.Enabled || s.gate.guard == nil {
		return connect.NewResponse(out), nil
	}
	r, err := s.gate.guard.Caller(ctx)
	if r == nil || err != nil { // it is no user
		return connect.NewResponse(out), nil
	}
	out.User, out.Root, out.Roles = r.Name, r.Root(), r.Roles
	for _, name := range r.Roles {
		if x := a.Role(name); x != nil {
			out.Permissions = append(out.Permissions, permissionsOf(x)...)
		}
	}
	return connect.NewResponse(out), nil
}

// access returns users and roles, as the root scope has them. A linearizable read is one only if a quorum answers
// soon.
func (s *service) access(ctx context.Context, linearizable bool) (a scope.Access, heard bool, err error) {
	if linearizable {
		soon, cancel := context.WithTimeout(ctx, hearWithin)
		defer cancel()
		if a, err = s.node.Access(soon, true); err == nil {
			return a, true, nil
		}
	}
	a, err = s.node.Access(ctx, false)
	return a, false, err
}

// DisableUsers implements aweighv1connect.NodeHandler. If users are disabled already,
// nothing changes.
func (s *service) DisableUsers(ctx context.Context, req *connect.Request[aweighv1.DisableUsersRequest]) (*connect.Response[aweighv1.DisableUsersResponse], error) {
	if err := near(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	for {
		a, err := s.node.Access(ctx, true)
		if err != nil {
			return nil, problem(err)
		}
		if !a.Enabled {
			return connect.NewResponse(&aweighv1.DisableUsersResponse{Header: &aweighv1.Header{Network: s.id, Scope: bytesOf(s.scope), Linearizable: true}}), nil
		}
		a.Enabled = false
		a.Revision++
		r, err := s.node.Permit(ctx, a, onceOf(ctx, req.Msg.Once))
		if err != nil {
			return nil, problem(err)
		}
		if why := scope.Failure(r.Reason); errors.Is(why, scope.ErrAccessChanged) && ctx.Err() == nil {
			req.Msg.Once = nil // this request is another change
			continue
		}
		if err := failure(r); err != nil {
			return nil, err
		}
		return connect.NewResponse(&aweighv1.DisableUsersResponse{Header: s.written(r)}), nil
	}
}
