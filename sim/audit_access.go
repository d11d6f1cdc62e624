package sim

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// decree follows what actors ask for through the final blocks: which objects there
// are below ruledPrefix, and what the rules say of each request. It evaluates no
// expression: it knows what the rules of this file's neighbour mean.
type decree struct {
	next    aweigh.Height
	objects map[string]*ruled // by each of their names
	users   int64             // revision
}

// ruled is an object.
type ruled struct {
	uid   aweigh.UID
	names map[string]int64 // with the version under each
}

// asker is who asks for what, in a block.
type asker struct {
	d      *decree
	anchor bool
	first  bool // of the anchors
	weight uint64
}

// decreed looks at final blocks up to a height.
func (x *watch) decreed(n *Node, to aweigh.Height) {
	if x.w.Scenario.Load.Acts == 0 || x.w.number > 0 || x.lost || !x.within {
		return
	}
	d := &x.decree
	if d.objects == nil {
		*d = decree{next: 1, objects: make(map[string]*ruled), users: 1}
	}
	history, state := node.History{Reader: n.Disk, Scope: x.w.id}, n.state()
	for ; d.next <= to; d.next++ {
		b, err := history.Block(d.next)
		must.OK(err, "reading a final block")
		for _, c := range b.Bundles {
			for i := range c.Mutations() {
				x.decides(n, state, &b.Header, &c.Mutations()[i])
			}
		}
	}
}

// decides holds the outcome of a mutation to the rules.
func (x *watch) decides(n *Node, state *scope.State, h *scope.Header, m *scope.CheckedMutation) {
	got, ok, err := state.Outcome(m.ID)
	must.OK(err, "reading an outcome")
	if !ok || got.Height != h.Height {
		return // another block did it, or it came too late
	}
	r := asker{d: &x.decree}
	e := x.w.epochs[h.Epoch]
	for _, o := range x.w.Nodes {
		if o.key != nil && o.author.Public().ID() == m.Author {
			_, r.anchor = e.Roster.Seat(o.key.Public().ID())
			r.weight = e.Roster.Weights.Of(o.key.Public().ID())
			r.first = r.anchor && o.Index == 0
		}
	}
	want, ruled := r.expects(m)
	if !ruled {
		return
	}
	failure := scope.Failure(got.Reason)
	same := want == nil && got.Code == scope.Applied || want != nil && got.Code == scope.Failed && errors.Is(failure, want)
	x.w.holds(Access, n, same, "%s of %s at height %d is %s (%v), and the rules say: %v", m.Class, m.ID.Short(), h.Height, got.Code, failure, want)
	if want != nil {
		x.reach("request denied")
	} else if m.Class == scope.Act {
		x.reach("action done")
	}
}

// expects is why a request must fail, nil if it must not, and whether there are
// rules about it. What must not fail is done.
func (r *asker) expects(m *scope.CheckedMutation) (want error, ruled bool) {
	d := r.d
	switch m.Class {
	case scope.Permit:
		switch {
		case !r.anchor:
			return scope.ErrAccessAuthor, true
		case m.Access.Revision != d.users+1:
			return scope.ErrAccessChanged, true
		}
		d.users++
		return nil, true
	case scope.Act:
		return r.acts(m), true
	case scope.Name:
		if n := m.Naming; bytes.HasPrefix(n.Key, []byte(ruledPrefix)) {
			return r.binds(string(n.Key), string(n.To)), true
		}
	case scope.Write:
		if op := &m.Txn.Success[0]; bytes.HasPrefix(op.Key, []byte(ruledPrefix)) {
			key := string(op.Key)
			if op.Kind == scope.OpDelete {
				if !r.writes(key) {
					return scope.ErrDenied, true
				}
				d.drop(key)
				return nil, true
			}
			if !r.writesAll(key) {
				return scope.ErrDenied, true
			}
			d.put(key, m.ID)
			return nil, true
		}
	}
	return nil, false
}

// writes reports whether the rule about writes allows one.
func (r *asker) writes(key string) bool { return !strings.HasPrefix(key, ownPrefix) || r.anchor }

// writesAll reports whether it does for a key, and for all names of its object.
func (r *asker) writesAll(key string) bool {
	return r.writes(key) && !slices.ContainsFunc(r.d.others(key), func(other string) bool { return !r.writes(other) })
}

func (r *asker) acts(m *scope.CheckedMutation) error {
	a, key := m.Action, string(m.Action.Key)
	o := r.d.objects[key]
	if o == nil && (a.Class == action.Claim || !a.Object.IsZero()) || o != nil && !a.Object.IsZero() && a.Object != o.uid {
		return scope.ErrUnnamed
	}
	allows := func(key string) bool {
		switch version := r.d.version(key); a.Verb {
		case "age":
			return version != 2
		case "extend":
			return version < 3 && !r.first
		}
		return r.weight > 0 && r.weight%2 == 0
	}
	switch {
	case !allows(key):
		return scope.ErrDenied
	case a.Verb == "take" && a.Class != action.Claim:
		return scope.ErrClass
	case slices.ContainsFunc(r.d.others(key), func(other string) bool { return !allows(other) }):
		return scope.ErrDenied
	}
	if a.Class == action.Write {
		r.d.put(key, m.ID)
	}
	return nil
}

func (r *asker) binds(key, to string) error {
	d := r.d
	switch {
	case d.objects[key] == nil:
		return scope.ErrUnnamed
	case !r.writesAll(key) || !r.writesAll(to):
		return scope.ErrDenied
	case d.objects[to] != nil:
		return scope.ErrNamed
	}
	d.objects[to] = d.objects[key]
	d.objects[to].names[to] = 1
	return nil
}

// others are the further names of the object that a key names.
func (d *decree) others(key string) (all []string) {
	o := d.objects[key]
	if o == nil {
		return nil
	}
	for name := range o.names { // order-free: any of them decides
		if name != key {
			all = append(all, name)
		}
	}
	return all
}

func (d *decree) version(key string) int64 {
	if o := d.objects[key]; o != nil {
		return o.names[key]
	}
	return 0
}

// put makes a new version, under each name.
func (d *decree) put(key string, by aweigh.Hash) {
	o := d.objects[key]
	if o == nil {
		o = &ruled{uid: aweigh.NewUID(by, 0), names: map[string]int64{key: 0}}
		d.objects[key] = o
	}
	for name := range o.names { // order-free: each for itself
		o.names[name]++
	}
}

// drop takes a name away.
func (d *decree) drop(key string) {
	if o := d.objects[key]; o != nil {
		delete(o.names, key)
		delete(d.objects, key)
	}
}
