package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// at makes an operation that was called and answered at times in milliseconds.
func at(call, answer int, op operation) operation {
	op.key, op.call, op.answer = "/k", time.Duration(call)*time.Millisecond, time.Duration(answer)*time.Millisecond
	if op.fate != done {
		op.answer, op.why = forever, errors.New("why")
	}
	return op
}

func wrote(revision int64, value string) change {
	return change{revision: revision, key: "/k", value: value}
}

// TestCheckersFindWrongHistories feeds histories to the checkers that the other
// tests rely on.
func TestCheckersFindWrongHistories(t *testing.T) {
	put1 := operation{kind: put, value: "1", revision: 1}
	put2 := operation{kind: put, value: "2", revision: 2}
	both := []change{wrote(1, "1"), wrote(2, "2")}
	read := func(value string, revision int64) operation {
		return operation{kind: get, read: value, revision: revision}
	}
	for _, c := range []struct {
		name   string
		ops    []operation
		all    []change
		legal  bool   // to linearizable
		kept   string // part of what is found, "" for nothing
		inTime bool
	}{
		{"a good one", []operation{at(0, 1, put1), at(2, 3, put2), at(4, 5, read("2", 2))}, both, true, "", true},
		{"concurrent writes in either order", []operation{at(0, 9, put2), at(0, 9, put1), at(10, 11, read("2", 2))}, both, true, "", true},
		{"a stale read", []operation{at(0, 1, put1), at(2, 3, put2), at(4, 5, read("1", 1))}, both, false, "", false},
		{"a read of what nobody wrote", []operation{at(0, 1, put1), at(2, 3, read("7", 1))}, both[:1], false, "it is \"1\"", true},
		{"a write that is gone", []operation{at(0, 1, put1), at(2, 3, put2)}, both[:1], true, "lost", true},
		{"a write at another revision", []operation{at(0, 1, operation{kind: put, value: "1", revision: 7})}, both[:1], true, "lost", true},
		{"a write that is there twice", []operation{at(0, 1, put1)}, []change{wrote(1, "1"), wrote(2, "1")}, true, "2 times", true},
		{"revisions out of order", nil, []change{wrote(2, "2"), wrote(1, "1")}, true, "follows", true},
		{"a refused write that is there", []operation{at(0, 1, operation{kind: put, value: "1", fate: refused})}, both[:1], true, "but it is there", true},
		{"an unknown write that took effect later", []operation{
			at(0, 1, operation{kind: put, value: "1", fate: unknown}), at(2, 3, read("", 0)), at(4, 5, read("1", 1)),
		}, both[:1], true, "", true},
		{"an unknown write that came back", []operation{
			at(0, 1, operation{kind: put, value: "1", fate: unknown}), at(2, 3, read("1", 1)), at(4, 5, put2),
			at(6, 7, read("1", 2)),
		}, both, false, "it is \"2\"", true},
		{"an unknown write that was read and is gone", []operation{
			at(0, 1, operation{kind: put, value: "1", fate: unknown}), at(2, 3, read("1", 1)),
		}, nil, false, "it is \"\"", true},
		{"two swaps of one value", []operation{
			at(0, 1, put1), at(2, 9, operation{kind: swap, old: "1", value: "2", held: true, revision: 2}),
			at(2, 9, operation{kind: swap, old: "1", value: "3", held: true, revision: 3}),
		}, []change{wrote(1, "1"), wrote(2, "2"), wrote(3, "3")}, false, "", true},
		{"a swap that should have held", []operation{
			at(0, 1, put1), at(2, 3, operation{kind: swap, old: "1", value: "2", revision: 1}),
		}, both[:1], false, "", true},
		{"a swap that did not hold and is there", []operation{
			at(0, 1, operation{kind: swap, old: "9", value: "1"}),
		}, both[:1], true, "but it is there", true},
		{"a read after a deletion", []operation{
			at(0, 1, put1), at(2, 3, operation{kind: del, revision: 2}), at(4, 5, read("1", 2)),
		}, []change{wrote(1, "1"), wrote(2, "")}, false, "it is \"\"", true},
		{"two writes of one revision", []operation{at(0, 1, put1), at(2, 3, operation{kind: put, value: "2", revision: 1})},
			both[:1], true, "lost", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, _ := linearizable(c.ops, c.all, time.Minute)
			if got := result == porcupine.Ok; got != c.legal {
				t.Errorf("linearizable: %s", result)
			}
			found := strings.Join(kept(c.ops, c.all), "\n")
			if !strings.Contains(found, c.kept) || (found == "") != (c.kept == "") {
				t.Errorf("kept found %q, want %q", found, c.kept)
			}
			if wrong := inRealTime(c.ops); (len(wrong) == 0) != c.inTime {
				t.Errorf("inRealTime found %q", wrong)
			}
		})
	}
}

// TestCheckersOfSetsAndLocks: each wrong history is found, and the right one is not objected to.
func TestCheckersOfSetsAndLocks(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	read := func(call, answer int, elements ...string) setRead {
		r := setRead{call: at(call), answer: at(answer), elements: make(map[string]bool)}
		for _, e := range elements {
			r.elements[e] = true
		}
		return r
	}
	added := []addition{
		{element: "a", call: at(1), answer: at(2)},
		{element: "b", call: at(3), answer: at(9)},
		{element: "c", call: at(4), answer: at(5), fate: unknown},
		{element: "d", call: at(4), answer: at(5), fate: refused},
	}
	for what, c := range map[string]struct {
		reads []setRead
		wrong bool
	}{
		"right":                 {reads: []setRead{read(3, 4, "a"), read(5, 6, "a", "b"), read(10, 11, "a", "b", "c")}},
		"one is lost":           {reads: []setRead{read(3, 4)}, wrong: true},
		"one comes and goes":    {reads: []setRead{read(5, 6, "a", "b"), read(7, 8, "a")}, wrong: true},
		"one was refused":       {reads: []setRead{read(10, 11, "a", "b", "d")}, wrong: true},
		"one is of nobody":      {reads: []setRead{read(10, 11, "a", "b", "e")}, wrong: true},
		"one before it was put": {reads: []setRead{read(1, 2, "b")}, wrong: true},
		"nobody read":           {wrong: true},
	} {
		s := setHistory{added: added, reads: c.reads}
		if wrong := s.wrong(); (len(wrong) > 0) != c.wrong {
			t.Errorf("set, %s: %v", what, wrong)
		}
	}
	for what, c := range map[string]struct {
		history *lockHistory
		last    string
		wrong   bool
	}{
		"right":              {history: &lockHistory{done: map[int]string{1: "x", 2: "y"}}, last: "count 2"},
		"right, one unknown": {history: &lockHistory{done: map[int]string{1: "x", 3: "y"}, unknown: 1}, last: "count 3"},
		"two did one":        {history: &lockHistory{done: map[int]string{1: "x"}, twice: []string{"y"}}, last: "count 1", wrong: true},
		"one is lost":        {history: &lockHistory{done: map[int]string{1: "x", 2: "y"}}, last: "count 1", wrong: true},
		"one too many":       {history: &lockHistory{done: map[int]string{1: "x"}}, last: "count 2", wrong: true},
	} {
		if wrong := c.history.wrong(c.last); (len(wrong) > 0) != c.wrong {
			t.Errorf("lock, %s: %v", what, wrong)
		}
	}
}
