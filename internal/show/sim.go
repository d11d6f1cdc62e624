package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// Simulation is a run with data of the program around it.
type Simulation struct {
	*sim.Result
	Wall   time.Duration
	Report string // the file; empty if there is none
	Again  string // the command that repeats the run
}

type runJSON struct {
	Scenario   string        `json:"scenario"`
	Seed       uint64        `json:"seed"`
	Failure    string        `json:"failure"` // empty: all promises held
	Trace      string        `json:"trace"`
	Events     uint64        `json:"events"`
	VirtualNs  time.Duration `json:"virtual_ns"`
	Seconds    float64       `json:"seconds"`
	Anchors    int           `json:"anchors"`
	Observers  int           `json:"observers"`
	Faulty     uint64        `json:"faulty_weight"`
	Budget     uint64        `json:"fault_budget"`
	Total      uint64        `json:"total_weight"`
	Verdicts   []verdictJSON `json:"verdicts"`
	Broken     []breachJSON  `json:"broken"`
	Healing    healingJSON   `json:"healing"`
	Goals      []countJSON   `json:"goals"`
	Attacks    []countJSON   `json:"attacks"`
	Refused    []countJSON   `json:"refused"`
	Executed   uint64        `json:"executed"`
	Unmodelled []countJSON   `json:"unmodelled"`
	Proven     []int         `json:"proven"`
	Heights    []uint64      `json:"heights"`
	Blocks     int           `json:"blocks"`
	Writes     int           `json:"writes"`
	Reads      int           `json:"reads"`
	Nullified  int           `json:"nullified"`
	Finality   finalityJSON  `json:"finality_ns"`
	Messages   uint64        `json:"messages"`
	Bytes      uint64        `json:"bytes"`
	Scopes     []scopeRun    `json:"scopes,omitempty"`
	Report     string        `json:"report,omitempty"`
	Again      string        `json:"again"`
}

// scopeRun is a scope that was founded in a run.
type scopeRun struct {
	Prefix  string        `json:"prefix"`
	Depth   int           `json:"depth"`
	Mode    string        `json:"mode"`
	Anchors []int         `json:"anchors"`
	AtNs    time.Duration `json:"at_ns"`
	Keys    int64         `json:"keys"`       // that were handed over
	Split   bool          `json:"by_itself"`  // no decision asked for it
	OrderNs time.Duration `json:"ordered_ns"` // when it was ordered to come home; 0: it was not
	HomeNs  time.Duration `json:"home_ns"`    // when it was home; 0: it is not
	Height  uint64        `json:"height"`
	Lost    bool          `json:"lost"` // more of its weight lies than may
}

type verdictJSON struct {
	Invariant string `json:"invariant"`
	Checks    uint64 `json:"checks"`
	Broken    uint64 `json:"broken"`
	Verdict   string `json:"verdict"` // held, broken or not looked at
}

type breachJSON struct {
	Invariant string        `json:"invariant"`
	AtNs      time.Duration `json:"at_ns"`
	Node      int           `json:"node"` // -1: the network as a whole
	Text      string        `json:"text"`
}

type healingJSON struct {
	Asked    bool          `json:"asked"`
	Possible bool          `json:"possible"`
	Reached  bool          `json:"reached"`
	AfterNs  time.Duration `json:"after_ns"`
	Why      string        `json:"why,omitempty"`
}

type finalityJSON struct {
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	Max time.Duration `json:"max"`
}

