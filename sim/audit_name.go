package sim

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// called is an alias at a height.
type called struct {
	height aweigh.Height
	alias  string
}

// names compares a node's aliases with those of other nodes at this height: one
// alias names one object, which claims it, and no other object does.
func (x *watch) names(n *Node) {
	if x.w.Scenario.Load.Names == 0 || n.excused() {
		return
	}
	s := n.state()
	claimed := make(map[string]aweigh.UID)
	seen := make(map[aweigh.UID]bool)
	for i := range aliasCount {
		key := x.w.aliasName(i)
		r, ok, err := s.Resolve([]byte(key))
		must.OK(err, "resolving an alias")
		var u aweigh.UID
		if ok {
			u = r.Kv.UID
			x.w.holds(Identity, n, r.Claims, "%s is found as %s under %q, which does not claim it", key, u, r.Kv.Key)
		}
		at := called{s.Height(), key}
		was, known := x.called[at]
		x.called[at] = u
		if known {
			x.w.holds(Identity, n, was == u, "%s names %s at height %d here, and %s elsewhere", key, u, at.height, was)
		}
		if !ok || seen[u] {
			continue
		}
		seen[u] = true
		a, err := s.Aliases(u)
		must.OK(err, "reading aliases")
		for _, k := range a.Keys {
			other, twice := claimed[string(k)]
			claimed[string(k)] = u
			x.w.holds(Identity, n, !twice, "both %s and %s claim %q", other, u, k)
		}
		if len(a.Keys) > 1 {
			x.reach("further alias")
		}
		if r.Moved != nil {
			x.reach("moved alias")
		}
	}
}

// once reads a node's whole lineage, those of the scopes above having been read, and that of a scope that came home
// before what came: no UID comes to be twice, in whichever scope, and nothing happens to an object after its end, or in
// a scope that handed it over, but in the one that took it.
func (x *watch) once(n *Node) {
	if x.w.island || x.read { // its objects live in the scope as well
		return
	}
	x.read = true
	if d := x.w.Genesis.Descent; d != nil && x.w.find(d.Parent).watch.lost {
		return
	}
	log := n.state().Lineage()
	for i := range log.Size() {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		if e.Object.IsZero() {
			continue
		}
		where, known := x.lives[e.Object]
		ok := where == x.w.id
		switch e.Class {
		case lineage.Insert:
			ok = !known
		case lineage.TakenOver:
			ok = x.w.Genesis.Descent != nil && where == leaving(x.w.Genesis.Descent.Parent)
		case lineage.CameHome:
			where, known = x.cameFrom(&e)
			ok = known
		case lineage.HandedOver: // under each of its names
			ok = ok || where == leaving(x.w.id)
		}
		x.w.holds(Identity, n, ok, "entry %d, %s of %s: known before: %v, here: %v", i, e.Class, e.Object, known, where == x.w.id)
		switch e.Class {
		case lineage.Delete:
			x.lives[e.Object] = aweigh.ScopeID{}
		case lineage.HandedOver:
			x.lives[e.Object] = leaving(x.w.id)
		default:
			x.lives[e.Object] = x.w.id
		}
	}
}

// cameFrom reads the lineage of the scope from which an object came home, and gives where the object was until then,
// and whether that is right. What liars certify together may have been anywhere but here.
func (x *watch) cameFrom(e *lineage.Entry) (where aweigh.ScopeID, ok bool) {
	from, named := scope.ParseHome(e.Reason)
	c := x.w.find(from)
	if !named || c == nil {
		return where, false
	}
	p := c.closedPart()
	if p == nil || c.watch.lost {
		where = x.lives[e.Object]
		return where, where != x.w.id
	}
	c.watch.once(p)
	where = x.lives[e.Object]
	return where, where == c.id
}

// leaving stands for a scope that handed an object over.
func leaving(id aweigh.ScopeID) aweigh.ScopeID {
	return aweigh.ScopeID(aweigh.Sum([]byte("left"), id[:]))
}
