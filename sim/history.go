package sim

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// history has the clients' requests and answers.
type history struct {
	told      []acknowledged
	outcomes  map[aweigh.Hash]scope.Receipt // of the clients' mutations, as they stood when their block was first final
	undecided []*operation                  // writes that may still be applied
}

// acknowledged is an acknowledged mutation and its outcome, which must stand.
type acknowledged struct {
	at       *Node
	mutation aweigh.Hash
	outcome  scope.Outcome
	height   aweigh.Height
	until    aweigh.Instant // receipts are kept until then
}

// asked notes a request, of which nothing is known until it is answered.
func (x *watch) asked(d *operation) {
	if d.unknown = true; !slices.Contains(x.deeds, d) {
		d.begin = x.w.Now()
		x.deeds = append(x.deeds, d)
	}
	if d.kind != "read" {
		x.undecided = append(x.undecided, d)
	}
}

// forget takes a request back that was refused before anything could come of it.
func (x *watch) forget(d *operation) {
	x.deeds = slices.DeleteFunc(x.deeds, func(o *operation) bool { return o == d })
}

// answered notes the outcome of a write.
func (x *watch) answered(at *Node, d *operation, r machine.Reply) {
	w := x.w
	d.end, d.unknown = w.Now(), false
	d.failed = d.kind == "swap" && !r.Outcome.Succeeded
	d.refused = r.Outcome.Code != scope.Applied
	d.exceeded = r.Outcome.Code == scope.Exceeded
	if d.failed {
		x.reach("compare failed")
	}
	if d.learn != nil {
		d.learn(*r.Outcome)
	}
	x.told = append(x.told, acknowledged{at, r.Mutation, *r.Outcome, r.Height, d.until})
	x.finality = append(x.finality, d.end-d.begin)
	w.log(at, "done", "client %d: %s %s at height %d, revision %d", d.client, d.kind, d.key, r.Height, r.Outcome.Revision)
}

// readDone notes what a read found.
func (x *watch) readDone(at *Node, d *operation) {
	x.reads++
	d.end, d.unknown = x.w.Now(), false
	x.w.log(at, "done", "client %d: read %s", d.client, d.key)
}

// register is the sequential meaning of one key, for porcupine: a read returns
// the last write.
var register = porcupine.Model{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		var keys []string
		for _, op := range ops {
			k := op.Input.(*operation).key
			if byKey[k] == nil {
				keys = append(keys, k)
			}
			byKey[k] = append(byKey[k], op)
		}
		slices.Sort(keys)
		parts := make([][]porcupine.Operation, len(keys))
		for i, k := range keys {
			parts[i] = byKey[k]
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		d, now := input.(*operation), state.(string)
		switch {
		case d.kind == "write":
			return true, d.value
		case d.kind == "read":
			return d.got == now, now
		case d.failed:
			return d.was != now, now
		}
		return d.was == now, d.value
	},
}

// settle notes the effects for clients of a block that is final for the first
// time: receipts are forgotten once a mutation can no longer be applied.
func (x *watch) settle(n *Node, height aweigh.Height) {
	state := n.state()
	if head := state.Head(); head.Height == height {
		x.digests[height] = head.Digest
	}
	x.undecided = slices.DeleteFunc(x.undecided, func(d *operation) bool {
		r, ok, err := state.Outcome(d.mutation)
		must.OK(err, "reading an outcome")
		over := d.until < state.Head().Time
		if !ok && over {
			r, ok = retraced(state, d.mutation, height)
		}
		if ok {
			x.outcomes[d.mutation] = r
		}
		return ok || over
	})
}

// retraced is the receipt of a mutation that changed a key in a block from a height on, where a later block,
// final in the same step, forgot it: the lineage forgets nothing.
func retraced(s *scope.State, mutation aweigh.Hash, height aweigh.Height) (scope.Receipt, bool) {
	for i := s.Head().LineageSize - 1; i >= 0; i-- {
		e, _, err := s.Lineage().Entry(i)
		must.OK(err, "reading an entry")
		if e.Height < height {
			break
		}
		if e.Mutation == mutation && (e.Class == lineage.Insert || e.Class == lineage.Update) {
			return scope.Receipt{Code: scope.Applied, Succeeded: true, Height: e.Height, Revision: e.Revision}, true
		}
	}
	return scope.Receipt{}, false
}

// linearizable checks that all answers to clients fit one order in time
// (Herlihy and Wing, 1990). A request that was never answered took effect if a
// final block holds it, and then no later than that was first final.
func (x *watch) linearizable() {
	var ops []porcupine.Operation
	for _, d := range x.deeds {
		if d.exceeded { // nothing was done, even if it is ordered again
			continue
		}
		if d.kind == "name" || x.w.forsaken(d.key) { // no register: see watch.names
			continue
		}
		end := int64(d.end)
		if d.unknown {
			if d.in == nil || d.nothing { // a read, or nothing came of it
				continue
			}
			in := &d.in.watch
			r, ok := in.outcomes[d.mutation]
			if !ok || r.Code == scope.Failed {
				continue
			}
			d.failed = d.kind == "swap" && !r.Succeeded
			end = int64(in.finalAt[r.Height])
		}
		ops = append(ops, porcupine.Operation{ClientId: d.client, Input: d, Call: int64(d.begin), Return: end})
	}
	if len(ops) == 0 {
		return
	}
	for _, of := range register.Partition(ops) {
		key, why := of[0].Input.(*operation).key, zones(of)
		x.w.governing(key).holds(Linearizable, nil, why == "", "requests for %s fit no order in time: %s", key, why)
	}
	ops = slices.DeleteFunc(ops, func(o porcupine.Operation) bool { return o.Input.(*operation).probe }) // the search is for few at once
	if len(ops) == 0 {
		return
	}
	// Where dozens of requests were open at once, to find an order may take for ever.
	found := porcupine.CheckOperationsTimeout(register, ops, orderWithin)
	if found == porcupine.Unknown {
		x.w.say("an order of all %d requests was looked for during %v, and neither found nor ruled out", len(ops), orderWithin)
		return
	}
	x.w.holds(Linearizable, nil, found != porcupine.Illegal, "the %d requests of all clients fit no order in time", len(ops))
}

// orderWithin is how long an order of all requests is looked for, beyond what zones rule out. It is the one
// clock of the real world in a run: what takes longer counts as no look.
const orderWithin = 20 * time.Second
