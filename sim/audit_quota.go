package sim

import (
	"errors"

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
	for _, u := range all {
		for i := range x.w.Genesis.Policy.Authors {
			a := &x.w.Genesis.Policy.Authors[i]
			if a.Name != u.Name {
				continue
			}
			q, made := &a.Quota, u.Made(&a.Quota, state.Head().Time)
			for _, c := range [][2]int64{{made, q.Burst()}, {u.Bytes, q.Bytes}, {u.Leases, q.Leases}, {u.Motions, q.Motions}} {
				x.w.holds(Access, n, c[0] <= c[1], "at height %d the entry %s has %+v, %d of them at its rate; it may have %+v", state.Height(), u.Name, u.Usage, made, *q)
			}
		}
	}
}

// exhausted notes that an entry had no room for a mutation.
func (x *watch) exhausted(o *scope.Outcome) {
	switch why := scope.Failure(o.Reason); {
	case errors.Is(why, scope.ErrRate):
		x.reach("rate used up")
	case errors.Is(why, scope.ErrQuota):
		x.reach("quota used up")
	}
}
