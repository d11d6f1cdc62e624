package sim

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Options choose what to keep of a run besides its Result.
type Options struct {
	Trace    io.Writer      // one readable line per event; nil: none
	Marks    int            // keep at most so many marks of events, and as many of messages, in each scope
	Progress func(Progress) // called now and then
	// States gets each state of votes in the root scope, by a name that similar ones share, and how many bytes of
	// the schedule were used until then.
	States func(state uint64, used int)
}

// Progress is where a run stands.
type Progress struct {
	Virtual time.Duration
	Of      time.Duration // until Stop
	Events  uint64
	Lowest  uint64 // final height of the honest node that has the least
	Highest uint64
	Attacks uint64
	Healing bool
}

// slice is how much virtual time passes between two looks at the world as a whole.
const slice = 20 * time.Millisecond

// Run runs a scenario. It fails only if the scenario makes no sense, with an
// error that wraps scenario.ErrInvalid, or if ctx ends.
func Run(ctx context.Context, s scenario.Scenario, o Options) (*Result, error) {
	w, err := NewWorld(s, o)
	if err != nil {
		return nil, err
	}
	w.startClients()
	w.scheduleFaults()
	w.government()
	w.startMotions()
	w.startIsles()
	pass := func(within time.Duration, done func() bool) error {
		for until := w.Now() + within; w.Now() < until && !w.watch.over() && !done(); {
			w.Run(min(slice, until-w.Now()), nil)
			if o.Progress != nil {
				o.Progress(w.progress())
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := pass(w.Scenario.Stop, func() bool { return false }); err != nil {
		return nil, err
	}
	var healed Healing
	if w.Scenario.Heal != nil && !w.watch.over() {
		if healed, err = w.healing(pass); err != nil {
			return nil, err
		}
	}
	if len(w.watch.broken) == 0 || len(s.Expect) > 0 {
		w.audit()
	}
	return w.result(healed), nil
}

// healChecks are the writes that a healed network must make final.
type healChecks struct {
	w     *World
	core  []*Node
	open  map[*Node]bool
	reach aweigh.Height // that all must, once all writes are final
	why   string
}

// mostWishes bounds the nodes through which a healed network is asked to write.
const mostWishes = 8

// wishAgain is after how long a node is asked again for a write that is not final.
const wishAgain = 10 * time.Second

// core is the honest nodes; lacks is a kind of vote for which they lack the
// weight that its rule requires, 0 if there is none.
func (w *World) core() (core []*Node, lacks quorum.Kind) {
	var weight uint64
	anchors := 0
	for _, n := range w.Nodes {
		if n.honest() && n.machine != nil {
			core = append(core, n)
			weight += w.weight(n)
			if w.weight(n) > 0 {
				anchors++
			}
		}
	}
	for _, k := range []quorum.Kind{quorum.Notarize, quorum.Nullify, quorum.Finalize} {
		if !w.rules.For(k).Met(weight, w.weights.Total(), anchors) {
			return core, k
		}
	}
	return core, 0
}

// startHealChecks asks honest nodes for a write each, if they have the weight for every
// rule; nil if they have not.
func (w *World) startHealChecks() *healChecks {
	core, lacks := w.core()
	if lacks != 0 {
		return nil
	}
	x := &healChecks{w: w, core: core, open: make(map[*Node]bool)}
	for _, i := range w.ask.Perm(len(x.core))[:min(len(x.core), mostWishes)] {
		x.open[x.core[i]] = true
		x.ask(x.core[i])
	}
	return x
}

// ask asks a node for a write, and for another one while none is final, as clients do. Where the scope's time is
// ahead, a write may have an old date, so that it is never ordered, or the node may not know the time yet, so that it
// is refused.
func (x *healChecks) ask(n *Node) {
	w := x.w
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(w.key("healed")), Value: []byte(n.root().String())}}}
	n.Submit(w.mutation(t, []byte(fmt.Sprintf("healed %04d", n.Index))), func(r machine.Reply) {
		if r.Outcome != nil {
			delete(x.open, n)
		}
	})
	w.at(wishAgain, func() {
		if x.open[n] {
			x.ask(n)
		}
	})
}

