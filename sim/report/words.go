package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// verdict is the result of a run, in words for operators of networks.
type verdict struct {
	Class string // held, broken, stuck
	Word  string
	Text  string
	More  []string
}

// verdictOf judges a run as Result.Failure does, in more words.
func verdictOf(r *sim.Result) verdict {
	expect, over := len(r.Scenario.Expect) > 0, r.Faulty > r.Budget
	switch {
	case len(r.Broken) > 0 && expect && !r.Failed():
		i := slices.IndexFunc(r.Broken, func(b sim.Breach) bool { return slices.Contains(r.Scenario.Expect, b.Invariant) })
		return verdict{"broken", "Broken, as expected", breach(r.Broken[max(0, i)]),
			[]string{"This scenario lets more lie than the fault budget allows, to show that the check can fail. " + beyond(r)}}
	case expect:
		return verdict{"stuck", "Not broken as expected", title(r.Failure()) + ".",
			[]string{"The liars found no way with this seed, or the check does not see it.", beyond(r)}}
	case len(r.Broken) > 0 && over:
		return verdict{"broken", "Broken, beyond the fault budget", breach(r.Broken[0]), []string{beyond(r)}}
	case len(r.Broken) > 0:
		return verdict{"broken", "Broken", breach(r.Broken[0]),
			[]string{"Those at fault weigh no more than the fault budget, so that this must never happen: it is a defect."}}
	case r.Healed.Possible && !r.Healed.Reached:
		return verdict{"stuck", "No progress", "Nothing that is promised broke, but the network did not come back.",
			[]string{fmt.Sprintf("%s after all faults had ended, %s. The honest anchors have the weight to go on.", brief(r.Healed.After), or(r.Healed.Why, "it was still not done"))}}
	}
	if r.Failed() {
		return verdict{"stuck", "Shows too little", title(r.Failure()) + ".", nil}
	}
	v := verdict{"held", "Held", "Everything that was looked at held: " + looked(r.Verdicts) + ".", nil}
	switch h := r.Healed; {
	case h.Reached:
		v.More = append(v.More, fmt.Sprintf("After the faults ended, the honest nodes made writes of their own final within %s, and all reached the same state.", brief(h.After)))
	case h.Asked:
		v.More = append(v.More, "Progress after the faults was not demanded: the honest nodes that were left have not the weight for it.")
	}
	return v
}

// looked counts the invariants that were looked at.
func looked(all []sim.Verdict) string {
	return fmt.Sprintf("%d of %d invariants", len(all)-len(sim.Unlooked(all)), len(all))
}

func breach(b sim.Breach) string {
	where := "in the network as a whole"
	if b.Node >= 0 {
		where = fmt.Sprintf("at n%d", b.Node)
	}
	return fmt.Sprintf("%s broke after %s %s: %s.", title(b.Invariant), brief(b.At), where, strings.TrimSuffix(b.Text, "."))
}

func beyond(r *sim.Result) string {
	return fmt.Sprintf("Weight %s of %s is at fault, where %s would do no harm.", grouped(r.Faulty), grouped(r.Total), grouped(r.Budget))
}

// sentence describes a scenario.
func sentence(s scenario.Scenario) string {
	n := s.Network
	parts := []string{plural(n.Anchors, "anchor")}
	if n.Observers > 0 {
		parts = append(parts, plural(n.Observers, "observer"))
	}
	text := title(list(parts)) + " in mode " + or(n.Mode, "bft") + ", " + links(s.Links)
	var wrong []string
	for _, f := range []struct {
		share scenario.Share
		what  string
	}{{s.Faults.Loss, "of frames lost"}, {s.Faults.Duplicate, "arriving twice"}, {s.Faults.Reorder, "overtaken"}, {s.Faults.Crash, "of effects ending in a crash"}} {
		if f.share > 0 {
			wrong = append(wrong, f.share.String()+" "+f.what)
		}
	}
	if t := len(s.Faults.Timed); t > 0 {
		wrong = append(wrong, plural(t, "timed fault"))
	}
	if len(wrong) > 0 {
		text += ", with " + list(wrong)
	}
	load := s.Load
	asked := []string{plural(load.Writes, "write"), plural(load.Reads, "read")}
	if load.Names > 0 {
		asked = append(asked, plural(load.Names, "change")+" of names")
	}
	if load.Visits > 0 {
		asked = append(asked, plural(load.Visits, "visit")+" by referral")
	}
	if load.Verified > 0 {
		asked = append(asked, plural(load.Verified, "verified read"))
	}
	text += fmt.Sprintf(". %s, %s in %s", title(plural(load.Clients, "client")), list(asked), brief(s.Stop))
	if s.Heal != nil {
		text += "; then all faults end, and the honest must make progress"
	}
	return text + "."
}

// links reports how frames travel.
func links(l scenario.Links) string {
	switch l.Model {
	case "constant":
		return "frames taking " + brief(l.Delay)
	case "lognormal":
		return fmt.Sprintf("frames taking %s in the median and a long tail", brief(l.Delay))
	case "regions":
		if len(l.Regions) == 0 {
			return "spread over cloud regions of the world"
		}
		return "spread over the regions " + list(l.Regions)
	}
	return fmt.Sprintf("frames taking %s to %s", brief(l.Delay), brief(l.Delay+l.Spread))
}

// whoOf reports which anchors have a role.
func whoOf(r scenario.Role) string {
	switch {
	case len(r.Anchors) > 0:
		return nodes(r.Anchors)
	case r.Weight == "over":
		return "the fewest that are too many"
	case r.Weight == "half":
		return "half of the fault budget"
	case r.Weight != "":
		return "as many as the fault budget allows"
	}
	return plural(r.Count, "anchor")
}

// whenOf reports when a coalition lies, and how often.
func whenOf(r scenario.Role) string {
	text := "always"
	switch {
	case r.From > 0 && r.Until > 0:
		text = "from " + brief(r.From) + " until " + brief(r.Until)
	case r.From > 0:
		text = "from " + brief(r.From)
	case r.Until > 0:
		text = "until " + brief(r.Until)
	}
	if r.Every > 0 {
		text += ", half of every " + brief(r.Every)
	}
	switch {
	case r.Rate == scenario.Whole:
		text += ", on every occasion"
	case r.Rate > 0:
		text += ", on " + r.Rate.String() + " of occasions"
	}
	return text
}

// nodes is like n1, n2 and n5 to n9.
func nodes(numbers []int) string {
	var names []string
	for i := 0; i < len(numbers); i++ {
		first := i
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		switch name := "n" + strconv.Itoa(numbers[i]); {
		case i-first > 1:
			names = append(names, "n"+strconv.Itoa(numbers[first])+" to "+name)
		case i-first == 1:
			names = append(names, "n"+strconv.Itoa(numbers[first]), name)
		default:
			names = append(names, name)
		}
	}
	return list(names)
}

// list joins with commas and a last and.
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

func plural(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return grouped(uint64(max(0, n))) + " " + what + "s"
}

// grouped is a number with commas between thousands.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
