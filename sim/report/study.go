package report

import (
	"fmt"
	"io"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// StudyData are the results of the runs behind a study. A part without data is
// left out, and the page reports that.
type StudyData struct {
	Info
	Worlds  int
	Beyond  int // of them, with more at fault than the fault budget
	Events  uint64
	Virtual time.Duration

	Latency    Latency
	Cost       Cost
	Heat       Heat
	Throughput Throughput
	Conducts   Conducts
	Shares     Shares
	Failure    Failure
	Tally      Tally
}

// Latency is how long writes take until they are final, by how frames travel
// and by how many anchors there are.
type Latency struct {
	Source
	Models []LinkModel
}

// LinkModel is one way for frames to travel.
type LinkModel struct {
	Name   string
	Points []LatencyPoint // by number of anchors
}

// LatencyPoint is all writes of the worlds with so many anchors.
type LatencyPoint struct {
	Anchors int
	Samples []time.Duration
}

// Cost is the cost of a decision for the network.
type Cost struct {
	Source
	Points []CostPoint // by number of anchors
}

// CostPoint sums the worlds with so many anchors.
type CostPoint struct {
	Anchors  int
	Blocks   int
	Messages uint64
	Bytes    uint64
}

// Heat is the outcome of worlds by the share of liars and of lost frames.
type Heat struct {
	Source
	Anchors int
	Attacks []string
	Cells   []HeatCell // by share of the weight, then by loss
}

// HeatCell sums the worlds in which so many lie and so much is lost.
type HeatCell struct {
	Liars         int
	Faulty, Total uint64 // weight
	Over          bool   // the faulty weigh more than the fault budget
	Loss          scenario.Share
	Worlds        int
	Asked, Final  int      // writes
	Broken        int      // worlds in which any invariant broke
	All           []string // the invariants that did, in the order of sim.Invariants
	First         int      // worlds in which the first of them did
}

// Throughput is the remaining pace as the share of liars grows.
type Throughput struct {
	Source
	Anchors int
	Attacks []AttackPace
}

// AttackPace is the pace under one way to lie.
type AttackPace struct {
	Attack string
	Points []PacePoint // by share of the weight
}

// PacePoint sums the worlds in which so much of the weight lies.
type PacePoint struct {
	Faulty, Total uint64
	Writes        int
	Virtual       time.Duration
}

// Failure is a scenario that breaks something, with its run.
type Failure struct {
	Source
	Result *sim.Result // nil: none
}

// Tally sums all runs.
type Tally struct {
	Source
	Within []sim.Verdict // of runs within the fault budget, for each of sim.Invariants
	Beyond []sim.Verdict // of the others
	Goals  []sim.Count
}

// studyPage is what study.html shows.
type studyPage struct {
	StudyData
	Title    string
	Verdict  verdict
	Facts    []fact
	Figures  []figure
	Failed   figure
	Checks   []tallied
	Unlooked string // the invariants that no network within the budget was held to
	Goals    []goal
}

// tallied is one invariant over all runs.
type tallied struct {
	Name, About, Checks, Verdict, Class, Beyond string
}

// Study writes the report of many runs.
func Study(w io.Writer, s StudyData) error {
	p := studyPage{
		StudyData: s, Title: "A study of simulated networks", Verdict: studyVerdict(s),
		Facts: []fact{
			{grouped(uint64(max(0, s.Worlds))), "simulated networks"}, {short(float64(s.Events)), "events"}, {brief(s.Virtual), "of virtual time"},
			{grouped(checksOf(s.Tally.Within)), "checks within the budget"},
		},
		Figures: []figure{heatFigure(s.Heat), latencyFigure(s.Latency), costFigure(s.Cost), paceFigure(s.Throughput), conductFigure(s.Conducts), shareFigure(s.Shares)},
		Checks:  tally(s.Tally), Unlooked: list(sim.Unlooked(s.Tally.Within)), Goals: goals(s.Tally.Goals),
	}
	if r := s.Failure.Result; r != nil {
		one, which := inOne(r)
		p.Failed = closeupFigure("failure", one, liars(r))
		p.Failed.Caption += which
		p.Failed.Source = &s.Failure.Source
	} else {
		p.Failed = figure{ID: "failure", Title: "A failure, close up", Caption: "No failure was given to this study."}
	}
	return write(w, "study.html", p)
}

// studyVerdict judges the runs that are within the fault budget.
func studyVerdict(s StudyData) verdict {
	within := s.Worlds - s.Beyond
	var names []string
	for _, v := range s.Tally.Within {
		if v.Broken > 0 {
			names = append(names, v.Invariant)
		}
	}
	more := []string{}
	if s.Beyond > 0 {
		more = append(more, fmt.Sprintf("In %s more than the budget is at fault, on purpose: there, things must be able to break.", plural(s.Beyond, "other network")))
	}
	switch {
	case len(names) > 0:
		return verdict{"broken", "Broken", fmt.Sprintf("%s broke in a network whose faulty anchors weigh no more than the fault budget: a defect.", title(list(names))), more}
	case within <= 0:
		return verdict{"stuck", "Nothing was run", "No network within the fault budget is behind this study.", more}
	}
	return verdict{"held", "Held", fmt.Sprintf("While those at fault weighed no more than the fault budget, nothing that is promised broke in %s.", plural(within, "simulated network")), more}
}

func checksOf(all []sim.Verdict) (n uint64) {
	for _, v := range all {
		n += v.Checks
	}
	return n
}

func tally(t Tally) (rows []tallied) {
	beyond := make(map[string]uint64)
	for _, v := range t.Beyond {
		beyond[v.Invariant] += v.Broken
	}
	for _, c := range checks(t.Within) {
		row := tallied{Name: c.Name, About: c.About, Checks: c.Checks, Verdict: c.Verdict, Class: c.Class, Beyond: "did not break"}
		if n := beyond[c.Name]; n > 0 {
			row.Beyond = "broke " + times(n)
		}
		rows = append(rows, row)
	}
	return rows
}
