package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// rules draws the approvals that the rules of a world with actors require, in three worlds of four, and actors for
// half of the worlds that have none and no scopes below the root's.
func (d drawing) rules(s *Scenario) {
	ahead := slices.ContainsFunc(s.Faults.Timed, func(f Fault) bool { return f.Kind == "ahead" })
	if s.Load.Acts == 0 && !s.Nests() && !ahead && d.one(2) {
		s.Load.Acts = 5 + d.IntN(40)
	}
	if s.Load.Acts == 0 || d.one(4) {
		return
	}
	for range rules {
		s.Network.When = append(s.Network.When, d.predicate(2))
	}
	if d.one(3) { // all may write
		s.Network.When[len(rules)-1] = ""
	}
	if s.Rules().Check() != nil { // it may take too many steps
		s.Network.When = nil
	}
}

// predicate is a truth about all that predicates may look at, with parts so deep in each other at most.
func (d drawing) predicate(depth int) string {
	is := func() string { return []string{"==", "!=", "<", "<=", ">", ">="}[d.IntN(6)] }
	if depth == 0 {
		return []string{"object.exists", "true", "caller.anchor != ''", "object.key.endsWith('k1')", "scope.mode == 'bft'"}[d.IntN(5)]
	}
	less := func() string { return d.predicate(depth - 1) }
	switch d.IntN(12) {
	case 0:
		return less() + " && " + less()
	case 1:
		return "(" + less() + " || " + less() + ")"
	case 2:
		return "!(" + less() + ")"
	case 3:
		return fmt.Sprintf("(%s ? %s : %s)", less(), less(), less())
	case 4, 5, 6:
		return d.number(depth) + " " + is() + " " + d.number(depth)
	case 7:
		return d.text() + " " + is() + " " + d.text()
	case 8:
		return fmt.Sprintf("%s.%s(%s)", d.text(), []string{"startsWith", "endsWith", "contains"}[d.IntN(3)], d.text())
	case 9:
		return fmt.Sprintf("%s in [%s, %s]", d.number(1), d.number(1), d.number(1))
	case 10:
		loop := []string{"all", "exists", "exists_one"}[d.IntN(3)]
		return fmt.Sprintf("[%s, %s, 3].%s(i, i %s %s)", d.number(1), d.number(1), loop, is(), d.number(1))
	}
	return "object.value " + is() + " bytes(" + d.text() + ")"
}

// number is a part that gives a number. Some cannot be worked out for some objects.
func (d drawing) number(depth int) string {
	if depth == 0 || d.one(2) {
		return []string{"object.version", "caller.weight", "scope.height", "scope.epoch", "now", "0", "1", "2", "3", "-1"}[d.IntN(10)]
	}
	switch d.IntN(4) {
	case 0:
		return "size(" + d.text() + ")"
	case 1:
		return "size(object.value)"
	case 2:
		return "[1, 2, 3][" + d.number(depth-1) + "]"
	}
	return "(" + strings.Join([]string{d.number(depth - 1), d.number(depth - 1)}, " "+[]string{"+", "-", "*", "/", "%"}[d.IntN(5)]+" ") + ")"
}

// text is a part that gives a text.
func (d drawing) text() string {
	return []string{"object.key", "object.uid", "caller.id", "caller.anchor", "verb", "scope.prefix", "scope.mode", "'n0'", "'/act/own/k1'", "'a'", "''", "string(object.version)", "(verb + caller.anchor)"}[d.IntN(13)]
}
