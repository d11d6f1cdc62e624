package show

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

type topologyJSON struct {
	Header  *header    `json:"header"`
	Split   string     `json:"split"` // off, advise or act
	Rate    uint32     `json:"rate"`  // changes a second from which on a prefix is busy
	Epochs  uint32     `json:"epochs"`
	Rest    uint32     `json:"rest"`
	Most    uint32     `json:"most"`
	Splits  uint32     `json:"splits"`  // that the scope made by itself, without those that came home
	Moved   uint64     `json:"moved"`   // epoch that began with the last one, or with one that failed; 0: none
	Changes uint64     `json:"changes"` // in the epoch so far
	SinceNs int64      `json:"since_ns"`
	Busy    uint64     `json:"busy"` // changes in that time from which on a prefix is busy
	Heat    []heatJSON `json:"heat"`
	Fold    string     `json:"fold"` // off, advise or act
	QuietNs int64      `json:"quiet_ns"`
	Home    *homeJSON  `json:"home"` // whether the scope goes back to the one above; null: there is none
	Next    *string    `json:"next"` // the prefix that is to become a scope of its own; null: none
	Reason  string     `json:"reason,omitempty"`
}

type homeJSON struct {
	Quiet  bool   `json:"quiet"`   // it asks for that
	FromNs int64  `json:"from_ns"` // time from which on it counts as quiet; 0: never
	Stays  string `json:"stays,omitempty"`
}

type heatJSON struct {
	Prefix    string `json:"prefix"`
	PrefixHex string `json:"prefix_hex,omitempty"`
	Key       bool   `json:"key"` // of this very key
	Least     uint64 `json:"least"`
	Most      uint64 `json:"most"`
	Streak    uint32 `json:"streak"` // epochs in a row before this one in which it was busy
}

// A table has what has at least one in leastShare of the changes, or was busy before; and at most so many lines.
const (
	leastShare = 20
	mostHeat   = 12
)

// Topology writes where the changes of a scope go.
func (p Printer) Topology(r *aweighv1.TopologyResponse) error {
	heat := slices.Clone(r.Heat)
	slices.SortStableFunc(heat, func(a, b *aweighv1.Heat) int { return cmp.Compare(b.Least, a.Least) })
	if p.Format == JSON {
		h := headerJSON(r.Header)
		out := topologyJSON{
			Header: &h, Split: r.Split, Rate: r.Rate, Epochs: r.Epochs, Rest: r.Rest, Most: r.Most, Splits: r.Splits, Moved: r.Moved,
			Changes: r.Changes, SinceNs: r.SinceNs, Busy: r.Busy, Heat: []heatJSON{}, Reason: r.Reason,
			Fold: r.Fold, QuietNs: r.QuietNs,
		}
		if h := r.Home; h != nil {
			out.Home = &homeJSON{Quiet: h.Quiet, FromNs: h.FromNs, Stays: h.Stays}
		}
		if len(r.Next) > 0 {
			next := string(r.Next)
			out.Next = &next
		}
		for _, x := range heat {
			j := heatJSON{Prefix: string(x.Prefix), Key: x.Key, Least: x.Least, Most: x.Most, Streak: x.Streak}
			if Key(x.Prefix) != j.Prefix {
				j.PrefixHex = hex.EncodeToString(x.Prefix)
			}
			out.Heat = append(out.Heat, j)
		}
		return p.JSON(out)
	}
	rows := [][]string{{"split", r.Split}}
	if r.Split != "off" {
		since := time.Duration(r.SinceNs).Round(time.Second)
		rows[0][1] += fmt.Sprintf(": a prefix is busy from %s a second on, and is split off after %s in a row",
			Count(int(r.Rate), "change"), Count(int(r.Epochs), "busy epoch"))
		rows = append(rows,
			[]string{"has", fmt.Sprintf("%d of %s, at least %s apart", r.Splits, Count(int(r.Most), "split"), Count(int(r.Rest), "epoch"))},
			[]string{"epoch", fmt.Sprintf("%d, with %s in %s so far", r.Header.GetEpoch(), Count(int(r.Changes), "change"), since)})
	}
	if r.Fold != "off" {
		rows = append(rows, []string{"fold", fmt.Sprintf("%s: what split off goes back after %v with less than half of %s a second", r.Fold, time.Duration(r.QuietNs), Count(int(r.Rate), "change"))})
	}
	if r.Home != nil {
		rows = append(rows, []string{"home", homeward(r)})
	}
	rows = append(rows, []string{"next", nextSplit(r)})
	if err := p.table(rows...); err != nil {
		return err
	}
	heat = slices.DeleteFunc(heat, func(x *aweighv1.Heat) bool { return x.Streak == 0 && leastShare*x.Least < r.Changes })
	if len(heat) > 0 {
		fmt.Fprintln(p.Out)
		rows := [][]string{{"BELOW", "CHANGES", "A SECOND", "SHARE", "BUSY BEFORE"}}
		for _, x := range heat[:min(len(heat), mostHeat)] {
			rows = append(rows, heatRow(x, r))
		}
		if err := p.table(rows...); err != nil {
			return err
		}
	}
	return p.toldAlone(r.Header)
}

// homeward says whether the scope goes back to the one above.
func homeward(r *aweighv1.TopologyResponse) string {
	switch {
	case r.Home.Quiet && r.Home.Stays == "":
		return "it is quiet, and asks the scope above to take it back"
	case r.Home.Quiet:
		return "it is quiet, and stays: " + Line(r.Home.Stays)
	case r.Home.Stays == "":
		return "it asks the scope above to take it back, as this epoch ends"
	case r.Home.Stays == scope.AdvisesAlone:
		return "not by itself: " + Line(r.Home.Stays) + "; \"aweigh scope fold\" takes it back"
	case r.Fold == "off" || r.Home.FromNs == 0:
		return "not by itself: " + Line(r.Home.Stays)
	}
	return "not now: " + Line(r.Home.Stays)
}

// nextSplit says what the scope would do.
func nextSplit(r *aweighv1.TopologyResponse) string {
	if len(r.Next) == 0 {
		return "nothing: " + Line(r.Reason)
	}
	if r.Reason == "" {
		return Key(r.Next) + " becomes a scope of its own if it stays busy until this epoch ends"
	}
	text := Key(r.Next) + ", but not now: " + Line(r.Reason)
	if r.Split == "advise" {
		text += fmt.Sprintf("; \"aweigh scope create %s\" makes it one", Word(string(r.Next)))
	}
	return text
}

func heatRow(x *aweighv1.Heat, r *aweighv1.TopologyResponse) []string {
	below, changes := Key(x.Prefix), fmt.Sprint(x.Least)
	if x.Key {
		below += " (key)"
	}
	if x.Most > x.Least {
		changes += fmt.Sprintf(" to %d", x.Most)
	}
	second := max(time.Duration(r.SinceNs).Seconds(), 1)
	before := "-"
	if x.Streak > 0 {
		before = Count(int(x.Streak), "epoch")
	}
	return []string{below, changes, fmt.Sprintf("%.1f", float64(x.Least)/second), share(x.Least, max(r.Changes, 1)), before}
}
