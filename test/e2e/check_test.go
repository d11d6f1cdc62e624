package e2e

import (
	"fmt"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// register is a key as a register with compare-and-swap: its state is the value.
var register = porcupine.Model{
	Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		for _, op := range ops {
			key := op.Input.(operation).key
			byKey[key] = append(byKey[key], op)
		}
		parts := make([][]porcupine.Operation, 0, len(byKey))
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		op := input.(operation)
		switch op.kind {
		case get:
			return op.read == state, state
		case put:
			return true, op.value
		case del:
			return true, ""
		}
		held := op.old == state
		if held {
			state = op.value
		}
		return op.fate == unknown || held == op.held, state
	},
	DescribeOperation: func(input, _ any) string { return input.(operation).String() },
}

// linearizable checks that every key behaved as one register: each operation
// took effect at one instant between its call and its answer, or, if its fate is
// unknown, at any later one. Writes of unknown fate whose value never appeared
// among the changes are left out: they must not have had an effect yet, so a
// reader who saw such a value anyway is found.
func linearizable(ops []operation, all []change, limit time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	appeared := make(map[string]bool)
	for _, c := range all {
		appeared[c.value] = true
	}
	var checked []porcupine.Operation
	for _, op := range ops {
		if op.fate == refused || op.fate == unknown && (op.kind == get || op.kind != del && !appeared[op.value]) {
			continue
		}
		checked = append(checked, porcupine.Operation{
			ClientId: op.client, Input: op, Call: int64(op.call), Return: int64(op.answer),
		})
	}
	return porcupine.CheckOperationsVerbose(register, checked, limit)
}

// kept checks operations against the changes that the network remembers: what
// was acknowledged is there with its revision, nothing is there twice or
// although it was refused, and every read is of its revision.
func kept(ops []operation, all []change) (wrong []string) {
	object := func(op operation, format string, args ...any) {
		wrong = append(wrong, op.String()+": "+fmt.Sprintf(format, args...))
	}
	at := make(map[int64]change) // each operation changes one key
	times := make(map[string]int)
	byKey := make(map[string][]change)
	for i, c := range all {
		if i > 0 && c.revision <= all[i-1].revision {
			wrong = append(wrong, fmt.Sprintf("revision %d follows revision %d", c.revision, all[i-1].revision))
		}
		at[c.revision] = c
		byKey[c.key] = append(byKey[c.key], c)
		if times[c.value]++; c.value != "" && times[c.value] > 1 {
			wrong = append(wrong, fmt.Sprintf("%s was written %d times", c.value, times[c.value]))
		}
	}
	for _, op := range ops {
		switch {
		case op.fate == refused:
			if op.value != "" && times[op.value] > 0 {
				object(op, "but it is there")
			}
		case op.fate == unknown:
		case op.kind == put || op.kind == swap && op.held:
			if c := at[op.revision]; c.key != op.key || c.value != op.value {
				object(op, "lost: there is %s %q", c.key, c.value)
			}
		case op.kind == swap:
			if times[op.value] > 0 {
				object(op, "but it is there")
			}
		case op.kind == get || op.kind == del:
			if c := newest(byKey[op.key], op.revision); c.value != op.read {
				object(op, "at that revision it is %q", c.value)
			}
		}
	}
	return wrong
}

// newest is the last change up to a revision.
func newest(of []change, revision int64) change {
	i := sort.Search(len(of), func(i int) bool { return of[i].revision > revision })
	if i == 0 {
		return change{}
	}
	return of[i-1]
}

// inRealTime checks that revisions rise with time, over all keys: what began
// after something else was answered has no older revision, and a newer one if it
// wrote. With kept, this makes the whole scope linearizable, not each key alone.
func inRealTime(ops []operation) (wrong []string) {
	var answered []operation
	for _, op := range ops {
		if op.fate == done {
			answered = append(answered, op)
		}
	}
	begun := append([]operation(nil), answered...)
	sort.Slice(answered, func(i, j int) bool { return answered[i].answer < answered[j].answer })
	sort.Slice(begun, func(i, j int) bool { return begun[i].call < begun[j].call })
	next, highest := 0, operation{}
	for _, op := range begun {
		for ; next < len(answered) && answered[next].answer < op.call; next++ {
			if answered[next].revision > highest.revision {
				highest = answered[next]
			}
		}
		wrote := op.kind == put || op.kind == swap && op.held
		if op.revision < highest.revision || wrote && op.revision == highest.revision {
			wrong = append(wrong, fmt.Sprintf("%s: after %s", op, highest))
		}
	}
	return wrong
}