// met reports whether all are final, and all nodes have come as far as that.
func (x *healChecks) met() bool {
	if x.w.watch.lost || x.w.leaving() { // since an epoch in which more lie than may; or writes go to the scope above
		x.why = ""
		return true
	}
	for _, n := range x.core {
		if x.open[n] {
			x.why = fmt.Sprintf("a write at %s is not final", n)
			return false
		}
	}
	if x.reach == 0 { // a flood may keep the chain growing for ever
		for _, n := range x.core {
			x.reach = max(x.reach, n.Height)
		}
	}
	for _, n := range x.core {
		if n.Height < x.reach {
			x.why = fmt.Sprintf("%s stands at height %d, and another has been at %d", n, n.Height, x.reach)
			return false
		}
	}
	x.why = x.w.watch.lacks()
	return x.why == ""
}

// allHealChecks are those in all scopes.
type allHealChecks []*healChecks

// startAllHealChecks asks honest nodes for writes in all scopes in which they have the weight,
// nil if they have not in the root scope.
func (w *World) startAllHealChecks() (all allHealChecks) {
	root := w.startHealChecks()
	if root == nil {
		return nil
	}
	all = append(all, root)
	for _, c := range w.scopes[1:] {
		if c.watch.lost || c.island || c.leaving() {
			continue
		}
		if x := c.startHealChecks(); x != nil {
			all = append(all, x)
		}
	}
	return all
}

func (a allHealChecks) met() bool {
	for _, x := range a {
		if !x.met() {
			return false
		}
	}
	return true
}

func (a allHealChecks) why() string {
	for _, x := range a {
		if x.why != "" {
			return x.why
		}
	}
	return ""
}

func (w *World) progress() Progress {
	p := Progress{Virtual: w.Now(), Of: w.Scenario.Stop, Events: w.events, Healing: !w.firing}
	first := true
	for _, n := range w.Nodes {
		if n.honest() {
			h := uint64(n.Height)
			if first || h < p.Lowest {
				p.Lowest = h
			}
			p.Highest = max(p.Highest, h)
			first = false
		}
	}
	for _, c := range w.watch.attacks {
		p.Attacks += c
	}
	return p
}

// result is what came of the run.
func (w *World) result(healed Healing) *Result {
	x := &w.watch
	r := &Result{
		Scenario: w.Scenario, Trace: w.traceHash(), Events: w.events, Virtual: w.Now(),
		Verdicts: x.verdicts, Broken: x.broken, Healed: healed,
		Attacks: counts(x.attacks), Refused: counts(x.refusal), Proven: slices.Sorted(maps.Keys(x.proven)),
		Faulty: x.faulty, Budget: x.budget, Total: x.total,
		Reads: x.reads, Finality: x.finality,
		Epochs: x.standing.epochs, Pauses: x.pauses.all, Outgrown: x.outgrown,
		Messages: w.wires.messages, Bytes: w.wires.bytes, Nullified: w.nullified(), Marks: w.marked(),
	}
	r.Executed, r.Unmodelled = w.modelled()
	for _, c := range w.scopes {
		r.Blocks += len(c.watch.final)
		r.Writes += len(c.watch.told)
		if c != w {
			r.Scopes = append(r.Scopes, c.scopeRecord())
		}
	}
	for _, n := range w.Nodes {
		if n.liar != nil && n.Face == 0 {
			r.Liars = append(r.Liars, n.Index)
		}
		r.Heights = append(r.Heights, aweigh.Height(n.Height))
	}
	for _, g := range scenario.Goals {
		r.Goals = append(r.Goals, Count{g.Name, x.goals[g.Name]})
	}
	return r
}

func counts(m map[string]uint64) (c []Count) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		c = append(c, Count{name, m[name]})
	}
	return c
}
