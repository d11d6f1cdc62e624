package show

import (
	"encoding/hex"
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

type impactJSON struct {
	Hash      string        `json:"hash"`
	Keys      int64         `json:"keys"` // that change, under all names of their objects
	Deleted   int64         `json:"deleted"`
	Objects   int64         `json:"objects"`
	Born      int64         `json:"objects_new"`
	Ended     int64         `json:"objects_retired"`
	Bound     int64         `json:"names_bound"`
	Unbound   int64         `json:"names_unbound"`
	Redirects int64         `json:"redirects"`
	Leases    int64         `json:"leases"`
	Bytes     int64         `json:"bytes_written"`
	Grows     int64         `json:"bytes_grown"`
	Touched   []touchedJSON `json:"touched"` // the first of the keys
	Reform    *reformJSON   `json:"reform,omitempty"`
}

type touchedJSON struct {
	Key    string `json:"key"`
	Class  string `json:"class"`
	Object string `json:"uid,omitempty"` // before
	Found  int64  `json:"found_revision"`
	Was    int64  `json:"bytes_before"`
	Size   int64  `json:"bytes"`
	Lease  int64  `json:"lease,omitempty"`
}

type fewestJSON struct {
	Stop  int `json:"stop"`
	Break int `json:"break"`
}

type reseatedJSON struct {
	Anchor string `json:"anchor"`
	Name   string `json:"name"`
	Was    uint64 `json:"weight"`
	Is     uint64 `json:"weight_then"`
}

type askedJSON struct {
	Of  string `json:"of"`
	Was string `json:"now"`
	Is  string `json:"then"`
}

type flipJSON struct {
	Who    string `json:"who,omitempty"`
	Verb   string `json:"verb"`
	Prefix string `json:"prefix"`
	May    bool   `json:"may_then"`
	Rule   string `json:"rule_then,omitempty"`
}

type handedJSON struct {
	Keys   int64 `json:"keys"`
	Bytes  int64 `json:"bytes"`
	Leases int64 `json:"leases"`
	Whole  bool  `json:"counted_to_its_end"`
}

type reformJSON struct {
	Anchors   int64          `json:"anchors_then"`
	Seats     []reseatedJSON `json:"weights_that_change"`
	Reseated  int64          `json:"weights_changed"`
	Was       fewestJSON     `json:"fewest_now"`
	Is        fewestJSON     `json:"fewest_then"`
	Stoppable bool           `json:"stoppable_then"`
	Asks      []askedJSON    `json:"approvals_that_change"`
	Asked     int64          `json:"approvals_changed"`
	Flips     []flipJSON     `json:"verdicts_that_flip"`
	Flipped   int64          `json:"verdicts_flipped"`
	Untold    bool           `json:"more_flips,omitempty"`
	Goes      *handedJSON    `json:"handed_over,omitempty"`
}

func impactJSONOf(i *scope.Impact) *impactJSON {
	if i == nil {
		return nil
	}
	out := &impactJSON{
		Hash: i.Hash().String(), Keys: i.Keys, Deleted: i.Deleted, Objects: i.Objects, Born: i.Born, Ended: i.Ended, Bound: i.Bound,
		Unbound: i.Unbound, Redirects: i.Redirects, Leases: i.Leases, Bytes: i.Bytes, Grows: i.Grows, Touched: []touchedJSON{},
	}
	for _, k := range i.Touched {
		x := touchedJSON{Key: string(k.Key), Class: k.Class.String(), Found: k.Found, Was: k.Was, Size: k.Size, Lease: k.Lease}
		if k.Found > 0 {
			x.Object = k.Object.String()
		}
		out.Touched = append(out.Touched, x)
	}
	r := i.Reform
	if r == nil {
		return out
	}
	to := &reformJSON{
		Anchors: r.Anchors, Seats: []reseatedJSON{}, Reseated: r.Reseated, Was: fewestJSON{r.Was.Stop, r.Was.Break}, Is: fewestJSON{r.Is.Stop, r.Is.Break},
		Stoppable: r.Stoppable, Asks: []askedJSON{}, Asked: r.Asked, Flips: []flipJSON{}, Flipped: r.Flipped, Untold: r.Untold,
	}
	for _, s := range r.Seats {
		to.Seats = append(to.Seats, reseatedJSON{s.Anchor.String(), s.Name, s.Was, s.Is})
	}
	for _, a := range r.Asks {
		to.Asks = append(to.Asks, askedJSON{a.Of, a.Was, a.Is})
	}
	for _, f := range r.Flips {
		to.Flips = append(to.Flips, flipJSON{f.Who, f.Verb, string(f.Prefix), f.May, f.Rule})
	}
	if g := r.Goes; g != nil {
		to.Goes = &handedJSON{g.Keys, g.Bytes, g.Leases, g.Whole}
	}
	out.Reform = to
	return out
}

// impact writes what a change would change, or changed.
func (p Printer) impact(i *scope.Impact) error {
	if i.Keys > 0 {
		rows := [][]string{{"  KEY", "CHANGE", "FOUND", "BYTES", "LEASE"}}
		for _, k := range i.Touched {
			found, lease := "-", ""
			if k.Found > 0 {
				found = fmt.Sprintf("revision %d", k.Found)
			}
			if k.Lease != 0 {
				lease = fmt.Sprintf("%x", uint64(k.Lease))
			}
			rows = append(rows, []string{"  " + Key(k.Key), k.Class.String(), found, fmt.Sprintf("%d -> %d", k.Was, k.Size), lease})
		}
		if err := p.table(rows...); err != nil {
			return err
		}
		if n := i.Keys - int64(len(i.Touched)); n > 0 {
			fmt.Fprintf(p.Out, "  and %d more\n", n)
		}
	}
	if i.Reform == nil {
		return nil
	}
	for _, line := range reformLines(i.Reform) {
		if _, err := fmt.Fprintln(p.Out, "  "+line); err != nil {
			return err
		}
	}
	return nil
}

// reformLines are what a decision would change, in words.
func reformLines(r *scope.Reform) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, Line(fmt.Sprintf(format, args...))) }
	if g := r.Goes; g != nil {
		least := ""
		if !g.Whole {
			least = "at least "
		}
		add("hands over %s%s with %d bytes, and %s", least, Count(g.Keys, "key"), g.Bytes, Count(g.Leases, "lease"))
	}
	for _, a := range r.Asks {
		add("%s: now %s; then %s", a.Of, orUnasked(a.Was), orUnasked(a.Is))
	}
	more(add, r.Asked-int64(len(r.Asks)), "approval")
	for _, f := range r.Flips {
		lines = append(lines, flipLine(&f))
	}
	more(add, r.Flipped-int64(len(r.Flips)), "verdict")
	if r.Untold {
		add("more changes of authors than are looked at: other verdicts may flip")
	}
	for _, s := range r.Seats {
		add("%s %s weighs %d, and then %d", s.Name, s.Anchor.Short(), s.Was, s.Is)
	}
	more(add, r.Reseated-int64(len(r.Seats)), "weight")
	add("%s; %s could stop the scope, and then %d; %d could break it, and then %d", Count(r.Anchors, "anchor"), Count(int64(r.Was.Stop), "anchor"), r.Is.Stop, r.Was.Break, r.Is.Break)
	if r.Stoppable {
		add("the weight that may fail could then stop the scope")
	}
	return lines
}

