package sim

import (
	"math/rand/v2"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
	"github.com/aweigh/aweigh/votes"
)

// execution runs a model of the scope beside its chain: the first node at which a block is final feeds the model, and
// the states of all nodes are compared with it.
type execution struct {
	model    *model.Model // nil: not begun
	off      bool         // no model: the scope above has none either
	rand     *rand.Rand
	heads    map[aweigh.Height]scope.Head // of the states that were compared first
	compared map[*Node]aweigh.Height      // up to which a node was
	replies  []reply                      // to be compared when their blocks are final
}

// reply is an answer to a client.
type reply struct {
	at      *Node
	height  aweigh.Height
	outcome scope.Outcome
}

func (x *watch) openExecution() {
	x.exec = execution{
		rand:  rand.New(rand.NewPCG(x.w.Scenario.Seed, 7+uint64(x.w.number)<<32)),
		heads: make(map[aweigh.Height]scope.Head), compared: make(map[*Node]aweigh.Height),
	}
}

// modelled is the model of the scope, nil if there is none.
func (x *watch) modelled() *model.Model {
	e, w := &x.exec, x.w
	if e.model != nil || e.off {
		return e.model
	}
	if w.island {
		if above := w.find(w.Genesis.Descent.Parent).watch.modelled(); above != nil {
			if e.model = model.Island(w.Genesis, above); e.model != nil {
				e.model.Within(w.bounds)
			}
		}
		return e.model
	}
	if w.number == 0 {
		e.model = model.New(w.Genesis).Within(w.bounds)
	} else if above := w.find(w.Genesis.Descent.Parent).watch.modelled(); above != nil {
		if e.model = model.Child(w.Genesis, above); e.model != nil {
			e.model.Within(w.bounds)
		}
	}
	e.off = e.model == nil
	return e.model
}

// executed compares the state of a node with the model. Of several blocks that became final in one step, it looks
// after the last.
func (x *watch) executed(n *Node, height aweigh.Height) {
	if x.lost {
		x.exec.off = true
		return
	}
	state := n.state()
	if m := x.modelled(); m != nil && state.Height() == height && x.learn(n, state) {
		x.differs(n, state)
		x.answers()
	}
}

// learn feeds the model with the blocks up to a node's state. It reports whether the model is of the same chain.
func (x *watch) learn(n *Node, state *scope.State) bool {
	m, head, log := x.exec.model, state.Head(), state.Lineage()
	history := machine.History{Reader: n.Disk, Scope: x.w.id}
	for m.Height() < head.Height {
		before := m.At(m.Height())
		b, err := history.Block(before.Height + 1)
		must.OK(err, "reading a final block")
		if b.Header.Parent != before.Block || int(b.Header.Epoch) >= len(x.w.epochs) {
			return false // a breach of agreement or rosters
		}
		told := model.Told{Epoch: x.w.epochs[b.Header.Epoch], First: before.Lineage, Closes: head.Closed && b.Header.Height == head.Height, Below: x.w.closedModel}
		if next := b.Header.Epoch + 1; !b.Header.Next.IsZero() && int(next) < len(x.w.epochs) {
			told.Quiet = x.w.epochs[next].Quiet && x.w.epochs[next].Root == b.Hash()
		}
		told.Outcome = func(bundle, mutation aweigh.Hash) (scope.Receipt, bool) {
			r, ok, err := state.OutcomeIn(bundle, mutation)
			must.OK(err, "reading an outcome")
			return r, ok
		}
		told.Impact = func(id votes.MotionID) *scope.Impact {
			all, err := state.Minutes(id)
			must.OK(err, "reading a motion")
			if all == nil { // the state has forgotten it since
				all, err = history.Minutes(id)
				must.OK(err, "reading a motion that was forgotten")
			}
			return all.Motion.Impact
		}
		for i := before.Lineage; i < head.LineageSize; i++ {
			e, _, err := log.Entry(i)
			must.OK(err, "reading an entry")
			if e.Height > b.Header.Height {
				break
			}
			told.Log = append(told.Log, e)
		}
		outcomes, differ := m.Apply(b, told)
		x.ruled(n, state, b, outcomes)
		x.rightful(n, state, b, told.Log)
		x.w.holds(Execution, n, len(differ) == 0, "block %d: %s", b.Header.Height, line(differ))
	}
	return m.At(head.Height).Block == head.Block
}

