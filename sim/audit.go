package sim

import (
	"cmp"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// audit looks at what every node holds in the end, in each scope.
func (w *World) audit() {
	w.watch.linearizable()
	for _, c := range w.scopes {
		if !c.watch.lost {
			c.auditScope()
		}
		for _, n := range c.Nodes {
			if c.number > 0 && n.root().honest() && n.founded() || w.Scenario.Nests() && c.number == 0 && !n.excused() {
				c.watch.region(n)
			}
		}
	}
	w.auditIsles()
	w.versions()
	if !w.watch.lost {
		w.auditStores()
	}
	w.holds(Genuine, nil, w.made.doubt == nil, "a signature that its key made does not verify: %v", w.made.doubt)
}

// held is the nodes that are held to the invariants, and the one of them that has the
// longest chain. A scope may not be founded yet where a node crashed.
func (w *World) held() (all []*Node, best *Node) {
	for _, n := range w.Nodes {
		if !n.excused() && n.founded() {
			all = append(all, n)
		}
	}
	if len(all) > 0 {
		best = slices.MaxFunc(all, func(a, b *Node) int { return cmp.Compare(a.state().Head().Height, b.state().Head().Height) })
	}
	return all, best
}

// founded reports whether the node's disk holds a state of the scope.
func (n *Node) founded() bool {
	if n.world.number == 0 || n.machine != nil {
		return true
	}
	_, err := scope.Open(n.Disk, n.world.id)
	return err == nil
}

func (w *World) auditScope() {
	x := &w.watch
	x.accountable()
	held, best := w.held()
	if len(held) == 0 {
		return
	}
	longest := best.state()
	x.chain(best)
	x.durable(best)
	x.leases(best)
	x.once(best)
	x.fates(held, best)
	x.executions(held)
	heads := make(map[aweigh.Height]scope.Head)
	for _, n := range held {
		head := n.state().Head()
		same, known := heads[head.Height]
		if known {
			w.holds(Validity, n, same.Digest == head.Digest, "height %d leads to state %s here, and to %s elsewhere",
				head.Height, head.Digest.Short(), same.Digest.Short())
		}
		heads[head.Height] = head
		x.names(n)
		x.keeps(n)
		x.recorded(n)
		x.lineage(n, best, longest.Lineage())
		for i := range w.Scenario.Load.Keys { // of all scopes: those of others are not there
			if kv, ok := n.get(w.keyName(i)); ok {
				x.uid(n, kv)
			}
		}
		if n.machine != nil {
			e := n.machine.Epoch()
			w.holds(Rosters, n, int(e.Number) < len(w.epochs) && sameTerms(e, w.epochs[e.Number]), "another roster or policy in epoch %d", e.Number)
			x.bounded(n)
		}
	}
}

// sameTerms reports whether two epochs have one roster and policy, by their
// names when they were made and by the values in use.
func sameTerms(a, b *scope.Epoch) bool {
	return a.Domain() == b.Domain() && a.Roster.Weights.Hash() == b.Roster.Weights.Hash() && a.Policy.Rules == b.Policy.Rules
}

func (n *Node) state() *scope.State {
	s, err := scope.Open(n.Disk, n.world.id)
	must.OK(err, "reading the state")
	return s.Within(n.world.bounds)
}

// chain reads all final blocks of a node: every mutation is authentic, and
// stands there once (P21).
func (x *watch) chain(n *Node) {
	w := x.w
	history := machine.History{Reader: n.Disk, Scope: w.id}
	applied := make(map[aweigh.Hash]aweigh.Height)
	barred := make(map[int]bool)
	var before *scope.Header
	for at := aweigh.Height(1); at <= n.state().Head().Height; at++ {
		raw, err := history.Raw(at)
		must.OK(err, "reading a block")
		b, err := scope.DecodeBlock(raw, scope.MostLimits(), w.verify)
		w.holds(Validity, n, err == nil && b.Header.Height == at, "the final block at height %d does not hold: %v", at, err)
		if err != nil {
			return
		}
		if want, known := x.seen[at]; known && n.liar == nil {
			w.holds(Agreement, n, want == b.Hash(), "height %d is %s in the end, and was %s", at, b.Hash().Short(), want.Short())
		}
		x.ending.chained(w, n, before, b)
		before = &b.Header
		place := uint32(0)
		for _, c := range b.Bundles {
			for i := range c.Mutations() {
				id := c.Mutations()[i].ID
				r, done := x.outcomeOf(n, id)
				if place++; !done || r.Height != at || r.Index != place-1 {
					continue // a duplicate, which execution skipped
				}
				first, twice := applied[id]
				w.holds(Validity, n, !twice || first == at, "mutation %s stands at heights %d and %d", id.Short(), first, at)
				applied[id] = at
			}
		}
		for _, p := range b.Proofs {
			barred[w.anchors[p.Anchor()]] = true
		}
	}
	for i := range w.Nodes {
		if barred[i] {
			w.holds(Honour, n, !w.Nodes[i].honest() && x.within, "a proof of fault against node %d stands in a final block", i)
			x.proven[i] = true
			x.reach("proven equivocator")
		}
	}
}

func (x *watch) outcomeOf(n *Node, id aweigh.Hash) (scope.Receipt, bool) {
	r, ok, err := n.state().Outcome(id)
	must.OK(err, "reading an outcome")
	return r, ok
}

// lineage holds a node's log to growing only, and to being a beginning of the
// longest one: RFC 6962 proofs made by one node and verified with the other's head.
func (x *watch) lineage(n, best *Node, longest *lineage.Log) {
	head, err := n.state().Lineage().Head()
	must.OK(err, "reading the lineage")
	whole, err := longest.Head()
	must.OK(err, "reading the lineage")
	if head.Size == 0 || head.Size > whole.Size || n == best {
		return
	}
	p, err := longest.ProveConsistency(head.Size, whole.Size)
	if err == nil {
		err = p.Verify(head, whole)
	}
	x.w.holds(Lineage, n, err == nil, "its log of %d entries is no beginning of that of %s, with %d: %v", head.Size, best, whole.Size, err)
	at := int64(n.Index) % head.Size
	e, _, err := n.state().Lineage().Entry(at)
	must.OK(err, "reading an entry")
	in, err := longest.Prove(at, whole.Size)
	if err == nil {
		err = in.Verify(e.Hash(), whole)
	}
	x.w.holds(Lineage, n, err == nil, "entry %d is not in the log of %s: %v", at, best, err)
}

// durable checks that each acknowledged write is in the longest chain, and at the node that
// acknowledged it. Blocks that only a faulty node knows to be final yet are left out.
func (x *watch) durable(best *Node) {
	head := best.state().Head().Height
	for _, t := range x.told {
		if t.at.excused() && t.height > head {
			continue
		}
		for _, n := range []*Node{best, t.at} {
			if n.excused() || !n.founded() || n != best && n.state().Head().Height < t.height { // a node may learn it anew after a start
				continue
			}
			r, ok, err := n.state().Outcome(t.mutation)
			must.OK(err, "reading an outcome")
			if t.outcome.Code == scope.Exceeded {
				x.w.holds(Durable, n, !ok, "%s was told that mutation %s exceeded its cost; in the end it stands at height %d",
					t.at, t.mutation.Short(), r.Height)
				continue
			}
			if !ok && t.until < n.state().Head().Time { // forgotten since
				r, ok = x.outcomes[t.mutation]
			}
			x.w.holds(Durable, n, ok && r.Height == t.height && r.Revision == t.outcome.Revision && r.Succeeded == t.outcome.Succeeded,
				"%s was told height %d, revision %d of mutation %s; in the end it stands at height %d, revision %d, on record: %v",
				t.at, t.height, t.outcome.Revision, t.mutation.Short(), r.Height, r.Revision, ok)
		}
	}
}

// accountable asks, if agreement broke, for proofs against more than the budget.
func (x *watch) accountable() {
	if x.verdicts[Agreement].Broken == 0 {
		return
	}
	var weight uint64 // of the anchors that contradicted themselves in one epoch, the most in any
	for epoch, guilty := range x.evidence.guilty() {
		var of uint64
		for a := range guilty {
			if int(epoch) < len(x.w.epochs) {
				of += x.w.epochs[epoch].Roster.Weights.Of(a)
			}
			x.proven[x.w.anchors[a]] = true
		}
		weight = max(weight, of)
	}
	x.w.holds(Accountability, nil, weight > x.budget, "agreement broke, but the ballots on hand prove only a weight of %d at fault, of a budget of %d", weight, x.budget)
}
