package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// each is the scenario with each of the plan's seeds.
func (p Plan) each(s scenario.Scenario) (all []scenario.Scenario) {
	for i := range p.Seeds {
		s.Seed = p.Seed + uint64(i)
		all = append(all, s)
	}
	return all
}

// groups cuts results into those of the same point, which follow each other.
func (p Plan) groups(results []*sim.Result) [][]*sim.Result {
	return slices.Collect(slices.Chunk(results, p.Seeds))
}

// source is where the data of worlds comes from, with the first of them.
func (p Plan) source(worlds []scenario.Scenario) Source {
	s := Source{Seeds: p.seeds(), Command: p.Command}
	if len(worlds) > 0 {
		s.World = string(worlds[0].Encode())
	}
	return s
}

// model is a link model with typical figures.
func model(name string) scenario.Links {
	switch name {
	case "constant":
		return scenario.Links{Model: name, Delay: time.Millisecond}
	case "uniform":
		return scenario.Links{Model: name, Delay: time.Millisecond, Spread: 4 * time.Millisecond}
	case "lognormal":
		return scenario.Links{Model: name, Delay: 10 * time.Millisecond, Spread: 10 * time.Millisecond}
	}
	return scenario.Links{Model: name}
}

// named describes a model in a panel's room.
func named(l scenario.Links) string {
	switch l.Model {
	case "constant":
		return "always " + brief(l.Delay)
	case "uniform":
		return "uniform, " + brief(l.Delay) + " to " + brief(l.Delay+l.Spread)
	case "lognormal":
		return "log-normal, median " + brief(l.Delay)
	case "regions":
		return "regions of the world"
	}
	return l.Model
}

// mostForLatency bounds the networks whose latency is measured; mostWorlds
// bounds the worlds of large networks, which take long.
const (
	mostForLatency = 40
	mostWorlds     = 2
)

// latencyOf measures how long writes take in quiet networks.
func latencyOf(p Plan) experiment {
	var e experiment
	sizes := slices.DeleteFunc(slices.Clone(p.Sizes), func(n int) bool { return n > mostForLatency })
	for _, m := range p.Models {
		for _, n := range sizes {
			e.worlds = append(e.worlds, p.each(scenario.Scenario{
				Name: "latency", About: "how long writes take, while nothing is wrong",
				Network: scenario.Network{Anchors: n}, Links: model(m), Load: scenario.Load{Writes: 30, Reads: 1},
			})...)
		}
	}
	e.take = func(d *StudyData, results []*sim.Result) {
		d.Latency.Source = p.source(e.worlds)
		points := p.groups(results)
		for i, m := range p.Models {
			lm := LinkModel{Name: named(model(m))}
			for j, n := range sizes {
				point := LatencyPoint{Anchors: n}
				for _, r := range points[i*len(sizes)+j] {
					point.Samples = append(point.Samples, r.Finality...)
				}
				lm.Points = append(lm.Points, point)
			}
			d.Latency.Models = append(d.Latency.Models, lm)
		}
	}
	return e
}

// costOf measures the cost of a decision, one write at a time.
func costOf(p Plan) experiment {
	p.Seeds = min(p.Seeds, mostWorlds)
	var e experiment
	sizes := slices.Clone(p.Sizes)
	slices.Sort(sizes)
	for _, n := range slices.Backward(sizes) { // the long ones first
		e.worlds = append(e.worlds, p.each(scenario.Scenario{
			Name: "cost", About: "what a decision costs: one client, one write at a time",
			Network: scenario.Network{Anchors: n}, Load: scenario.Load{Clients: 1, Writes: 10, Reads: 1}, Stop: 3 * time.Second,
		})...)
	}
	e.take = func(d *StudyData, results []*sim.Result) {
		d.Cost.Source = p.source(e.worlds)
		for i, group := range p.groups(results) {
			point := CostPoint{Anchors: sizes[len(sizes)-1-i]}
			for _, r := range group {
				point.Blocks += r.Blocks
				point.Messages += r.Messages
				point.Bytes += r.Bytes
			}
			d.Cost.Points = append([]CostPoint{point}, d.Cost.Points...)
		}
	}
	return e
}