// orUnasked is what an approval asks for, if there is one.
func orUnasked(asks string) string {
	if asks == "" {
		return "no approval"
	}
	return asks
}

// more says that a list goes on.
func more(add func(string, ...any), n int64, what string) {
	if n > 0 {
		add("and %s more", Count(n, what))
	}
}

func flipLine(f *scope.Flip) string {
	keys := "all keys"
	if len(f.Prefix) > 0 {
		keys = Key(f.Prefix)
	}
	switch {
	case f.Who == "" && f.May:
		return Line(fmt.Sprintf("the rule of %s is then: %s", f.Verb, f.Rule))
	case f.Who == "":
		return Line(fmt.Sprintf("%s has no rule then", f.Verb))
	case f.May:
		return Line(fmt.Sprintf("%s may then %s %s", f.Who, f.Verb, keys))
	}
	return Line(fmt.Sprintf("%s may not %s %s any more", f.Who, f.Verb, keys))
}

// Forecast writes what would become of a change, which would change these fields of a policy.
func (p Printer) Forecast(r *aweighv1.ForecastResponse, fields []policytext.Change) error {
	var i *scope.Impact
	if len(r.Impact) > 0 {
		var err error
		if i, err = scope.DecodeImpact(r.Impact); err != nil {
			return err
		}
	}
	if p.Format == JSON {
		out := struct {
			Header    header      `json:"header"`
			DryRun    bool        `json:"dry_run"`
			Outcome   string      `json:"outcome"`
			Reason    string      `json:"reason,omitempty"`
			Succeeded bool        `json:"succeeded"`
			Subject   string      `json:"subject,omitempty"`
			Rule      string      `json:"rule,omitempty"`
			Motion    string      `json:"motion,omitempty"`
			State     string      `json:"state"`
			Changes   []fieldJSON `json:"changes,omitempty"`
			Impact    *impactJSON `json:"impact,omitempty"`
			Voters    []voterJSON `json:"voters,omitempty"`
		}{
			headerJSON(r.Header), true, r.Outcome, r.Reason, r.Succeeded, r.Subject, r.Rule, hex.EncodeToString(r.Motion), hex.EncodeToString(r.State),
			fieldsJSON(fields), impactJSONOf(i), nil,
		}
		for _, v := range r.Voters {
			out.Voters = append(out.Voters, voterJSON{hex.EncodeToString(v.Id), v.Name, v.Weight, v.Anchor, v.Required, []castJSON{}})
		}
		return p.JSON(out)
	}
	if len(fields) > 0 {
		if err := p.fields(fields); err != nil {
			return err
		}
		fmt.Fprintln(p.Out)
	}
	rows := [][]string{{"dry run", "nothing was changed"}, {"as of", fmt.Sprintf("block %d, revision %d, state %s", r.Header.GetHeight(), r.Header.GetRevision(), short(r.State))}}
	switch {
	case r.Outcome == scope.Pending.String() && len(r.Motion) > 0:
		rows = append(rows, []string{"outcome", "it is proposed already: motion " + short(r.Motion)})
	case r.Outcome == scope.Pending.String():
		rows = append(rows, []string{"outcome", "it would open a motion"})
	case r.Outcome == scope.Applied.String():
		rows = append(rows, []string{"outcome", "it would apply at once"})
	default:
		rows = append(rows, []string{"outcome", "it would not apply: " + r.Reason})
	}
	if r.Rule != "" {
		var names []string
		for _, v := range r.Voters {
			names = append(names, voterName(v))
		}
		rows = append(rows, []string{"asks", r.Rule}, []string{"voters", strings.Join(names, ", ")})
	}
	if i != nil {
		rows = append(rows, impactRows(i)...)
	}
	if err := p.table(rows...); err != nil || i == nil {
		return err
	}
	return p.impact(i)
}

