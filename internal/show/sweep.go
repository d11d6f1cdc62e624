package show

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/sim/sweep"
)

// Sweep is many runs with data of the program around them.
type Sweep struct {
	*sweep.Result
	Wall   time.Duration
	Replay func(seed uint64) string // the command that repeats the run of a seed
}

type sweepJSON struct {
	From       uint64        `json:"from"`
	Seeds      uint64        `json:"seeds"`
	Worlds     uint64        `json:"worlds"`
	Next       uint64        `json:"next"`
	Possible   uint64        `json:"healing_possible"`
	Healed     uint64        `json:"healed"`
	Events     uint64        `json:"events"`
	VirtualNs  time.Duration `json:"virtual_ns"`
	Seconds    float64       `json:"seconds"`
	Verdicts   []verdictJSON `json:"verdicts"`
	Goals      []countJSON   `json:"goals"`
	Missing    []string      `json:"missing"`
	Attacks    []countJSON   `json:"attacks"`
	Refused    []countJSON   `json:"refused"`
	Executed   uint64        `json:"executed"`
	Unmodelled []countJSON   `json:"unmodelled"`
	Failures   []failureJSON `json:"failures"`
}

type failureJSON struct {
	Seed   uint64      `json:"seed"`
	Text   string      `json:"text"`
	Breach *breachJSON `json:"breach,omitempty"`
	Stack  string      `json:"stack,omitempty"`
	Replay string      `json:"replay"`
}

// Sweep writes what came of many runs.
func (p Printer) Sweep(s Sweep) error {
	if p.Format == JSON {
		return p.JSON(sweepOf(s))
	}
	if err := p.table(
		[]string{"worlds", fmt.Sprintf("%s of %s, from seed %d", Grouped(s.Worlds), Grouped(s.Seeds), s.From)},
		[]string{"ran", fmt.Sprintf("%s in %s, %.1f worlds per second: %s events", s.Virtual.Round(time.Second), round(s.Wall), perSecond(s.Worlds, s.Wall), Grouped(s.Events))},
		[]string{"healed", fmt.Sprintf("%s of the %s worlds in which it was possible", Grouped(s.Healed), Grouped(s.Possible))},
	); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if err := p.verdicts(s.Verdicts); err != nil {
		return err
	}
	rows := [][]string{{"GOAL", "TIMES", "MEANING"}}
	about := make(map[string]string)
	for _, g := range scenario.Goals {
		about[g.Name] = g.About
	}
	for _, g := range s.Goals {
		times := Grouped(g.Count)
		if g.Count == 0 {
			times = "NEVER"
		}
		rows = append(rows, []string{g.Name, times, about[g.Name]})
	}
	fmt.Fprintln(p.Out)
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if err := p.table([]string{"lies told", tally(s.Attacks)}, []string{"refused", tally(s.Refused)},
		[]string{"executed", Grouped(s.Executed) + " mutations, as a model does; taken from nodes: " + tally(s.Unmodelled)}); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	for _, f := range s.Failures {
		if err := p.Failure(f, s.Replay(f.Seed)); err != nil {
			return err
		}
	}
	if len(s.Failures) > 0 || len(s.Missing()) > 0 {
		return nil // the error has their number
	}
	verdict := "all held"
	if s.Worlds < s.Seeds {
		verdict = "all held so far"
	}
	_, err := fmt.Fprintln(p.Out, verdict)
	return err
}

// perSecond is a rate; 0 if no time passed.
func perSecond(n uint64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// Failure writes a failed world, and the command that repeats it.
func (p Printer) Failure(f sweep.Failure, replay string) error {
	_, err := fmt.Fprintf(p.Out, "seed %d: %s\n    %s\n", f.Seed, Line(f.Text), replay)
	return err
}

func sweepOf(s Sweep) sweepJSON {
	out := sweepJSON{
		From: s.From, Seeds: s.Seeds, Worlds: s.Worlds, Next: s.Next, Possible: s.Possible, Healed: s.Healed,
		Events: s.Events, VirtualNs: s.Virtual, Seconds: s.Wall.Seconds(), Verdicts: verdictsJSON(s.Verdicts),
		Goals: countsJSON(s.Goals), Missing: append([]string{}, s.Missing()...),
		Attacks: countsJSON(s.Attacks), Refused: countsJSON(s.Refused), Executed: s.Executed, Unmodelled: countsJSON(s.Unmodelled), Failures: []failureJSON{},
	}
	for _, f := range s.Failures {
		j := failureJSON{Seed: f.Seed, Text: f.Text, Stack: f.Stack, Replay: s.Replay(f.Seed)}
		if f.Breach != nil {
			b := breachOf(*f.Breach)
			j.Breach = &b
		}
		out.Failures = append(out.Failures, j)
	}
	return out
}
