package model

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Content is the content of a mutation of any class but Govern, which takes an anchor's key.
func (d *Drawing) Content() (scope.Class, any) {
	switch n := d.Pick(20); {
	case n < 2:
		return scope.Compact, d.compaction()
	case n < 4:
		return scope.Lease, d.Lease()
	case n < 7:
		return scope.Name, d.Naming()
	case n < 10 && len(d.Policy.Actions) > 0, n == 7:
		return scope.Act, d.action()
	case n == 10:
		return scope.Withdraw, scope.Withdrawal{Motion: d.motion()}
	case n == 11 && d.one(3):
		return scope.Permit, d.access()
	}
	return scope.Write, d.Txn(d.Policy.Limits)
}

// action is one of a verb of the policy mostly, of its class mostly, on what is there, or was.
func (d *Drawing) action() scope.Action {
	a := scope.Action{Verb: []string{"write", "read", "unknown"}[d.Pick(3)], Class: action.Class(2 + d.Pick(3)), Key: d.key()}
	if all := d.Policy.Actions; len(all) > 0 && !d.one(6) {
		rule := &all[d.Pick(len(all))]
		if a.Verb = rule.Verb; !d.one(4) && rule.Class != action.Read {
			a.Class = rule.Class
		}
	}
	if a.Class != action.Claim {
		a.Value = d.value()
	}
	if d.one(3) {
		a.Object = d.version(a.Key).UID
	}
	return a
}

// motion is one that is on record, or none.
func (d *Drawing) motion() votes.MotionID {
	if all := append(d.View.model.docket.open(), d.View.model.docket.closed()...); len(all) > 0 && !d.one(8) {
		return all[d.Pick(len(all))].mut.ID
	}
	return votes.MotionID{1}
}

// access is users and roles that follow those of now, or do not.
func (d *Drawing) access() scope.Access {
	a := scope.Access{Revision: d.View.access.Revision + []int64{0, 1, 1, 1, 2}[d.Pick(5)], Enabled: d.one(3)}
	for i := range d.Pick(3) {
		r := scope.Role{Name: fmt.Sprintf("role%d", i)}
		if d.one(2) {
			r.Grant = []scope.Permission{{Read: true, Write: d.one(2), Key: d.key()}}
		}
		a.Roles = append(a.Roles, r)
	}
	a.Users = []scope.User{{Name: scope.RootName, Roles: []string{scope.RootName}, Since: a.Revision}}
	if len(a.Roles) > 0 && d.one(2) {
		a.Users = append(a.Users, scope.User{Name: "user", Roles: []string{a.Roles[0].Name}})
	}
	return a
}

// reach is one or two ranges of keys, in order.
func (d *Drawing) reach() []scope.Reach {
	one := func(first, last []byte) scope.Reach {
		return scope.Reach{Key: first, End: append(bytes.Clone(last), 0)}
	}
	n := len(d.Keys)
	i := d.Pick(n)
	if i == 0 || d.one(2) {
		return []scope.Reach{one(d.Keys[i/2], d.Keys[n-1])}
	}
	all := []scope.Reach{one(d.Keys[0], d.Keys[i/2]), one(d.Keys[i], d.Keys[n-1])}
	return slices.CompactFunc(all, func(a, b scope.Reach) bool { return bytes.Compare(a.End, b.Key) >= 0 })
}