// impactRows sum up what a change would change.
func impactRows(i *scope.Impact) [][]string {
	if i.Reform != nil {
		return [][]string{{"impact", i.Hash().String()}}
	}
	return [][]string{{"impact", i.String()}, {"report", i.Hash().String()}}
}

// motionImpact writes what a motion would change, as the block that opened it found, or of a draft, as its node did.
func (p Printer) motionImpact(mo *scope.Motion, by string) error {
	i := mo.Impact
	if i == nil {
		return nil
	}
	fmt.Fprintf(p.Out, "\nimpact, %s:\n", by)
	if i.Reform == nil {
		fmt.Fprintf(p.Out, "  %s\n", i)
	}
	if err := p.impact(i); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "  report %s\n", i.Hash())
	return err
}

// foundBy is whose finding the impact of a motion's file is.
func foundBy(r *scope.MotionReport) string {
	switch {
	case r.Draft:
		return "stated by the node that wrote this file: no block has opened the motion"
	case r.Bare:
		return fmt.Sprintf("stated by the node that wrote this file to be that of block %d", r.Motion.Height)
	}
	return fmt.Sprintf("found in block %d, which opened it, and signed with block %d", r.Motion.Height, r.Head.Height)
}

// impactOn writes what a motion that a node shows would change.
func (p Printer) impactOn(m *aweighv1.Motion) error {
	if len(m.Opening) == 0 {
		return nil
	}
	mo, err := Opening(m)
	if err != nil {
		return err
	}
	by := fmt.Sprintf("found in block %d, which opened it", mo.Height)
	if m.Fate == waiting {
		by = "by the state of this node"
	}
	return p.motionImpact(mo, by)
}

// impactIn is what a motion that a node shows would change.
func impactIn(m *aweighv1.Motion) *impactJSON {
	mo, err := Opening(m)
	if err != nil {
		return nil
	}
	return impactJSONOf(mo.Impact)
}
