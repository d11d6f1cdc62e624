package trust_test

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// workedExample is the one of docs/trust.md: six epochs of five anchors, of
// which one is strong, one is late, one is away, one lies and one is new.
func workedExample(out io.Writer) {
	p := trust.DefaultParams()
	names := []string{"ann", "bob", "cyd", "dee", "eve"}
	id := func(name string) aweigh.AnchorID { return aweigh.Sum([]byte(name)) }
	call := make(map[aweigh.AnchorID]string)
	for _, name := range names {
		call[id(name)] = name
	}
	var ledger trust.Ledger
	apply := func(evidence ...trust.Evidence) {
		var changes []trust.Change
		ledger, changes = ledger.ApplyExplained(p, evidence...)
		for _, c := range changes {
			fmt.Fprintf(out, "epoch %d  %s  %6d -> %6d  %s\n", c.Epoch, call[c.Evidence.Anchor], c.Before, c.After, c.Reason)
		}
	}
	var weights quorum.Weights
	weigh := func(e aweigh.Epoch) {
		next, shares, err := ledger.NextExplained(p, e, weights)
		if err != nil {
			fmt.Fprintln(out, err)
			return
		}
		weights = next
		fmt.Fprintf(out, "weights of epoch %d, %d in all:\n", e, weights.Total())
		for _, name := range names {
			for _, s := range shares {
				if s.Anchor == id(name) {
					fmt.Fprintf(out, "  %s  raw %4d  capped %4d  weighs %4d  %s\n", name, s.Raw, s.Capped, s.Weight, s.Why)
				}
			}
		}
		fault := quorum.BFT.FaultBudget(weights.Total())
		fmt.Fprintf(out, "  %d may lie without harm; %d anchors weigh more than that\n", fault, trust.Fewest(weights, fault+1))
	}

	apply(
		trust.Evidence{Anchor: id("ann"), Kind: trust.Founded, Score: 900_000},
		trust.Evidence{Anchor: id("bob"), Kind: trust.Founded, Score: 500_000},
		trust.Evidence{Anchor: id("cyd"), Kind: trust.Founded, Score: 500_000},
		trust.Evidence{Anchor: id("dee"), Kind: trust.Founded, Score: 500_000},
	)
	weigh(0)
	apply(trust.Evidence{Anchor: id("eve"), Kind: trust.Admitted, Sponsor: id("ann"), Proof: aweigh.Sum([]byte("motion")), Height: 12})
	for e := aweigh.Epoch(0); e < 5; e++ {
		record := func(name string, r trust.Attendance) trust.Evidence {
			return trust.Evidence{Anchor: id(name), Kind: trust.Attended, Epoch: e, Record: r}
		}
		evidence := []trust.Evidence{
			record("ann", trust.Attendance{Blocks: 64, Timely: 64, Led: 25}),
			record("bob", trust.Attendance{Blocks: 64, Timely: 60, Late: 2, Led: 11, Nullified: 1}),
			record("cyd", trust.Attendance{Blocks: 64, Nullified: 13}),
			record("dee", trust.Attendance{Blocks: 64, Timely: 64, Led: 14}),
			record("eve", trust.Attendance{Blocks: 64, Timely: 64}),
		}
		switch e {
		case 0:
			apply(evidence...)
			weigh(1)
		default: // the same again, less to read
			ledger = ledger.Apply(p, evidence...)
			if e < 4 {
				weights, _ = ledger.Next(p, e+1, weights)
			}
		}
	}
	weigh(5)
	apply(trust.Evidence{Anchor: id("eve"), Kind: trust.Equivocated, Epoch: 5, Height: 400, Proof: aweigh.Sum([]byte("proof"))})
	weigh(6)
}

