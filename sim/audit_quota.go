package sim

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// quotas checks that no entry of the authors has more than its quota. Decisions of a simulated world take entries away
// and give them back as they were.
func (x *watch) quotas(n *Node, state *scope.State) {
	if !x.w.Scenario.Quotas() || x.w.number > 0 {
		return
	}
	all, err := state.Usages()
	must.OK(err, "reading usages")
	leases := int64(0)
	for _, u := range all {
		leases += u.Leases
		for i := range x.w.Genesis.Policy.Authors {
			a := &x.w.Genesis.Policy.Authors[i]
			if a.Name != u.Name {
				continue
			}
			if a.Quota.Leases > 0 && u.Leases > 0 {
				x.reach("lease charged")
			}
			q, made := &a.Quota, u.Made(&a.Quota, state.Head().Time)
			for _, c := range [][2]int64{{made, q.Burst()}, {u.Bytes, q.Bytes}, {u.Leases, q.Leases}, {u.Motions, q.Motions}} {
				x.w.holds(Access, n, c[0] <= c[1], "at height %d the entry %s has %+v, %d of them at its rate; it may have %+v", state.Height(), u.Name, u.Usage, made, *q)
			}
		}
	}
	if slices.ContainsFunc(x.w.Genesis.Policy.Authors, unbounded) { // a lease may count under none
		return
	}
	there, err := state.Leases()
	must.OK(err, "reading leases")
	x.w.holds(Access, n, leases == int64(len(there)), "at height %d entries have %d leases, and %d are there", state.Height(), leases, len(there))
}

// unbounded reports whether an entry permits leases without a quota.
func unbounded(a scope.Author) bool {
	return a.Quota.Leases == 0 && (len(a.Verbs) == 0 || slices.Contains(a.Verbs, "lease"))
}

// exhausted notes that an entry had no room for a mutation.
func (x *watch) exhausted(m *scope.CheckedMutation, o *scope.Outcome) {
	switch why := scope.Failure(o.Reason); {
	case errors.Is(why, scope.ErrRate):
		x.reach("rate used up")
	case errors.Is(why, scope.ErrQuota) && m.Class == scope.Lease:
		x.reach("lease over quota")
	case errors.Is(why, scope.ErrQuota):
		x.reach("quota used up")
	}
}
