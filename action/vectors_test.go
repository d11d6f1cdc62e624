package action_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/aweigh/aweigh/action"
)

var update = flag.Bool("update", false, "rewrite the vectors: a change of what nodes agree on")

// vector is one expression, with what every node must make of it.
type vector struct {
	When  string `json:"when"`
	Taken bool   `json:"taken"` // it is a predicate
	Cost  uint64 `json:"cost"`  // the most steps
	Holds bool   `json:"holds"` // of the facts of the tests
	Fails bool   `json:"fails"` // it cannot be worked out for them
}

const vectorFile = "testdata/predicates.json"

// TestPredicatesMatchTheVectors: whether a policy with a predicate is taken, and what it
// says, is decided by the costs of a library. Nodes with another version of it must
// come to the same. A difference here means that an upgrade would split a network.
func TestPredicatesMatchTheVectors(t *testing.T) {
	raw, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	taken, refused := 0, 0
	for i, want := range all {
		got := vector{When: want.When}
		if p, err := action.Compile(want.When); err == nil {
			got.Taken, got.Cost = true, p.Cost()
			holds, err := p.Holds(facts())
			got.Holds, got.Fails = holds, err != nil
			taken++
		} else {
			refused++
		}
		if *update {
			all[i] = got
		} else if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", want.When, got, want)
		}
	}
	if taken < 40 || refused < 20 {
		t.Errorf("%d expressions that are taken, and %d that are not, show too little", taken, refused)
	}
	if *update {
		raw, err := json.MarshalIndent(all, "", " ")
		if err == nil {
			err = os.WriteFile(vectorFile, append(raw, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
