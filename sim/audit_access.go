package sim

import (
	"errors"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
)

// ruled checks a block's effects against the rules of the policy: actions, changes of users, and all denials, by the
// model.
func (x *watch) ruled(n *Node, state *scope.State, b *scope.Block, want []scope.Outcome) {
	for i := range want {
		w := &want[i]
		m := mutationOf(b, i)
		got, ok, err := state.Outcome(m.ID)
		must.OK(err, "reading an outcome")
		if !ok || got.Height != b.Header.Height || int(got.Index) != i {
			continue // another block or bundle did it, or it came too late
		}
		x.exhausted(m, w)
		denied := errors.Is(scope.Failure(got.Reason), scope.ErrDenied) || errors.Is(scope.Failure(w.Reason), scope.ErrDenied)
		if denied && x.posed[m.ID] {
			x.reach("pretence failed")
		}
		if m.Class != scope.Act && m.Class != scope.Permit && !denied {
			continue
		}
		x.w.holds(Access, n, got.Code == w.Code && got.Reason == w.Reason, "%s of %s at height %d is %s (%s), and the rules say: %s (%s)",
			m.Class, m.ID.Short(), b.Header.Height, got.Code, got.Reason, w.Code, w.Reason)
		if w.Code == scope.Failed {
			x.reach("request denied")
		} else if m.Class == scope.Act {
			x.reach("action done")
		}
	}
}

// mutationOf is a mutation of a block by its place.
func mutationOf(b *scope.Block, i int) *scope.CheckedMutation {
	for _, c := range b.Bundles {
		if i < len(c.Mutations()) {
			return &c.Mutations()[i]
		}
		i -= len(c.Mutations())
	}
	return nil
}
