package report

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// made is a made-up result with all that a report can show: anchors that lie,
// nodes that crash, blocks that become final, and so many messages as marks.
func made(seed uint64, anchors, lying, messages int) *sim.Result {
	r := rand.New(rand.NewPCG(seed, 7))
	s := scenario.Scenario{
		Name: "made", About: "Made up.", Seed: seed, Network: scenario.Network{Anchors: anchors, Mode: "bft"},
		Links: scenario.Links{Model: "uniform", Delay: time.Millisecond, Spread: 4 * time.Millisecond},
		Load:  scenario.Load{Clients: 3, Writes: 40, Reads: 10}, Stop: 8 * time.Second, Heal: &scenario.Heal{Within: time.Minute},
		Faults: scenario.Faults{Loss: 50_000, Timed: []scenario.Fault{{Kind: "crash", At: time.Second, For: time.Second, Nodes: []int{0}}, {Kind: "partition", At: 2 * time.Second, Groups: [][]int{{0, 1}, {2, 3}}}}},
	}
	if lying > 0 {
		s.Roles = []scenario.Role{{Attacks: []string{"equivocate", "withhold"}, Count: lying, Victims: []int{0, 1}, Every: time.Second, Rate: scenario.Whole / 2}}
	}
	x := &sim.Result{
		Scenario: s, Events: 12_345, Virtual: 9 * time.Second, Faulty: uint64(100 * lying), Budget: uint64((100*anchors - 1) / 3), Total: uint64(100 * anchors),
		Healed: sim.Healing{Asked: true, Possible: true, Reached: true, After: 80 * time.Millisecond},
		Blocks: 30, Writes: 38, Reads: 9, Messages: 9_876, Bytes: 1_234_567, Nullified: 3,
		Attacks: []sim.Count{{Name: "equivocate", Count: 17}, {Name: "withhold", Count: 4}}, Refused: []sim.Count{{Name: "forged signature", Count: 2}},
	}
	for a := anchors - lying; a < anchors; a++ {
		x.Liars = append(x.Liars, a)
	}
	for _, i := range scenario.Invariants {
		x.Verdicts = append(x.Verdicts, sim.Verdict{Invariant: i.Name, Checks: r.Uint64N(5000)})
	}
	for _, g := range scenario.Goals {
		x.Goals = append(x.Goals, sim.Count{Name: g.Name, Count: r.Uint64N(3)})
	}
	for range 38 {
		x.Finality = append(x.Finality, time.Duration(5+r.ExpFloat64()*40)*time.Millisecond)
	}
	for range anchors {
		x.Heights = append(x.Heights, aweigh.Height(30))
	}
	views := max(1, messages/(3*anchors*anchors)+1)
	for v := range views {
		x.Marks = append(x.Marks, view(r, v+1, time.Second+time.Duration(v)*7*time.Second/time.Duration(views), anchors, lying, messages)...)
	}
	return x
}

// view is the marks of one view in which one block becomes final.
func view(r *rand.Rand, v int, at time.Duration, anchors, lying, messages int) (marks []sim.Mark) {
	block := fmt.Sprintf("%08x", 0xb10c0000+v)
	left := messages
	phase := func(text string, from []int) {
		for _, a := range from {
			for b := range anchors {
				if a != b && left > 0 {
					left--
					marks = append(marks, sim.Mark{At: at + 5*time.Millisecond, Node: b, From: a, Sent: at + time.Duration(r.IntN(1000))*time.Microsecond, Kind: "message", Text: text})
				}
			}
		}
		at += 6 * time.Millisecond
	}
	all := make([]int, anchors)
	for i := range all {
		all[i] = i
	}
	phase(fmt.Sprintf("propose view %d height %d %s (1 bundles)", v, v, block), []int{v % anchors})
	for i := range lying {
		marks = append(marks, sim.Mark{At: at, Node: anchors - 1 - i, From: -1, Kind: "lie", Text: "equivocate: two ballots"})
	}
	phase(fmt.Sprintf("notarize %d %s", v, block), all)
	phase(fmt.Sprintf("finalize %d %s", v, block), all)
	for a := range anchors {
		marks = append(marks, sim.Mark{At: at + time.Duration(a)*10*time.Microsecond, Node: a, From: -1, Kind: "final", Text: fmt.Sprintf("%d view %d %s (1)", v, v, block)})
	}
	switch v % 5 {
	case 1:
		marks = append(marks, sim.Mark{At: at + 20*time.Millisecond, Node: 0, From: -1, Kind: "crash", Text: "keeps 0 of 2 unsynced commits"})
	case 2:
		marks = append(marks, sim.Mark{At: at + 20*time.Millisecond, Node: 0, From: -1, Kind: "up", Text: "at height 1"},
			sim.Mark{At: at + 21*time.Millisecond, Node: 1, From: -1, Kind: "cut", Text: "by partition"})
	case 3:
		marks = append(marks, sim.Mark{At: at + 22*time.Millisecond, Node: 1, From: -1, Kind: "joined", Text: "after partition"},
			sim.Mark{At: at + 23*time.Millisecond, Node: 1, From: -1, Kind: "nullified", Text: "view 3"},
			sim.Mark{At: at + 24*time.Millisecond, Node: 0, From: -1, Kind: "proof", Text: "against n3"})
	}
	return marks
}

