package report

import (
	"math"
	"slices"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/trust"
)

// Conducts is what becomes of trust, by how anchors behave.
type Conducts struct {
	Source
	Kinds []Conduct
}

// Conduct is one way to behave.
type Conduct struct {
	Name     string
	Scenario string
	Mean     []float64 // trust at the start of each epoch, part of 1
}

// Shares is what liars weigh under each attack on trust.
type Shares struct {
	Source
	Attacks []Attack
}

// Attack sums the worlds of one scenario. The shares are parts of 1.
type Attack struct {
	Scenario         string
	Worlds           int
	Begin, Most, End float64 // means over worlds; Most of the largest in each
	Peak             float64 // the largest of all
}

// Groups whose trust is shown, in place of a node's number.
const (
	founders = -1 // of all honest founders of the scope
	seated   = -2 // of all liars that have a seat
)

// conducts are the groups whose trust is shown.
var conducts = []struct {
	name, scenario string
	node           int
}{
	{"takes part", "on-off-schedule", founders},
	{"away, and back", "long-absence", 3},
	{"lies half of the time", "on-off-schedule", 8},
	{"lies while trusted", "on-off-trust", 8},
	{"leaves, and applies anew", "whitewash", seated},
	{"contradicts itself", "epoch-ends", 8},
}

// trustOf runs the scenarios that attack trust.
func trustOf(p Plan) experiment {
	var e experiment
	for _, name := range p.Trust {
		s, err := scenario.FromLibrary(name)
		must.OK(err, "reading the library")
		e.worlds = append(e.worlds, p.each(s)...)
	}
	e.take = func(d *StudyData, results []*sim.Result) {
		d.Conducts.Source, d.Shares.Source = p.source(nil), p.source(nil)
		groups := p.groups(results)
		for i, name := range p.Trust {
			if a := attack(name, groups[i]); a.Begin > 0 {
				d.Shares.Attacks = append(d.Shares.Attacks, a)
			}
		}
		for _, c := range conducts {
			if i := slices.Index(p.Trust, c.scenario); i >= 0 {
				d.Conducts.Kinds = append(d.Conducts.Kinds, Conduct{c.name, c.scenario, meanScores(groups[i], c.node)})
			}
		}
	}
	return e
}

func attack(name string, group []*sim.Result) Attack {
	a := Attack{Scenario: name}
	for _, r := range group {
		if len(r.Epochs) == 0 {
			continue
		}
		a.Worlds++
		most := 0.0
		for _, e := range r.Epochs {
			most = math.Max(most, part(e))
		}
		a.Begin += part(r.Epochs[0])
		a.End += part(r.Epochs[len(r.Epochs)-1])
		a.Most += most
		a.Peak = math.Max(a.Peak, most)
	}
	n := math.Max(1, float64(a.Worlds))
	a.Begin, a.Most, a.End = a.Begin/n, a.Most/n, a.End/n
	return a
}

// meanScores is the mean trust of a node, or of several, in each epoch that all
// worlds had.
func meanScores(group []*sim.Result, node int) (mean []float64) {
	epochs := 0
	for i, r := range group {
		if i == 0 || len(r.Epochs) < epochs {
			epochs = len(r.Epochs)
		}
	}
	for e := range epochs {
		var sum trust.Score
		var n int
		for _, r := range group {
			for _, s := range r.Epochs[e].Seats {
				lies := slices.Contains(r.Liars, s.Node)
				founder := s.Node < r.Scenario.Network.Anchors
				if s.Node == node || node == founders && founder && !lies || node == seated && lies && s.Seated {
					sum += s.Score
					n++
				}
			}
		}
		if n > 0 {
			mean = append(mean, scored(sum)/float64(n))
		}
	}
	return mean
}
