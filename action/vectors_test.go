//go:build !noverbs

package action_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/action"
)

var update = flag.Bool("update", false, "rewrite the vectors: a change of what nodes agree on")

// vector is one expression, with what every node must make of it.
type vector struct {
	When  string `json:"when"`
	Taken bool   `json:"taken"`         // it is a predicate
	Cost  uint64 `json:"cost"`          // the most steps
	Holds bool   `json:"holds"`         // of the facts of the tests
	Fails bool   `json:"fails"`         // it cannot be worked out for them
	Why   string `json:"why,omitempty"` // words of the refusal, where this package refuses
}

const vectorFile = "testdata/predicates.json"

// TestPredicatesMatchTheVectors: acceptance, cost and result of a policy's predicate must
// be the same with every version of the library that reads it. A difference here means
// that an upgrade would split a network.
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
		got := vector{When: want.When, Why: want.Why}
		if p, err := action.Compile(want.When); err == nil {
			got.Taken, got.Cost = true, p.Cost()
			holds, err := p.Holds(facts())
			got.Holds, got.Fails = holds, err != nil
			taken++
		} else {
			refused++
			if !strings.Contains(err.Error(), want.Why) {
				t.Errorf("%s: %v, want %q", want.When, err, want.Why)
			}
		}
		if got.Taken && want.Why != "" {
			t.Errorf("%s: taken, want %q", want.When, want.Why)
		}
		if *update {
			all[i] = got
		} else if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", want.When, got, want)
		}
	}
	if taken < 80 || refused < 60 {
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
