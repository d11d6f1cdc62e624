package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/sim"
)

var info = Info{Command: "aweigh sim run made --seed 1", Version: "v0", Wall: time.Second, Date: "2026-01-01"}

// results are runs of every kind and size, by name.
func results() map[string]*sim.Result {
	all := map[string]*sim.Result{
		"empty": {}, "small": made(1, 4, 1, 200), "honest": made(2, 4, 0, 100), "large": made(3, 100, 33, 5000), "alone": made(4, 1, 0, 1),
		"no marks": made(5, 7, 2, 0), "fork": forked(), "one sample": made(6, 4, 1, 10), "no time": made(7, 4, 1, 10), "stuck": made(8, 4, 1, 50),
	}
	all["no marks"].Marks = nil
	all["one sample"].Finality = all["one sample"].Finality[:1]
	n := all["no time"]
	n.Virtual, n.Finality, n.Blocks, n.Scenario.Stop = 0, []time.Duration{0, 0}, 0, 0
	for i := range n.Marks {
		n.Marks[i].At, n.Marks[i].Sent = 0, 0
	}
	all["stuck"].Healed = sim.Healing{Asked: true, Possible: true, Why: "a write at n1 is not final"}
	return all
}

func runPageOf(t *testing.T, r *sim.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Run(&b, r, info); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func studyPageOf(t *testing.T, s StudyData) string {
	t.Helper()
	var b bytes.Buffer
	if err := Study(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// pagesOf are reports of all kinds of runs and studies.
func pagesOf(t *testing.T) map[string]string {
	all := make(map[string]string)
	for name, r := range results() {
		all["run "+name] = runPageOf(t, r)
	}
	bare := studied()
	for i := range bare.Latency.Models {
		for j := range bare.Latency.Models[i].Points {
			bare.Latency.Models[i].Points[j].Samples = bare.Latency.Models[i].Points[j].Samples[:j%2]
		}
	}
	bare.Cost.Points, bare.Heat.Cells, bare.Throughput.Attacks = bare.Cost.Points[:1], bare.Heat.Cells[:1], bare.Throughput.Attacks[:1]
	bare.Throughput.Attacks[0].Points = bare.Throughput.Attacks[0].Points[:1]
	all["study"], all["study bare"], all["study empty"] = studyPageOf(t, studied()), studyPageOf(t, bare), studyPageOf(t, StudyData{})
	return all
}

// void are the elements of HTML that have no end.
var void = []string{"meta", "br", "hr", "img", "input", "link"}

// balanced reports the first tag that does not match, and IDs that occur twice.
func balanced(page string) error {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, void, xml.HTMLEntity
	var open []string
	ids := make(map[string]bool)
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				if a.Name.Local == "id" {
					if ids[a.Value] {
						return errors.New("two elements have the id " + a.Value)
					}
					ids[a.Value] = true
				}
			}
			if !slices.Contains(void, token.Name.Local) {
				open = append(open, token.Name.Local)
			}
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != token.Name.Local {
				return errors.New("no " + token.Name.Local + " is open")
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return errors.New(strings.Join(open, " ") + " stay open")
	}
	return nil
}

var drawing = regexp.MustCompile(`(?s)<svg .*?</svg>`)

func TestPagesAreWellFormed(t *testing.T) {
	for name, page := range pagesOf(t) {
		if err := balanced(page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, svg := range drawing.FindAllString(page, -1) {
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v in %.200s", name, err, svg)
				}
			}
		}
	}
	if balanced("<p><b></p>") == nil || balanced(`<p id="a"></p><p id="a"></p>`) == nil {
		t.Error("the check finds nothing")
	}
}

func TestPagesLoadNothing(t *testing.T) {
	reference := regexp.MustCompile(`(?i)https?://[^"' <)]*|<script|<link|<iframe|@import|url\(|\s(src|on[a-z]+)=`)
	for name, page := range pagesOf(t) {
		for _, found := range reference.FindAllString(page, -1) {
			if found != "http://www.w3.org/2000/svg" {
				t.Errorf("%s has %q", name, found)
			}
		}
	}
}

func TestEveryDrawingHasATitleAndADescription(t *testing.T) {
	named := regexp.MustCompile(`^<svg [^>]*role="img" aria-labelledby="\S+ \S+"[^>]*><title id="[^"]+">[^<]+</title><desc id="[^"]+">[^<]+</desc>`)
	for name, page := range pagesOf(t) {
		for _, svg := range drawing.FindAllString(page, -1) {
			if !strings.Contains(svg, `aria-hidden="true"`) && !named.MatchString(svg) {
				t.Errorf("%s: %.200s", name, svg)
			}
		}
	}
}

func TestCoordinatesAreNumbers(t *testing.T) {
	if num(math.NaN()) != "0" || num(math.Inf(1)) != "0" || num(-.01) != "0" {
		t.Error("what is no number, or -0, is drawn")
	}
	for name, page := range pagesOf(t) {
		for _, svg := range drawing.FindAllString(page, -1) {
			for _, bad := range []string{"NaN", "Inf", "%!", "-0 ", `"-0"`, ">-0<"} {
				if strings.Contains(svg, bad) {
					t.Errorf("%s has %q", name, bad)
				}
			}
		}
	}
}

// inPlace matches coordinates of shapes.
var inPlace = regexp.MustCompile(` (x|x1|x2|cx|y|y1|y2|cy)="(-?[0-9.]+)"`)

func TestNothingIsDrawnOutside(t *testing.T) {
	size := regexp.MustCompile(`viewBox="0 0 ([0-9.]+) ([0-9.]+)"`)
	for name, page := range pagesOf(t) {
		for _, svg := range drawing.FindAllString(page, -1) {
			box := size.FindStringSubmatch(svg)
			for _, m := range inPlace.FindAllStringSubmatch(svg, -1) {
				most := number(t, box[1])
				if strings.Contains(m[1], "y") {
					most = number(t, box[2])
				}
				if v := number(t, m[2]); v < 0 || v > most {
					t.Errorf("%s: %s is outside of 0 to %v: %.120s", name, m[0], most, svg)
				}
			}
		}
	}
}

func TestHostileTextIsText(t *testing.T) {
	const hostile = `</title></svg><script>alert("1")</script>&'` + "\x00\x1b]"
	r := forked()
	r.Scenario.Name, r.Scenario.About = hostile, hostile
	r.Broken[0].Text, r.Healed.Why = hostile, hostile
	r.Scenario.Roles[0].Attacks[0] = hostile
	r.Attacks[0].Name, r.Verdicts[0].Invariant, r.Goals[0].Name = hostile, hostile, hostile
	for i := range r.Marks {
		if r.Marks[i].Kind == "message" {
			r.Marks[i].Text += hostile
		} else if r.Marks[i].Kind == "lie" {
			r.Marks[i].Text = hostile
		}
	}
	s := studied()
	s.Failure.Result, s.Heat.Attacks, s.Latency.Models[0].Name, s.Throughput.Attacks[0].Attack = r, []string{hostile}, hostile, hostile
	s.Command, s.Heat.Seeds, s.Heat.World, s.Heat.Cells[13].All[0] = hostile, hostile, hostile, hostile
	for _, page := range []string{runPageOf(t, r), studyPageOf(t, s)} {
		if strings.Contains(page, "<script") || strings.ContainsAny(page, "\x00\x1b") {
			t.Error("hostile text came through")
		}
		if !strings.Contains(page, "&lt;script&gt;") {
			t.Error("hostile text is not shown at all")
		}
		if err := balanced(page); err != nil {
			t.Error(err)
		}
	}
}

func TestSameDataSameBytes(t *testing.T) {
	a, b := pagesOf(t), pagesOf(t)
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
}
