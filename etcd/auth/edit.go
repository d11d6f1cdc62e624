package auth

import (
	"bytes"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// Etcd's errors for changes that cannot be made.
var (
	errRootUser         = status.Error(codes.FailedPrecondition, "etcdserver: root user does not exist")
	errRootRole         = status.Error(codes.FailedPrecondition, "etcdserver: root user does not have root role")
	errUserExists       = status.Error(codes.FailedPrecondition, "etcdserver: user name already exists")
	errRoleExists       = status.Error(codes.FailedPrecondition, "etcdserver: role name already exists")
	errRoleEmpty        = status.Error(codes.InvalidArgument, "etcdserver: role name is empty")
	errRoleNotGranted   = status.Error(codes.FailedPrecondition, "etcdserver: role is not granted to the user")
	errPermNotGiven     = status.Error(codes.InvalidArgument, "etcdserver: permission not given")
	errPermNotGranted   = status.Error(codes.FailedPrecondition, "etcdserver: permission is not granted to the role")
	errManagement       = status.Error(codes.InvalidArgument, "etcdserver: invalid auth management")
	errUnknownPermTypes = status.Error(codes.InvalidArgument, "aweigh: a permission is to read, to write, or both")
)

// Edit is users and roles in the course of a change. Its methods do what etcd does,
// and fail as it does.
type Edit struct {
	scope.Access
	Changed bool
	Why     string // for the lineage
}

// did notes what was changed, for the lineage.
func (e *Edit) did(what ...string) { e.Changed, e.Why = true, strings.Join(what, " ") }

// Enable requires clients to identify themselves from now on.
func (e *Edit) Enable() error {
	root := e.User(scope.RootName)
	switch {
	case e.Enabled:
		return nil
	case root == nil:
		return errRootUser
	case !root.Has(scope.RootName):
		return errRootRole
	}
	e.Enabled = true
	e.did("clients must identify themselves")
	return nil
}

// Disable ends that.
func (e *Edit) Disable() error {
	if e.Enabled {
		e.Enabled = false
		e.did("clients need not identify themselves any more")
	}
	return nil
}

// AddUser adds a user, with what is kept of its password, or nothing.
func (e *Edit) AddUser(name string, password Kept) error {
	if e.User(name) != nil {
		return errUserExists
	}
	e.Users = append(slices.Clone(e.Users), scope.User{Name: name, Password: password.Hash, Since: e.Revision + 1, Key: password.Key})
	slices.SortFunc(e.Users, func(a, b scope.User) int { return strings.Compare(a.Name, b.Name) })
	e.did("user", name, "added")
	return nil
}

// DeleteUser deletes a user.
func (e *Edit) DeleteUser(name string) error {
	switch {
	case e.Enabled && name == scope.RootName:
		return errManagement
	case e.User(name) == nil:
		return ErrUserNotFound
	}
	e.Users = slices.DeleteFunc(slices.Clone(e.Users), func(u scope.User) bool { return u.Name == name })
	e.did("user", name, "deleted")
	return nil
}

// SetPassword gives a user what is kept of another password.
func (e *Edit) SetPassword(name string, password Kept) error {
	u := e.User(name)
	switch {
	case u == nil:
		return ErrUserNotFound
	case len(u.Password) == 0: // it was added without one, and stays so
		password = Kept{}
	}
	u.Password, u.Since, u.Key = password.Hash, e.Revision+1, password.Key
	e.did("password of user", name, "changed")
	return nil
}

// GrantRole gives a user a role.
func (e *Edit) GrantRole(user, role string) error {
	u := e.User(user)
	switch {
	case u == nil:
		return ErrUserNotFound
	case role != scope.RootName && e.Role(role) == nil:
		return ErrRoleNotFound
	case u.Has(role):
		return nil
	}
	u.Roles = append(slices.Clone(u.Roles), role)
	slices.Sort(u.Roles)
	e.did("role", role, "granted to user", user)
	return nil
}

// RevokeRole takes a role from a user.
func (e *Edit) RevokeRole(user, role string) error {
	if e.Enabled && user == scope.RootName && role == scope.RootName {
		return errManagement
	}
	u := e.User(user)
	switch {
	case u == nil:
		return ErrUserNotFound
	case !u.Has(role):
		return errRoleNotGranted
	}
	u.Roles = without(u.Roles, role)
	e.did("role", role, "revoked from user", user)
	return nil
}

func without(roles []string, role string) []string {
	return slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == role })
}

// AddRole adds a role without permissions.
func (e *Edit) AddRole(name string) error {
	switch {
	case name == "":
		return errRoleEmpty
	case e.Role(name) != nil:
		return errRoleExists
	}
	e.Roles = append(slices.Clone(e.Roles), scope.Role{Name: name})
	slices.SortFunc(e.Roles, func(a, b scope.Role) int { return strings.Compare(a.Name, b.Name) })
	e.did("role", name, "added")
	return nil
}

// DeleteRole deletes a role, and takes it from all users.
func (e *Edit) DeleteRole(name string) error {
	switch {
	case e.Enabled && name == scope.RootName:
		return errManagement
	case e.Role(name) == nil:
		return ErrRoleNotFound
	}
	e.Roles = slices.DeleteFunc(slices.Clone(e.Roles), func(r scope.Role) bool { return r.Name == name })
	for i := range e.Users {
		e.Users[i].Roles = without(e.Users[i].Roles, name)
	}
	e.did("role", name, "deleted")
	return nil
}

// Grant gives a role a permission, in the place of the one for the same range.
func (e *Edit) Grant(role string, p *etcdpb.Permission) error {
	if p == nil {
		return errPermNotGiven
	}
	if len(p.Key) == 0 || len(p.RangeEnd) > 0 && !scope.ToEnd(p.RangeEnd) && bytes.Compare(p.Key, p.RangeEnd) >= 0 {
		return errManagement
	}
	g := scope.Permission{Key: p.Key, End: p.RangeEnd}
	switch p.PermType {
	case etcdpb.Permission_READ:
		g.Read = true
	case etcdpb.Permission_WRITE:
		g.Write = true
	case etcdpb.Permission_READWRITE:
		g.Read, g.Write = true, true
	default:
		return errUnknownPermTypes
	}
	r := e.Role(role)
	if r == nil {
		return ErrRoleNotFound
	}
	i, there := slices.BinarySearchFunc(r.Grant, g, comparePermissions)
	if there {
		r.Grant = slices.Clone(r.Grant)
		r.Grant[i] = g
	} else {
		r.Grant = slices.Insert(slices.Clone(r.Grant), i, g)
	}
	e.did("permission granted to role", role)
	return nil
}

// Revoke takes a permission from a role.
func (e *Edit) Revoke(role string, key, end []byte) error {
	r := e.Role(role)
	if r == nil {
		return ErrRoleNotFound
	}
	i, there := slices.BinarySearchFunc(r.Grant, scope.Permission{Key: key, End: end}, comparePermissions)
	if !there {
		return errPermNotGranted
	}
	r.Grant = slices.Delete(slices.Clone(r.Grant), i, i+1)
	e.did("permission revoked from role", role)
	return nil
}

func comparePermissions(a, b scope.Permission) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return bytes.Compare(a.End, b.End)
}

// PermissionOf is a permission in the form of etcd's API.
func PermissionOf(g *scope.Permission) *etcdpb.Permission {
	p := &etcdpb.Permission{Key: g.Key, RangeEnd: g.End}
	switch {
	case g.Read && g.Write:
		p.PermType = etcdpb.Permission_READWRITE
	case g.Write:
		p.PermType = etcdpb.Permission_WRITE
	}
	return p
}
