package show

import (
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
)

type weightJSON struct {
	Name string `json:"name"`
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// PolicyDiff writes a policy's changes. now is the anchors' standing, with their
// weights in the next epoch without it; after is the same with it.
func (p Printer) PolicyDiff(diff []policytext.Change, now, after *aweighv1.TrustResponse) error {
	var weights []weightJSON
	for i, a := range after.Anchors {
		if i < len(now.Anchors) && now.Anchors[i].NextWeight != a.NextWeight {
			weights = append(weights, weightJSON{a.Name, now.Anchors[i].NextWeight, a.NextWeight})
		}
	}
	if p.Format == JSON {
		out := struct {
			Changes   []fieldJSON  `json:"changes"`
			Weights   []weightJSON `json:"weights"` // that differ, in the next epoch
			Seats     uint32       `json:"next_seats"`
			Stop      uint32       `json:"next_stop"`
			Break     uint32       `json:"next_break"`
			Stoppable bool         `json:"next_stoppable"`
		}{fieldsJSON(diff), weights, after.NextSeats, after.NextStop, after.NextBreak, after.NextStoppable}
		return p.JSON(out)
	}
	if len(diff) == 0 {
		_, err := fmt.Fprintln(p.Out, "nothing changes")
		return err
	}
	if err := p.fields(diff); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\nthen: %s\n", fewest(after.NextStop, after.NextBreak, int(after.NextSeats)))
	fmt.Fprintf(p.Out, "now:  %s\n", fewest(now.NextStop, now.NextBreak, int(now.NextSeats)))
	if after.NextStoppable {
		fmt.Fprintln(p.Out, "warning: the weight that may fail, or one anchor alone, could then stop this scope (P3)")
	}
	if len(weights) == 0 {
		_, err := fmt.Fprintln(p.Out, "the weights of the next epoch would be the same")
		return err
	}
	fmt.Fprintln(p.Out)
	rows := [][]string{{"ANCHOR", "NEXT WEIGHT NOW", "THEN"}}
	for _, w := range weights {
		rows = append(rows, []string{brief(w.Name), fmt.Sprint(w.From), fmt.Sprint(w.To)})
	}
	return p.table(rows...)
}

// fieldJSON is a field of a policy that changes.
type fieldJSON struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

func fieldsJSON(diff []policytext.Change) []fieldJSON {
	all := []fieldJSON{}
	for _, d := range diff {
		all = append(all, fieldJSON{d.Field, d.From, d.To})
	}
	return all
}

// fields writes a row for each field of a policy that changes.
func (p Printer) fields(diff []policytext.Change) error {
	rows := [][]string{{"FIELD", "NOW", "THEN", ""}}
	for _, d := range diff {
		rows = append(rows, []string{d.Field, d.From, d.To, d.About})
	}
	return p.table(rows...)
}
