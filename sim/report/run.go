package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Info describes how a report was made.
type Info struct {
	Command string        // that repeats it
	Version string        // of the program
	Wall    time.Duration // that it took
	Date    string        // as it shall be shown
}

// Took is the wall time in words.
func (i Info) Took() string {
	if i.Wall <= 0 {
		return ""
	}
	return brief(i.Wall)
}

// runPage is what run.html shows.
type runPage struct {
	Info
	Title    string
	Verdict  verdict
	Sentence string
	About    string
	YAML     string
	Facts    []fact
	Weight   figure
	Roles    table
	Faults   table
	Honest   bool
	Checks   []check
	Unlooked string // the invariants that were not looked at
	Broken   table
	Closeup  figure
	Overview figure
	Finality figure
	Heights  figure
	Trust    figure
	Goals    []goal
	Attacks  []bar
	Refused  []bar
	Proven   string
	Trace    string
}

// fact is one figure of a run at a glance.
type fact struct{ Value, Name string }

// check is how one invariant fared.
type check struct {
	Name, About, Checks, Verdict, Class string
}

// goal is one thing that runs are meant to reach.
type goal struct {
	Name, About, Count string
	Reached            bool
}

// bar is a count with its part of the largest one.
type bar struct {
	Name, About, Count string
	Percent            int
}

// Run writes the report of one run.
func Run(w io.Writer, r *sim.Result, v Info) error {
	lying := liars(r)
	s := r.Scenario
	one, which := inOne(r)
	of := func(f figure) figure { f.Caption += which; return f }
	p := runPage{
		Info: v, Title: or(s.Name, "A run") + fmt.Sprintf(", seed %d", s.Seed), Verdict: verdictOf(r), Sentence: sentence(s), About: s.About, YAML: string(s.Encode()),
		Facts: facts(r), Weight: weightFigure(r), Roles: roleTable(r), Faults: faultTable(s), Honest: len(s.Roles) == 0,
		Checks: checks(r.Verdicts), Unlooked: list(sim.Unlooked(r.Verdicts)), Broken: brokenTable(r.Broken),
		Closeup: of(closeupFigure("closeup", one, lying)), Overview: of(overviewFigure(one, lying)), Finality: finalityFigure(r.Finality), Heights: of(heightsFigure(one, lying)), Trust: scoreFigure(r, lying),
		Goals: goals(r.Goals), Attacks: bars(r.Attacks, scenario.Attacks), Refused: bars(r.Refused, nil), Proven: nodes(r.Proven), Trace: r.Trace.String(),
	}
	return write(w, "run.html", p)
}

func facts(r *sim.Result) []fact {
	f := []fact{
		{grouped(uint64(max(0, r.Blocks))), "final blocks"},
		{fmt.Sprintf("%s of %s", grouped(uint64(max(0, r.Writes))), grouped(uint64(max(0, r.Scenario.Load.Writes+r.Scenario.Load.Names)))), "writes acknowledged"},
		{grouped(uint64(max(0, r.Reads))), "linearizable reads"},
		{grouped(uint64(max(0, r.Nullified))), "nullified views"},
	}
	if r.Blocks > 0 {
		f = append(f, fact{short(float64(r.Messages) / float64(r.Blocks)), "messages per block"}, fact{size(float64(r.Bytes) / float64(r.Blocks)), "sent per block"})
	}
	return append(f, fact{brief(r.Virtual), "of virtual time"}, fact{grouped(r.Events), "events"})
}

// checks are the invariants that were looked at.
func checks(all []sim.Verdict) (rows []check) {
	for _, v := range all {
		if !v.Looked() {
			continue
		}
		c := check{Name: v.Invariant, About: about(scenario.Invariants, v.Invariant), Checks: grouped(v.Checks), Verdict: "held", Class: "held"}
		if v.Broken > 0 {
			c.Verdict, c.Class = "broken "+times(v.Broken), "broken"
		}
		rows = append(rows, c)
	}
	return rows
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return grouped(n) + " times"
}

func brokenTable(all []sim.Breach) table {
	t := table{Head: []string{"time", "where", "invariant", "what was found"}}
	for _, b := range all {
		t.Rows = append(t.Rows, []string{exact(b.At), place(b.Node), b.Invariant, b.Text})
	}
	return t.cut()
}

func goals(all []sim.Count) (g []goal) {
	for _, c := range all {
		g = append(g, goal{c.Name, about(scenario.Goals, c.Name), grouped(c.Count), c.Count > 0})
	}
	return g
}

func bars(all []sim.Count, names []scenario.Named) (b []bar) {
	some := counted(all)
	for _, c := range some {
		b = append(b, bar{c.Name, about(names, c.Name), grouped(c.Count), int(max(1, c.Count*100/some[0].Count))})
	}
	return b
}

// lines is a text without the end of its last line.
func lines(s string) string { return strings.TrimRight(s, "\n") }
