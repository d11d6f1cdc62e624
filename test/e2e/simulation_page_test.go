package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
)

// notSimulated are commands of the page that take too long here, need a failure, or show one.
var notSimulated = map[string]string{
	"aweigh sim run":                                       "it takes a while; cmd/aweigh TestStories runs it shorter",
	"aweigh sim sweep --seeds 2000":                        "it takes a minute; .ci/run does it",
	"aweigh sim shrink 17":                                 "that world does not fail",
	"aweigh sim shrink over-fork --invariant certificates": "it takes minutes",
	"aweigh sim diff 17 mine.yaml":                         "two worlds differ, and the exit code says so",
	"aweigh sim report":                                    "it takes a while",
}

// The commands that docs/simulation.md begins with do what it says, one after the other.
func TestSimulationPageRuns(t *testing.T) {
	testshort.SkipUnlessLong(t)
	needsProcesses(t)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulation.md"))
	if err != nil {
		t.Fatal(err)
	}
	begin, _, _ := strings.Cut(string(text), "\n## ")
	r, ran := newReader(t), 0
	for _, s := range stepsOf(begin) {
		if notSimulated[s.command] == "" {
			r.run(s)
			ran++
		}
	}
	if ran < 4 {
		t.Errorf("%d commands of the page were run", ran)
	}
}
