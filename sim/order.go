package sim

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Asked is a request about one key, for Order.
type Asked struct {
	Client       int
	Kind         string // read, write or swap
	Key          string
	Value, Was   string // written; expected by a swap
	Got          string // read
	Failed       bool   // a swap that found another value
	Begin, End   time.Duration
	Undetermined bool // no answer came, and it was done: at any moment after Begin
}

// Order reports why requests fit no order in time (Herlihy and Wing, 1990), "" if they fit one. It is the check
// of invariant Linearizable for tests that drive nodes in another way than a World.
func Order(all []Asked) (why string) {
	ops := make([]porcupine.Operation, len(all))
	for i := range all {
		a := &all[i]
		d := &operation{client: a.Client, kind: a.Kind, key: a.Key, value: a.Value, was: a.Was, got: a.Got, failed: a.Failed}
		ops[i] = porcupine.Operation{ClientId: a.Client, Input: d, Call: int64(a.Begin), Return: int64(a.End)}
		if a.Undetermined {
			ops[i].Return = math.MaxInt64
		}
	}
	for _, of := range register.Partition(ops) {
		if why := zones(of); why != "" {
			return "requests for " + of[0].Input.(*operation).key + ": " + why
		}
		if porcupine.CheckOperationsTimeout(register, of, orderWithin) == porcupine.Illegal {
			return "requests for " + of[0].Input.(*operation).key + " fit no order in time"
		}
	}
	return ""
}
