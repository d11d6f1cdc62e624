package etcd

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// What etcd says of changes that cannot be made.
var (
	errRootUser         = status.Error(codes.FailedPrecondition, "etcdserver: root user does not exist")
	errRootRole         = status.Error(codes.FailedPrecondition, "etcdserver: root user does not have root role")
	errUserExists       = status.Error(codes.FailedPrecondition, "etcdserver: user name already exists")
	errRoleExists       = status.Error(codes.FailedPrecondition, "etcdserver: role name already exists")
	errRoleNotFound     = status.Error(codes.FailedPrecondition, "etcdserver: role name not found")
	errRoleEmpty        = status.Error(codes.InvalidArgument, "etcdserver: role name is empty")
	errRoleNotGranted   = status.Error(codes.FailedPrecondition, "etcdserver: role is not granted to the user")
	errPermNotGiven     = status.Error(codes.InvalidArgument, "etcdserver: permission not given")
	errPermNotGranted   = status.Error(codes.FailedPrecondition, "etcdserver: permission is not granted to the role")
	errManagement       = status.Error(codes.InvalidArgument, "etcdserver: invalid auth management")
	errHashedPassword   = status.Error(codes.InvalidArgument, "aweigh: hashedPassword is not what bcrypt makes at a cost of up to 12, in base64")
	errUnknownPermTypes = status.Error(codes.InvalidArgument, "aweigh: a permission is to read, to write, or both")
)

// accessEdit is users and roles in the course of a change. Its methods do what etcd does,
// and fail as it does.
type accessEdit struct {
	scope.Access
	changed bool
	why     string
}

// did notes what was changed, for the lineage.
func (e *accessEdit) did(what ...string) { e.changed, e.why = true, strings.Join(what, " ") }

func (e *accessEdit) enable() error {
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

func (e *accessEdit) disable() error {
	if e.Enabled {
		e.Enabled = false
		e.did("clients need not identify themselves any more")
	}
	return nil
}

func (e *accessEdit) addUser(name string, password []byte) error {
	if e.User(name) != nil {
		return errUserExists
	}
	e.Users = append(slices.Clone(e.Users), scope.User{Name: name, Password: password, Since: e.Revision + 1})
	slices.SortFunc(e.Users, func(a, b scope.User) int { return strings.Compare(a.Name, b.Name) })
	e.did("user", name, "added")
	return nil
}

func (e *accessEdit) deleteUser(name string) error {
	switch {
	case e.Enabled && name == scope.RootName:
		return errManagement
	case e.User(name) == nil:
		return errUserNotFound
	}
	e.Users = slices.DeleteFunc(slices.Clone(e.Users), func(u scope.User) bool { return u.Name == name })
	e.did("user", name, "deleted")
	return nil
}

func (e *accessEdit) setPassword(name string, password []byte) error {
	u := e.User(name)
	switch {
	case u == nil:
		return errUserNotFound
	case len(u.Password) == 0: // it was added without one, and stays so
		password = nil
	}
	u.Password, u.Since = password, e.Revision+1
	e.did("password of user", name, "changed")
	return nil
}

func (e *accessEdit) grantRole(user, role string) error {
	u := e.User(user)
	switch {
	case u == nil:
		return errUserNotFound
	case role != scope.RootName && e.Role(role) == nil:
		return errRoleNotFound
	case u.Has(role):
		return nil
	}
	u.Roles = append(slices.Clone(u.Roles), role)
	slices.Sort(u.Roles)
	e.did("role", role, "granted to user", user)
	return nil
}

func (e *accessEdit) revokeRole(user, role string) error {
	if e.Enabled && user == scope.RootName && role == scope.RootName {
		return errManagement
	}
	u := e.User(user)
	switch {
	case u == nil:
		return errUserNotFound
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

func (e *accessEdit) addRole(name string) error {
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

func (e *accessEdit) deleteRole(name string) error {
	switch {
	case e.Enabled && name == scope.RootName:
		return errManagement
	case e.Role(name) == nil:
		return errRoleNotFound
	}
	e.Roles = slices.DeleteFunc(slices.Clone(e.Roles), func(r scope.Role) bool { return r.Name == name })
	for i := range e.Users {
		e.Users[i].Roles = without(e.Users[i].Roles, name)
	}
	e.did("role", name, "deleted")
	return nil
}

func (e *accessEdit) grant(role string, p *etcdpb.Permission) error {
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
		return errRoleNotFound
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

func (e *accessEdit) revoke(role string, key, end []byte) error {
	r := e.Role(role)
	if r == nil {
		return errRoleNotFound
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

func permissionOf(g *scope.Permission) *etcdpb.Permission {
	p := &etcdpb.Permission{Key: g.Key, RangeEnd: g.End}
	switch {
	case g.Read && g.Write:
		p.PermType = etcdpb.Permission_READWRITE
	case g.Write:
		p.PermType = etcdpb.Permission_WRITE
	}
	return p
}

// decodeHash reads a password that a client hashed itself.
func decodeHash(text string) ([]byte, error) {
	hash, err := base64.StdEncoding.DecodeString(text)
	if cost, bad := bcrypt.Cost(hash); err != nil || bad != nil || cost > scope.MaxHashCost {
		return nil, errHashedPassword
	}
	return hash, nil
}
