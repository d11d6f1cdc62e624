package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
)

// Access defines what users may do through the nodes of a network, in the terms of etcd: users, and roles that permit
// ranges of keys. It is part of the root scope's state and so the same on all nodes. Each node enforces it on its own
// clients; it does not bind decisions of the chain. A change replaces all of it, and its author must be an anchor or
// an anchor's node.
type Access struct {
	_        struct{} `cbor:",toarray"`
	Revision int64    // counts changes, from 1: as it was before the first
	Enabled  bool     // only users come in
	Users    []User   // ordered by name
	Roles    []Role   // ordered by name
}

// User is a user that may connect.
type User struct {
	_        struct{} `cbor:",toarray"`
	Name     string
	Password []byte   // its bcrypt hash, which all nodes can read; empty: a certificate identifies the user
	Roles    []string // ordered
	Since    int64    // Revision of the Access since which it has this password, or is there
	// Key is the public key of ed25519 whose private key is derived from the password, and signs the user's tokens: the
	// network thereby sees that a node had the password. Empty: the user has no password, or its hash alone was given.
	Key []byte
}

// Role is a set of permissions.
type Role struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	Grant []Permission // ordered by keys
}

// Permission lets a role read or write a range of keys, in the sense of Op.
type Permission struct {
	_           struct{} `cbor:",toarray"`
	Read, Write bool
	Key, End    []byte // an empty Key with an End: from the first key on
}

// RootName is the name of the user, and of the role, that may do everything. The role
// need not be defined.
const RootName = "root"

// Bounds of an Access.
const (
	maxAccess     = 1 << 20 // bytes of its encoding
	maxAccessName = 256     // bytes of a name
	userKey       = 32      // bytes of the key of a user
)

// ErrAccessChanged means that users and roles were changed since those that a change
// is based on.
var ErrAccessChanged = errors.New("scope: users or roles were changed meanwhile")

// ErrAccessAuthor means that the author of a change of users or roles is neither an anchor nor an anchor's node.
var ErrAccessAuthor = errors.New("scope: only nodes of anchors change users and roles; ask one of those")

// User finds a user by name, nil if there is none.
func (a *Access) User(name string) *User {
	i, ok := slices.BinarySearchFunc(a.Users, name, func(u User, name string) int { return compareText(u.Name, name) })
	if !ok {
		return nil
	}
	return &a.Users[i]
}

// Role finds a role by name, nil if there is none.
func (a *Access) Role(name string) *Role {
	i, ok := slices.BinarySearchFunc(a.Roles, name, func(r Role, name string) int { return compareText(r.Name, name) })
	if !ok {
		return nil
	}
	return &a.Roles[i]
}

// Has reports whether the user has a role.
func (u *User) Has(role string) bool {
	_, ok := slices.BinarySearch(u.Roles, role)
	return ok
}

func compareText(a, b string) int { return bytes.Compare([]byte(a), []byte(b)) }

// check returns why an Access is not well-formed or would lock all users out, nil if neither.
func (a *Access) check() error {
	named := func(name string) bool { return len(name) > 0 && len(name) <= maxAccessName }
	for i := range a.Users {
		u := &a.Users[i]
		if !named(u.Name) || i > 0 && a.Users[i-1].Name >= u.Name {
			return fmt.Errorf("%w: users have names of up to %d bytes, and stand in order", ErrInvalid, maxAccessName)
		}
		if len(u.Password) > 0 && !isHash(u.Password) || u.Since < 0 || u.Since > a.Revision {
			return fmt.Errorf("%w: user %q with a hash of a password in an unknown form, or of a later revision", ErrInvalid, u.Name)
		}
		if len(u.Key) > 0 && (len(u.Key) != userKey || len(u.Password) == 0) {
			return fmt.Errorf("%w: user %q with a key of another size, or without a password", ErrInvalid, u.Name)
		}
		for k, r := range u.Roles {
			if !named(r) || k > 0 && u.Roles[k-1] >= r || r != RootName && a.Role(r) == nil {
				return fmt.Errorf("%w: the roles of user %q are not there, or not in order", ErrInvalid, u.Name)
			}
		}
	}
	for i := range a.Roles {
		r := &a.Roles[i]
		if !named(r.Name) || i > 0 && a.Roles[i-1].Name >= r.Name {
			return fmt.Errorf("%w: roles have names of up to %d bytes, and stand in order", ErrInvalid, maxAccessName)
		}
		for k := range r.Grant {
			g := &r.Grant[k]
			if !g.Read && !g.Write || k > 0 && r.Grant[k-1].compare(g) >= 0 {
				return fmt.Errorf("%w: the permissions of role %q are empty, or not in order", ErrInvalid, r.Name)
			}
		}
	}
	if root := a.User(RootName); a.Enabled && (root == nil || !root.Has(RootName)) {
		return fmt.Errorf("%w: without a user root that has the role root, no user could change rights any more", ErrInvalid)
	}
	return nil
}

// MaxHashCost bounds the work of checking a password: bcrypt takes 2 to the power of it rounds.
const MaxHashCost = 12

// isHash reports whether hash is a bcrypt hash of at most MaxHashCost.
func isHash(hash []byte) bool {
	if len(hash) != 60 || hash[0] != '$' || hash[1] != '2' || hash[3] != '$' || hash[6] != '$' {
		return false
	}
	tens, ones := int(hash[4])-'0', int(hash[5])-'0'
	return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 && 10*tens+ones <= MaxHashCost
}

func (g *Permission) compare(o *Permission) int {
	if c := bytes.Compare(g.Key, o.Key); c != 0 {
		return c
	}
	return bytes.Compare(g.End, o.End)
}

// decodeAccess reads the content of a mutation.
func decodeAccess(content []byte) (*Access, error) {
	if len(content) > maxAccess {
		return nil, fmt.Errorf("%w: users and roles of %d bytes, at most %d are taken", ErrInvalid, len(content), maxAccess)
	}
	a := new(Access)
	if err := canon.Decode(content, a); err != nil {
		return nil, err
	}
	return a, a.check()
}

// Access returns the network's users and roles; only the root scope's state has them.
func (s *State) Access() (Access, error) { return s.access(s.head.Access) }

// access is the record of a revision.
func (v *view) access(revision int64) (Access, error) {
	a := Access{Revision: 1}
	if revision == 0 {
		return a, nil
	}
	raw, ok, err := v.r.Get(v.space.at(atAccess))
	if err == nil && ok {
		err = canon.Decode(raw, &a)
	}
	if err == nil && (!ok || a.Revision != revision) {
		err = fmt.Errorf("%w: not the users and roles of revision %d", ErrCorrupt, revision)
	}
	return a, err
}

func accessDigest(a *Access) aweigh.Hash {
	return canon.Hash("aweigh/access/1", *a)
}

// reaccess puts other users and roles in the place of those that they are based on.
func (x *execution) reaccess(a *Access) (failure, err error) {
	if x.next.head.Prefix != "" {
		return ErrElsewhere, nil
	}
	if _, ok := seated(x.next.epoch.Roster.Anchors)[x.mutation.Author]; !ok {
		return ErrAccessAuthor, nil
	}
	before, err := x.access(x.next.head.Access)
	if err != nil {
		return nil, err
	}
	if a.Revision != before.Revision+1 {
		return ErrAccessChanged, nil
	}
	e := lineage.Entry{Class: lineage.Access}
	if before.Revision > 1 {
		e.Prior = accessDigest(&before)
	}
	e.Posterior = accessDigest(a)
	x.enter(e)
	x.next.head.Access = a.Revision
	return nil, x.replace(x.space.at(atAccess), *a)
}