// forked is four anchors of which two sign for two blocks at one height: n3
// proposes A to n0 and B to n1.
func forked() *sim.Result {
	x := made(1, 4, 2, 0)
	x.Scenario.Heal, x.Scenario.Expect = nil, []string{"agreement"}
	x.Marks = nil
	ms := func(n int) time.Duration { return time.Second + time.Duration(n)*time.Millisecond }
	send := func(at, from, to int, text string) {
		x.Marks = append(x.Marks, sim.Mark{At: ms(at + 2), Node: to, From: from, Sent: ms(at), Kind: "message", Text: text})
	}
	for side, block := range []string{"aaaaaaaa", "bbbbbbbb"} {
		send(0, 3, side, "propose view 1 height 1 "+block+" (1 bundles)")
		for _, from := range []int{2, 3} {
			send(3, from, side, "notarize 1 "+block)
			send(6, from, side, "finalize 1 "+block)
		}
		send(6, side, 2, "finalize 1 "+block)
	}
	x.Marks = append(x.Marks,
		sim.Mark{At: ms(3), Node: 3, From: -1, Kind: "lie", Text: "equivocate: two proposals"},
		sim.Mark{At: ms(8), Node: 0, From: -1, Kind: "final", Text: "1 view 1 aaaaaaaa (1)"},
		sim.Mark{At: ms(9), Node: 1, From: -1, Kind: "final", Text: "1 view 1 bbbbbbbb (1)"})
	x.Virtual, x.Proven = ms(9), []int{2, 3}
	x.Broken = []sim.Breach{{Invariant: "agreement", At: ms(9), Node: 1, Text: "height 1 is bbbbbbbb here and aaaaaaaa elsewhere"}}
	x.Verdicts[sim.Agreement].Broken = 1
	return x
}

// studied is made-up data for all figures of a study.
func studied() StudyData {
	r := rand.New(rand.NewPCG(1, 1))
	src := Source{Seeds: "1 to 4", Command: "aweigh sim report", World: "seed: 1\n"}
	d := StudyData{Info: Info{Command: "aweigh sim report", Version: "v0"}, Worlds: 100, Beyond: 7, Events: 1e6, Virtual: time.Hour}
	d.Latency = Latency{Source: src}
	for i, name := range []string{"always 1 ms", "uniform", "log-normal", "regions"} {
		m := LinkModel{Name: name}
		for _, n := range []int{4, 10, 40} {
			p := LatencyPoint{Anchors: n}
			for range 50 {
				p.Samples = append(p.Samples, time.Duration(float64(i*i*20+3)*(1+r.ExpFloat64())*1e6))
			}
			m.Points = append(m.Points, p)
		}
		d.Latency.Models = append(d.Latency.Models, m)
	}
	d.Cost = Cost{Source: src}
	for _, n := range []int{4, 10, 40, 100} {
		d.Cost.Points = append(d.Cost.Points, CostPoint{Anchors: n, Blocks: 10, Messages: uint64(22 * n * n), Bytes: uint64(6000 * n * n)})
	}
	d.Heat = Heat{Source: src, Anchors: 10, Attacks: []string{"fork"}}
	for liars := range 5 {
		for i := range 3 {
			c := HeatCell{Liars: liars, Faulty: uint64(liars), Total: 10, Over: liars > 3, Loss: scenario.Share(i * 100_000), Worlds: 4, Asked: 40, Final: 40 - 9*i}
			if c.Over && i < 2 {
				c.Broken, c.First, c.All = 4, 3, []string{"agreement", "certificates"}
			}
			d.Heat.Cells = append(d.Heat.Cells, c)
		}
	}
	d.Throughput = Throughput{Source: src, Anchors: 10}
	for _, attack := range []string{"mute", "equivocate"} {
		p := AttackPace{Attack: attack}
		for liars := range 4 {
			p.Points = append(p.Points, PacePoint{Faulty: uint64(liars), Total: 10, Writes: 500 / (1 + liars), Virtual: 8 * time.Second})
		}
		d.Throughput.Attacks = append(d.Throughput.Attacks, p)
	}
	d.Failure = Failure{Source: src, Result: forked()}
	for _, i := range scenario.Invariants {
		d.Tally.Within = append(d.Tally.Within, sim.Verdict{Invariant: i.Name, Checks: 1000})
		d.Tally.Beyond = append(d.Tally.Beyond, sim.Verdict{Invariant: i.Name, Checks: 10, Broken: 2})
	}
	d.Tally.Goals, d.Tally.Source = d.Failure.Result.Goals, src
	return d
}