// heatOf runs worlds with ever more liars and ever more lost frames.
func heatOf(p Plan) experiment {
	const anchors, most = 10, 6 // of 10 of the same weight, 3 may lie
	d := Heat{Anchors: anchors, Attacks: p.Lies}
	var e experiment
	for liars := range most + 1 {
		for _, loss := range p.Loss {
			s := scenario.Scenario{
				Name: "heat", About: fmt.Sprintf("%d of %d lie, and %s of all frames are lost", liars, anchors, loss),
				Network: scenario.Network{Anchors: anchors}, Faults: scenario.Faults{Loss: loss}, Load: scenario.Load{Writes: 30, Reads: 6}, Stop: 10 * time.Second,
			}
			if liars > 0 {
				s.Roles = []scenario.Role{{Attacks: d.Attacks, Count: liars, Rate: scenario.Whole}}
			}
			if liars > (anchors-1)/3 {
				s.Expect = []string{scenario.Invariants[sim.Agreement].Name} // goes on until agreement breaks
			}
			e.worlds = append(e.worlds, p.each(s)...)
			d.Cells = append(d.Cells, HeatCell{Liars: liars, Loss: loss})
		}
	}
	e.take = func(into *StudyData, results []*sim.Result) {
		d.Source = p.source(e.worlds)
		for i, group := range p.groups(results) {
			d.Cells[i].sum(group)
		}
		into.Heat = d
	}
	return e
}

func (cell *HeatCell) sum(group []*sim.Result) {
	broken := make(map[string]int) // worlds
	for _, r := range group {
		cell.Worlds++
		cell.Faulty, cell.Total, cell.Over = r.Faulty, r.Total, r.Faulty > r.Budget
		cell.Asked += r.Scenario.Load.Writes
		cell.Final += r.Writes
		if len(r.Broken) > 0 {
			cell.Broken++
		}
		var names []string
		for _, b := range r.Broken {
			names = appendNew(names, b.Invariant)
		}
		for _, name := range names {
			broken[name]++
		}
	}
	for _, i := range scenario.Invariants {
		if broken[i.Name] > 0 {
			cell.All = append(cell.All, i.Name)
		}
	}
	if len(cell.All) > 0 {
		cell.First = broken[cell.All[0]]
	}
}

// paceOf measures how much is done while some lie, within the fault budget.
func paceOf(p Plan) experiment {
	const anchors, most = 10, 3
	p.Seeds = min(p.Seeds, mostWorlds)
	var e experiment
	for _, attack := range p.Attacks {
		for liars := range most + 1 {
			s := scenario.Scenario{
				Name: "pace", About: fmt.Sprintf("%d of %d lie: %s", liars, anchors, attack), Network: scenario.Network{Anchors: anchors},
				Links: scenario.Links{Model: "uniform", Delay: 8 * time.Millisecond, Spread: 8 * time.Millisecond},
				Load:  scenario.Load{Clients: 4, Writes: 10_000, Reads: 1}, Stop: 8 * time.Second,
			}
			if liars > 0 {
				s.Roles = []scenario.Role{{Attacks: []string{attack}, Count: liars, Rate: scenario.Whole}}
			}
			e.worlds = append(e.worlds, p.each(s)...)
		}
	}
	e.take = func(d *StudyData, results []*sim.Result) {
		d.Throughput = Throughput{Source: p.source(e.worlds), Anchors: anchors}
		points := p.groups(results)
		for i, attack := range p.Attacks {
			pace := AttackPace{Attack: attack}
			for _, group := range points[i*(most+1) : (i+1)*(most+1)] {
				var point PacePoint
				for _, r := range group {
					point.Faulty, point.Total = r.Faulty, r.Total
					point.Writes += r.Writes
					point.Virtual += r.Virtual
				}
				pace.Points = append(pace.Points, point)
			}
			d.Throughput.Attacks = append(d.Throughput.Attacks, pace)
		}
	}
	return e
}

// failureMarks are kept of the failure.
const failureMarks = 20_000

// failureOf runs the failure of the plan.
func failureOf(p Plan) experiment {
	e := experiment{marks: failureMarks, take: func(*StudyData, []*sim.Result) {}}
	if p.Failure == nil {
		return e
	}
	s := *p.Failure
	e.worlds = []scenario.Scenario{s}
	e.take = func(d *StudyData, results []*sim.Result) {
		d.Failure = Failure{Source: Source{Seeds: fmt.Sprint(max(1, s.Seed)), Command: "aweigh sim run world.yaml", World: string(s.Encode())}, Result: results[0]}
	}
	return e
}
