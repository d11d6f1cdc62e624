//go:build !noverbs

package action

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
)

// largest are facts with the longest values that predicates see.
func largest() *Facts {
	f := &Facts{Verb: strings.Repeat("a", 64)}
	f.Object = Object{Key: strings.Repeat("k", 1024), UID: strings.Repeat("u", 64), Value: make([]byte, MaxValue)}
	f.Caller = Caller{ID: strings.Repeat("c", 64), Anchor: strings.Repeat("n", 256), Weight: 1 << 40}
	f.Scope = Scope{Prefix: strings.Repeat("p", 512), Mode: "crash", Epoch: 1 << 40, Height: 1 << 40}
	return f
}

// counted is the library's count when it evaluates a predicate.
func counted(t *testing.T, when string, f *Facts) uint64 {
	env, err := language()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := read(env, when)
	if err != nil {
		t.Fatal(err)
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptTrackCost))
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]any)
	for _, v := range variables {
		known[v.name] = v.of(f)
	}
	_, details, _ := program.Eval(known)
	return *details.ActualCost()
}

// TestTheLibrarysCountDecidesNothing: the allowance that the library gets when a predicate
// is asked is so far above the cost of all accepted predicates that a version which counts
// otherwise refuses none of them.
func TestTheLibrarysCountDecidesNothing(t *testing.T) {
	raw, err := os.ReadFile("testdata/predicates.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		When  string
		Taken bool
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	most := uint64(0)
	for _, v := range all {
		if v.Taken && v.When != "" {
			most = max(most, counted(t, v.When, largest()))
		}
	}
	if most*20 > allowance {
		t.Errorf("the library counts %d steps for a predicate that is taken, and may count %d", most, allowance)
	}
}

// TestBoundsComeBeforeTheWork: an expression that is too deep is refused before its types are
// sought, which takes seconds for a text of 512 bytes.
func TestBoundsComeBeforeTheWork(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }
	for _, when := range []string{
		deep(254) + " == 1", deep(127) + "==" + deep(127), strings.Repeat("1+", 255) + "1", strings.Repeat("(", 512),
	} {
		start := time.Now()
		if _, err := Compile(when); err == nil {
			t.Errorf("%.40s... is taken", when)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%.40s... is refused after %v", when, took)
		}
	}
	start := time.Now()
	if _, err := Compile(deep(MaxDepth-2) + "==" + deep(MaxDepth-2)); err != nil || time.Since(start) > time.Second {
		t.Errorf("what is as deep as may be: %v, after %v", err, time.Since(start))
	}
}

// TestStepsDoNotOverflow: sums and products beyond 64 bits are the greatest number.
func TestStepsDoNotOverflow(t *testing.T) {
	const most = 1<<64 - 1
	for name, got := range map[string]uint64{
		"sum": plus(most, 1), "product": times(1<<33, 1<<32), "both": plus(times(1<<32, 1<<32), times(most, most)),
	} {
		if got != most {
			t.Errorf("%s: %d", name, got)
		}
	}
	if plus(most-1, 1) != most || times(1<<31, 1<<32) != 1<<63 {
		t.Error("sums and products within 64 bits")
	}
}