type countJSON struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// Simulation writes what came of a run.
func (p Printer) Simulation(s Simulation) error {
	if p.Format == JSON {
		return p.JSON(runOf(s))
	}
	n := s.Scenario.Network
	head := [][]string{
		{"scenario", strings.TrimSuffix(fmt.Sprintf("%s, seed %d: %s", named(s.Scenario.Name), s.Scenario.Seed, s.Scenario.About), ": ")},
		{"network", fmt.Sprintf("%s, %s, mode %s", plural(n.Anchors, "anchor"), plural(n.Observers, "observer"), n.Mode)},
		{"faulty", fmt.Sprintf("weight %d of %d; %d does no harm", s.Faulty, s.Total, s.Budget)},
		{"ran", fmt.Sprintf("%s in %s: %s events, %s messages, %s bytes", s.Virtual, round(s.Wall), Grouped(s.Events), Grouped(s.Messages), Grouped(s.Bytes))},
		{"made", fmt.Sprintf("%s, %s, %s, %s", plural(s.Blocks, "block"), plural(s.Writes, "write"), plural(s.Reads, "read"), plural(s.Nullified, "nullified view"))},
	}
	if f := finality(s.Finality); f.Max > 0 {
		head = append(head, []string{"finality", fmt.Sprintf("after %s in the median, %s for nine in ten, %s at most", round(f.P50), round(f.P90), round(f.Max))})
	}
	for _, c := range s.Scopes {
		what := ""
		if c.Lost {
			what = "; more lie in it than may"
		}
		if c.Home > 0 {
			what = fmt.Sprintf("; home after %s%s", round(c.Home), what)
		}
		by := ""
		if c.ByItself {
			by = "by itself "
		}
		head = append(head, []string{"scope", fmt.Sprintf("%s of %s, mode %s, %safter %s with %s; height %d%s",
			c.Prefix, plural(len(c.Anchors), "anchor"), c.Mode, by, round(c.At), plural(int(c.Keys), "key"), c.Height, what)})
	}
	if err := p.table(head...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if err := p.verdicts(s.Verdicts); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	var rows [][]string
	for i, b := range s.Broken {
		if i == mostShown {
			rows = append(rows, []string{"broken", fmt.Sprintf("%d more", len(s.Broken)-i)})
			break
		}
		rows = append(rows, []string{"broken", strings.Replace(b.String(), " broken", "", 1)})
	}
	proven := "no anchor"
	if len(s.Proven) > 0 {
		proven = strings.Trim(fmt.Sprint(s.Proven), "[]")
	}
	rows = append(rows,
		[]string{"healing", healing(s.Result)},
		[]string{"lies told", tally(s.Attacks)},
		[]string{"refused", tally(s.Refused)},
		[]string{"executed", Grouped(s.Executed) + " mutations, as a model does; taken from nodes: " + tally(s.Unmodelled)},
		[]string{"proven at fault", proven},
		[]string{"goals reached", tally(s.Goals)},
		[]string{"trace", s.Trace.String()},
	)
	if s.Report != "" {
		rows = append(rows, []string{"report", s.Report})
	}
	rows = append(rows, []string{"again", s.Again})
	if err := p.table(rows...); err != nil {
		return err
	}
	if s.Failed() {
		return nil // the error has the reason
	}
	conclusion := looked(s.Verdicts)
	switch {
	case s.Blocks == 0:
		conclusion = "nothing broke, but nothing became final either: this shows little"
	case s.Healed.Asked && !s.Healed.Possible:
		conclusion = "nothing broke; progress was not demanded, since the honest nodes had not the weight"
	}
	if len(s.Scenario.Expect) > 0 {
		conclusion = "as expected, since more than the budget is at fault, these broke: " + strings.Join(broken(s.Result), ", ")
	}
	_, err := fmt.Fprintf(p.Out, "\n%s\n", conclusion)
	return err
}

// broken are the invariants that broke.
func broken(r *sim.Result) (names []string) {
	for _, v := range r.Verdicts {
		if v.Broken > 0 {
			names = append(names, v.Invariant)
		}
	}
	return names
}

// mostShown bounds the list of breaches for people.
const mostShown = 5

func healing(r *sim.Result) string {
	switch h := r.Healed; {
	case !h.Asked:
		return "not asked for"
	case !h.Possible:
		return "not possible: the honest ones that are left have not the weight"
	case !h.Reached:
		return fmt.Sprintf("NOT REACHED within %s: %s", h.After, h.Why)
	default:
		return fmt.Sprintf("all made progress %s after the faults ended", h.After)
	}
}

// verdicts writes how each invariant fared.
func (p Printer) verdicts(all []sim.Verdict) error {
	rows := [][]string{{"INVARIANT", "CHECKS", "VERDICT", "MEANING"}}
	for _, v := range all {
		if !v.Looked() {
			continue
		}
		verdict := "held"
		if v.Broken > 0 {
			verdict = "BROKEN"
		}
		i := slices.IndexFunc(scenario.Invariants, func(n scenario.Named) bool { return n.Name == v.Invariant })
		about := ""
		if i >= 0 {
			about = scenario.Invariants[i].About
		}
		rows = append(rows, []string{v.Invariant, Grouped(v.Checks), verdict, about})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if unlooked := sim.Unlooked(all); len(unlooked) > 0 {
		return p.table([]string{"not looked at", strings.Join(unlooked, ", ")})
	}
	return nil
}

// looked describes the result of a run without a failure.
func looked(all []sim.Verdict) string {
	looked := len(all) - len(sim.Unlooked(all))
	if looked == len(all) {
		return fmt.Sprintf("all %d invariants held", looked)
	}
	return fmt.Sprintf("the %d invariants that were looked at held, of %d", looked, len(all))
}

// finality sums up how long writes took until they were acknowledged.
func finality(all []time.Duration) (f finalityJSON) {
	if len(all) == 0 {
		return f
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(tenths int) time.Duration { return sorted[(len(sorted)-1)*tenths/10] }
	return finalityJSON{at(5), at(9), at(10)}
}

func runOf(s Simulation) runJSON {
	out := runJSON{
		Scenario: s.Scenario.Name, Seed: s.Scenario.Seed, Failure: s.Failure(), Trace: s.Trace.String(),
		Events: s.Events, VirtualNs: s.Virtual, Seconds: s.Wall.Seconds(),
		Anchors: s.Scenario.Network.Anchors, Observers: s.Scenario.Network.Observers,
		Faulty: s.Faulty, Budget: s.Budget, Total: s.Total,
		Verdicts: verdictsJSON(s.Verdicts), Broken: []breachJSON{},
		Healing: healingJSON{s.Healed.Asked, s.Healed.Possible, s.Healed.Reached, s.Healed.After, s.Healed.Why},
		Goals:   countsJSON(s.Goals), Attacks: countsJSON(s.Attacks), Refused: countsJSON(s.Refused), Executed: s.Executed, Unmodelled: countsJSON(s.Unmodelled),
		Proven: append([]int{}, s.Proven...), Heights: make([]uint64, len(s.Heights)), Finality: finality(s.Finality), Blocks: s.Blocks, Writes: s.Writes, Reads: s.Reads, Nullified: s.Nullified,
		Messages: s.Messages, Bytes: s.Bytes, Report: s.Report, Again: s.Again,
	}
	for _, c := range s.Scopes {
		out.Scopes = append(out.Scopes, scopeRun{c.Prefix, c.Depth, c.Mode, c.Anchors, c.At, c.Keys, c.ByItself, c.Ordered, c.Home, uint64(c.Height), c.Lost})
	}
	for i, h := range s.Heights {
		out.Heights[i] = uint64(h)
	}
	for _, b := range s.Broken {
		out.Broken = append(out.Broken, breachOf(b))
	}
	return out
}

func breachOf(b sim.Breach) breachJSON { return breachJSON{b.Invariant, b.At, b.Node, b.Text} }

func verdictsJSON(all []sim.Verdict) []verdictJSON {
	out := make([]verdictJSON, len(all))
	for i, v := range all {
		out[i] = verdictJSON{v.Invariant, v.Checks, v.Broken, "held"}
		switch {
		case v.Broken > 0:
			out[i].Verdict = "broken"
		case !v.Looked():
			out[i].Verdict = "not looked at"
		}
	}
	return out
}

func countsJSON(all []sim.Count) []countJSON {
	out := make([]countJSON, len(all))
	for i, c := range all {
		out[i] = countJSON(c)
	}
	return out
}

// tally are the counts, on one line.
func tally(all []sim.Count) string {
	var list []string
	for _, c := range all {
		if c.Count > 0 {
			list = append(list, fmt.Sprintf("%s %s", c.Name, Grouped(c.Count)))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Grouped is a number with a comma between thousands.
func Grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count is a number of things in words, "1 entry" or "12 entries"; what is the singular.
func Count[N int | int64 | uint64 | uint32](n N, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "s"), strings.HasSuffix(what, "tch"):
		what += "es"
	case strings.HasSuffix(what, "y") && !strings.HasSuffix(what, "ey"):
		what = strings.TrimSuffix(what, "y") + "ies"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func plural(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", Grouped(uint64(max(0, n))), what)
}

func named(name string) string {
	if name == "" {
		return "unnamed"
	}
	return name
}