// closedModel is the model of a scope that closed, nil if there is none.
func (w *World) closedModel(id aweigh.ScopeID) *model.Model {
	c := w.find(id)
	if c == nil || c.watch.lost || c.watch.exec.model == nil || !c.watch.exec.model.Closed() {
		return nil
	}
	return c.watch.exec.model
}

// differs compares a node's changes since the last comparison, and now and then its whole state. A node whose
// head is that of another which was compared is looked at one time in three.
func (x *watch) differs(n *Node, state *scope.State) {
	e, head := &x.exec, state.Head()
	v := e.model.At(head.Height)
	x.quotas(n, state)
	before, known := e.heads[head.Height]
	if known {
		x.w.holds(Execution, n, head == before, "at height %d the head is %+v, and elsewhere %+v", head.Height, head, before)
	} else {
		e.heads[head.Height] = head
		d := v.CompareHead(head)
		x.w.holds(Execution, n, len(d) == 0, "at height %d: %s", head.Height, line(d))
	}
	if known && e.rand.IntN(3) > 0 {
		return
	}
	d := v.CompareSince(state, min(e.compared[n], head.Height))
	if e.compared[n] = head.Height; e.rand.IntN(8+int(head.Height)/16) == 0 { // more rarely as there is more to compare
		d = append(d, v.Compare(state, e.rand.IntN)...)
	}
	x.w.holds(Execution, n, len(d) == 0, "at height %d: %s", head.Height, line(d))
}

// line is the first of some lines.
func line(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// replied takes up an answer to a client.
func (x *watch) replied(n *Node, r machine.Reply) {
	if r.Outcome != nil && !n.excused() && !x.lost {
		x.exec.replies = append(x.exec.replies, reply{n, r.Height, *r.Outcome})
	}
}

// answers compares the answers to clients about the blocks that the model knows.
func (x *watch) answers() {
	e := &x.exec
	var rest []reply
	for _, r := range e.replies {
		if r.height > e.model.Height() {
			rest = append(rest, r)
			continue
		}
		want, ok := e.model.Outcome(r.outcome.Mutation)
		if !ok { // it expired, was refused, or exceeded its cost
			done := r.outcome.Code == scope.Applied || r.outcome.Code == scope.Pending || r.outcome.Code == scope.Duplicate
			x.w.holds(Execution, r.at, !done, "%s of a mutation that was never executed", r.outcome.Code)
			continue
		}
		got := r.outcome
		if got.Code == scope.Duplicate || len(got.Responses) == 0 { // asked for again: what is on record
			want.Responses, got.Responses, want.TTLs, got.TTLs = nil, nil, nil, nil
			want.Code = got.Code
		}
		if got.Code == scope.Expired { // asked for once more, in vain
			continue
		}
		x.w.holds(Execution, r.at, model.Same(got, want), "at height %d a client got\n %+v\nwant %+v", r.height, got, want)
	}
	e.replies = rest
}

// executions compares all that the nodes hold in the end.
func (x *watch) executions(held []*Node) {
	for _, n := range held {
		state := n.state()
		if m := x.modelled(); m != nil && x.learn(n, state) {
			d := m.At(state.Height()).Compare(state, x.exec.rand.IntN)
			x.w.holds(Execution, n, len(d) == 0, "in the end, at height %d: %s", state.Height(), line(d))
			x.answers()
			if n == held[0] && !x.w.island { // of which no block of its scope tells
				x.proofs(n)
			}
		}
	}
}

// modelled is how many mutations the models of all scopes executed, and how many outcomes they
// took from nodes.
func (w *World) modelled() (executed uint64, unmodelled []Count) {
	all := make(map[string]uint64)
	for _, c := range w.scopes {
		if m := c.watch.exec.model; m != nil {
			executed += uint64(m.Executed)
			for kind, n := range m.Unmodelled { // order-free: sums
				all[kind] += uint64(n)
			}
		}
	}
	return executed, counts(all)
}
