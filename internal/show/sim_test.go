package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

// evilRun is a run in which everything that may hold others' words holds evil ones.
func evilRun(evil string) *sim.Result {
	counts := []sim.Count{{Name: evil, Count: 1234}}
	return &sim.Result{
		Scenario: scenario.Scenario{Name: evil, About: evil}, Verdicts: []sim.Verdict{{Invariant: evil, Broken: 1}},
		Broken: []sim.Breach{{Invariant: "agreement", At: time.Second, Node: 2, Text: evil}}, Goals: counts, Attacks: counts, Refused: counts, Unmodelled: counts,
		Healed: sim.Healing{Asked: true, Possible: true, Why: evil},
	}
}

func TestSimulationsShowNothingThatDoesNotPrint(t *testing.T) {
	const evil = "x\x1b]0;y\a\nz"
	var out bytes.Buffer
	p := Printer{Out: &out, Format: Table}
	r := evilRun(evil)
	counts := r.Goals
	for _, err := range []error{
		p.Simulation(Simulation{Result: r, Report: evil, Again: evil}),
		p.Sweep(Sweep{Replay: func(uint64) string { return "again" }, Result: &sweep.Result{
			Worlds: 1, Verdicts: r.Verdicts, Goals: counts, Attacks: counts, Refused: counts, Unmodelled: counts, Failures: []sweep.Failure{{Seed: 1, Text: evil}},
		}}),
		p.Diff(sweep.TraceDiff{Line: 2, Common: []string{evil}, A: []string{evil}, B: []string{evil}}, evil, evil),
		p.Scenarios([]scenario.Named{{Name: evil, About: evil}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if at := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
		t.Errorf("it prints %q", out.String()[at:])
	}
	if strings.Contains(out.String(), "\nz") {
		t.Error("a line of its own")
	}
}

func TestVerdictsSayWhatWasNeverLookedAt(t *testing.T) {
	var out bytes.Buffer
	if err := (Printer{Out: &out}).verdicts([]sim.Verdict{
		{Invariant: "agreement", Checks: 12345}, {Invariant: "honour"}, {Invariant: "sound", Broken: 2},
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"INVARIANT", "12,345  held ", "BROKEN", "not looked at  honour"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
}

func TestListsAreNeverNullInJSON(t *testing.T) {
	var out bytes.Buffer
	p := Printer{Out: &out, Format: JSON}
	for _, err := range []error{
		p.Simulation(Simulation{Result: &sim.Result{}}),
		p.Sweep(Sweep{Result: &sweep.Result{}}),
		p.Scenarios(nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(out.String(), ": null") {
		t.Errorf("got %s", out.String())
	}
}

func TestFailedWorldsNameTheCommandThatRepeatsThem(t *testing.T) {
	s := Sweep{
		Replay: func(seed uint64) string { return "repeat " + strings.Repeat("I", int(seed)) },
		Result: &sweep.Result{Worlds: 3, Failures: []sweep.Failure{
			{Seed: 2, Text: "agreement broken", Breach: &sim.Breach{Invariant: "agreement", At: 5, Node: 1}}, {Seed: 3, Text: "panic: x", Stack: "main.go"},
		}},
	}
	var table, text bytes.Buffer
	if err := (Printer{Out: &table}).Sweep(s); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(table.String(), "seed 2: agreement broken\n    repeat II\nseed 3: panic: x\n    repeat III\n") {
		t.Errorf("got %s", table.String())
	}
	if err := (Printer{Out: &text, Format: JSON}).Sweep(s); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Failures []struct {
			Seed   uint64
			Replay string
			Breach *struct {
				Invariant string
				AtNs      int64 `json:"at_ns"`
			}
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if f := got.Failures; len(f) != 2 || f[0].Replay != "repeat II" || f[0].Breach.AtNs != 5 || f[1].Seed != 3 || f[1].Breach != nil {
		t.Errorf("got %+v", got)
	}
}

func TestNumbersAreGroupedByThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 123456: "123,456"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
