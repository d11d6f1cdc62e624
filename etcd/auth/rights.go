package auth

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// Rights are what a user may do.
type Rights struct {
	Name        string
	Roles       []string
	root        bool // everything
	read, write []span
}

// Root reports whether the user may do everything.
func (r *Rights) Root() bool { return r.root }

// span is a range of keys, from the first one on and without the last; nil: to the end.
type span struct{ from, to []byte }

// spanOf is a range in the sense of scope.Op.
func spanOf(key, end []byte) span {
	switch {
	case len(end) == 0:
		return span{key, append(bytes.Clone(key), 0)}
	case scope.ToEnd(end):
		return span{key, nil}
	}
	return span{key, end}
}

// rightsOf are those of a user, nil if there is none.
func rightsOf(a *scope.Access, name string) *Rights {
	u := a.User(name)
	if u == nil {
		return nil
	}
	r := &Rights{Name: name, Roles: u.Roles, root: u.Has(scope.RootName)}
	for _, role := range u.Roles {
		x := a.Role(role)
		if x == nil { // root, which needs no definition
			continue
		}
		for _, g := range x.Grant {
			s := spanOf(g.Key, g.End)
			if g.Read {
				r.read = append(r.read, s)
			}
			if g.Write {
				r.write = append(r.write, s)
			}
		}
	}
	r.read, r.write = merged(r.read), merged(r.write)
	return r
}

// merged are the same keys in as few spans as there can be, in order.
func merged(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int { return bytes.Compare(a.from, b.from) })
	for _, s := range all {
		if s.to != nil && bytes.Compare(s.from, s.to) >= 0 {
			continue // of no key
		}
		if n := len(out); n > 0 && (out[n-1].to == nil || bytes.Compare(s.from, out[n-1].to) <= 0) {
			if last := &out[n-1]; last.to != nil && (s.to == nil || bytes.Compare(s.to, last.to) > 0) {
				last.to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// within reports whether all keys of a span are in one of some that were merged.
func (s span) within(all []span) bool {
	i, ok := slices.BinarySearchFunc(all, s.from, func(x span, from []byte) int { return bytes.Compare(x.from, from) })
	if !ok {
		i--
	}
	if i < 0 {
		return false
	}
	to := all[i].to
	return to == nil || s.to != nil && bytes.Compare(s.to, to) <= 0 && bytes.Compare(s.from, to) < 0
}

// MayRead reports why the user may not read the keys [key, end), in the sense of scope.Op.
func (r *Rights) MayRead(key, end []byte) error {
	if r.root || spanOf(key, end).within(r.read) {
		return nil
	}
	return ErrDenied
}

// MayWrite is the same for writing.
func (r *Rights) MayWrite(key, end []byte) error {
	if r.root || spanOf(key, end).within(r.write) {
		return nil
	}
	return ErrDenied
}

// MayRule reports why the user may not do what only root may.
func (r *Rights) MayRule() error {
	if r.root {
		return nil
	}
	return ErrDenied
}
