package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/aweigh/aweigh/internal/testshort"
)

// TestZonesAgreeWithPorcupine: on small histories of writes and reads both agree; on those with
// swaps, porcupine rules out all that zones rules out.
func TestZonesAgreeWithPorcupine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := make(map[[3]bool]int) // swaps among them, fits, ruled out
	for range testshort.Cases(10_000, 40_000, 40_000) {
		ops, swaps := draw(r)
		fits, why := porcupine.CheckOperations(register, ops), zones(ops)
		seen[[3]bool{swaps, fits, why != ""}]++
		if fits && why != "" || !swaps && !fits && why == "" {
			for _, op := range ops {
				t.Logf("%d–%d %+v", op.Call, op.Return, *op.Input.(*operation))
			}
			t.Fatalf("porcupine finds an order: %v; zones: %q", fits, why)
		}
	}
	for _, want := range [][3]bool{{false, true, false}, {false, false, true}, {true, true, false}, {true, false, true}} {
		if seen[want] < testshort.Cases(250, 1000, 1000) {
			t.Errorf("too few of one sort were drawn: %v", seen)
		}
	}
}

// draw makes a history up that mostly fits: values that are there one after another, and requests
// about them that lie around the moment at which they take effect, or now and then beside it.
func draw(r *rand.Rand) (ops []porcupine.Operation, swaps bool) {
	kinds, now := []string{"read", "read", "write"}, ""
	if swaps = r.IntN(2) == 0; swaps {
		kinds = append(kinds, "swap")
	}
	for i := range 2 + r.IntN(7) {
		d := &operation{client: i, kind: kinds[r.IntN(len(kinds))]}
		switch {
		case d.kind == "read":
			d.got = now
		case d.kind == "swap" && r.IntN(3) == 0:
			d.was, d.failed = "another", true
		default:
			d.was, d.value = now, fmt.Sprint(i)
			now = d.value
		}
		at := int64(40 + 10*i)
		call, back := at-r.Int64N(30), at+r.Int64N(30)
		if r.IntN(5) == 0 {
			call += 15 + r.Int64N(40)
			back = call + r.Int64N(20)
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: d, Call: call, Return: back})
	}
	return ops, swaps
}

func TestZonesNameWhatDoesNotFit(t *testing.T) {
	write := func(v string, call, back int64) porcupine.Operation {
		return porcupine.Operation{Input: &operation{kind: "write", value: v}, Call: call, Return: back}
	}
	read := func(v string, call, back int64) porcupine.Operation {
		return porcupine.Operation{Input: &operation{kind: "read", got: v}, Call: call, Return: back}
	}
	for _, x := range []struct {
		ops  []porcupine.Operation
		want string
	}{
		{[]porcupine.Operation{read("a", 1, 2)}, `"a" was read, and never written`},
		{[]porcupine.Operation{read("a", 1, 2), write("a", 3, 4)}, `"a" was read before it was written`},
		{[]porcupine.Operation{write("a", 1, 2), read("", 3, 4)}, `each of "" and "a" was there before the other`},
		{[]porcupine.Operation{write("a", 1, 2), write("b", 3, 4), read("a", 5, 6)}, `each of "a" and "b" was there before the other`},
		{[]porcupine.Operation{write("a", 1, 2), write("a", 3, 4), read("a", 5, 6), read("", 7, 8)}, ""},
	} {
		if got := zones(x.ops); got != x.want {
			t.Errorf("%q instead of %q", got, x.want)
		}
	}
}