func Example_sixEpochs() {
	workedExample(os.Stdout)
	// Output:
	// epoch 0  ann       0 -> 900000  founded: the genesis gives 900000
	// epoch 0  bob       0 -> 500000  founded: the genesis gives 500000
	// epoch 0  cyd       0 -> 500000  founded: the genesis gives 500000
	// epoch 0  dee       0 -> 500000  founded: the genesis gives 500000
	// weights of epoch 0, 2357 in all:
	//   ann  raw  910  capped  707  weighs  707  score 900000, no anchor holds more than 3/10
	//   bob  raw  550  capped  550  weighs  550  score 500000
	//   cyd  raw  550  capped  550  weighs  550  score 500000
	//   dee  raw  550  capped  550  weighs  550  score 500000
	//   785 may lie without harm; 2 anchors weigh more than that
	// epoch 0  eve       0 -> 100000  admitted: motion 30523827, sponsor 49915e0d, starting from 100000, weighs from epoch 5
	// epoch 0  ann  900000 -> 919188  attended: 64 of 64 in time, 0 late: +31250 gain, -14062 decay, -0 absence, +2000 led 25 of 25
	// epoch 0  bob  500000 -> 522164  attended: 60 of 64 in time, 2 late: +29785 gain, -7812 decay, -976 absence, +1833 led 11 of 12, -666 idle
	// epoch 0  cyd  500000 -> 452938  attended: 0 of 64 in time, 0 late: +0 gain, -7812 decay, -31250 absence, +0 led 0 of 13, -8000 idle
	// epoch 0  dee  500000 -> 525438  attended: 64 of 64 in time, 0 late: +31250 gain, -7812 decay, -0 absence, +2000 led 14 of 14
	// epoch 0  eve  100000 -> 129688  attended: 64 of 64 in time, 0 late: +31250 gain, -1562 decay, -0 absence
	// weights of epoch 1, 2354 in all:
	//   ann  raw  927  capped  706  weighs  706  score 919188, no anchor holds more than 3/10
	//   bob  raw  569  capped  569  weighs  569  score 522164
	//   cyd  raw  507  capped  507  weighs  507  score 452938
	//   dee  raw  572  capped  572  weighs  572  score 525438
	//   eve  raw    0  capped    0  weighs    0  on probation until epoch 5
	//   784 may lie without harm; 2 anchors weigh more than that
	// weights of epoch 5, 2589 in all:
	//   ann  raw  993  capped  854  weighs  776  score 992989, no anchor holds more than 3/10, from 713 on the way to 854
	//   bob  raw  646  capped  646  weighs  635  score 606991, from 627 on the way to 646
	//   cyd  raw  368  capped  368  weighs  386  score 298696, from 399 on the way to 368
	//   dee  raw  660  capped  660  weighs  648  score 623277, from 639 on the way to 660
	//   eve  raw  319  capped  319  weighs  144  score 243873, from 0 on the way to 319
	//   862 may lie without harm; 2 anchors weigh more than that
	// epoch 5  eve  243873 ->      0  equivocated: two conflicting ballots, proof c1cda263; barred until readmitted
	// epoch 5  ann  992989 -> 744742  surety: 85262adf, which it brought in at epoch 0, lied, proof c1cda263: -248247, which is 1/4
	// weights of epoch 6, 2391 in all:
	//   ann  raw  770  capped  717  weighs  717  score 744742, no anchor holds more than 3/10
	//   bob  raw  646  capped  646  weighs  646  score 606991
	//   cyd  raw  368  capped  368  weighs  368  score 298696
	//   dee  raw  660  capped  660  weighs  660  score 623277
	//   796 may lie without harm; 2 anchors weigh more than that
}

func TestDocumentShowsTheWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	workedExample(&b)
	if !strings.Contains(string(doc), "```text\n"+b.String()+"```") {
		t.Errorf("docs/trust.md does not show what the example gives:\n%s", b.String())
	}
}

func TestDocumentNamesEveryParameter(t *testing.T) {
	doc, err := os.ReadFile("../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(of reflect.Value, prefix string) {
		for i := range of.NumField() {
			f, v := of.Type().Field(i), of.Field(i)
			if f.IsExported() && f.Type != reflect.TypeFor[trust.Group]() && !strings.Contains(string(doc), fmt.Sprintf("| `%s%s` | %v |", prefix, f.Name, v)) {
				t.Errorf("docs/trust.md does not say that the default of %s%s is %v", prefix, f.Name, v)
			}
		}
	}
	says(reflect.ValueOf(trust.DefaultParams()), "")
	says(reflect.ValueOf(trust.DefaultParams().Group), "Group.")
}

// TestDocumentShowsJudgement: the line that the document shows is one that is given.
func TestDocumentShowsJudgement(t *testing.T) {
	doc, err := os.ReadFile("../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	l := founders(4).Apply(trust.DefaultParams(), trust.Evidence{Anchor: named(0), Kind: trust.Attended, Record: trust.Attendance{Against: 4}})
	_, changes := l.ApplyExplained(trust.DefaultParams(), trust.Evidence{
		Anchor: named(0), Kind: trust.Attended, Record: trust.Attendance{Blocks: 64, Timely: 64, With: 3, Against: 1},
	})
	if !strings.Contains(string(doc), "```text\n"+changes[0].Reason+"\n```") {
		t.Errorf("docs/trust.md does not show %q", changes[0].Reason)
	}
}

// TestDocumentShowsTheGroup: the lines that the document shows are those that are given.
func TestDocumentShowsTheGroup(t *testing.T) {
	doc, err := os.ReadFile("../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSeries(t, trust.Group{Least: 4, Most: 4, Tolerates: 1, Replace: 2}, 500_000, 500_001, 500_002, 500_003, 400_000)
	s.turn(0, 2)
	s.turn(0, 2)
	var b strings.Builder
	for _, kind := range []trust.EvidenceKind{trust.Rested, trust.Called} {
		for _, c := range s.said {
			if c.Evidence.Kind == kind {
				fmt.Fprintln(&b, c.Reason)
			}
		}
	}
	if !strings.Contains(string(doc), "```text\n"+b.String()+"```") {
		t.Errorf("docs/trust.md does not show\n%s", b.String())
	}
}
