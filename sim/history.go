package sim

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// history is what clients asked and were told.
type history struct {
	deeds    []*deed
	told     []told
	waiting  int // requests that wait for an answer
	reads    int
	finality []time.Duration
}

// told is an acknowledged mutation and its outcome, which must stand.
type told struct {
	at       *Node
	mutation aweigh.Hash
	outcome  scope.Outcome
	height   aweigh.Height
}

// asked notes a request, of which nothing is known until it is answered.
func (x *watch) asked(d *deed) {
	d.begin, d.unknown = x.w.Now(), true
	x.deeds = append(x.deeds, d)
	x.waiting++
}

// forget takes a request back that was refused before anything could come of it.
func (x *watch) forget(d *deed) {
	x.deeds = slices.DeleteFunc(x.deeds, func(o *deed) bool { return o == d })
	x.waiting--
}

// answered notes the outcome of a write.
func (x *watch) answered(at *Node, d *deed, r node.Reply) {
	w := x.w
	x.waiting--
	d.end, d.unknown = w.Now(), false
	d.failed = d.kind == "swap" && !r.Outcome.Succeeded
	if d.failed {
		x.reach("compare failed")
	}
	x.acked = max(x.acked, r.Height)
	x.told = append(x.told, told{at, r.Mutation, *r.Outcome, r.Height})
	x.finality = append(x.finality, d.end-d.begin)
	w.log(at, "done", "client %d: %s %s at height %d, revision %d", d.client, d.kind, d.key, r.Height, r.Outcome.Revision)
}

// readDone notes what a read found.
func (x *watch) readDone(at *Node, d *deed) {
	x.waiting--
	x.reads++
	d.end, d.unknown = x.w.Now(), false
	x.w.log(at, "done", "client %d: read %s", d.client, d.key)
}

// register is the sequential meaning of one key, for porcupine: what is read is
// what was written last.
var register = porcupine.Model{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		var keys []string
		for _, op := range ops {
			k := op.Input.(*deed).key
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
		d, now := input.(*deed), state.(string)
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

// linearizable looks whether all that clients were told fits one order in time
// (Herlihy and Wing, 1990). A request that was never answered took effect if the
// longest chain holds it, and then no later than its block was first final.
func (x *watch) linearizable(longest *scope.State) {
	var ops []porcupine.Operation
	for _, d := range x.deeds {
		end := int64(d.end)
		if d.unknown {
			r, ok, err := longest.Outcome(d.mutation)
			must.OK(err, "reading an outcome")
			if !ok { // a read, or nothing came of it
				continue
			}
			d.failed = d.kind == "swap" && !r.Succeeded
			end = int64(x.finalAt[r.Height])
		}
		ops = append(ops, porcupine.Operation{ClientId: d.client, Input: d, Call: int64(d.begin), Return: end})
	}
	x.w.holds(Linearizable, nil, porcupine.CheckOperations(register, ops), "the %d requests of all clients fit no order in time", len(ops))
}
