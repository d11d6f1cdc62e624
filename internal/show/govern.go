package show

import (
	"encoding/hex"
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

type proposalJSON struct {
	ID          string   `json:"id"`
	Motion      string   `json:"motion,omitempty"` // as which it is open
	Kind        string   `json:"kind"`
	Subject     string   `json:"subject,omitempty"`
	Name        string   `json:"name,omitempty"`
	Sponsor     string   `json:"sponsor,omitempty"`
	Sponsored   bool     `json:"sponsored"` // the sponsor approved, or none is needed
	Approvals   []string `json:"approvals"`
	Weight      uint64   `json:"weight"`
	Needed      uint64   `json:"needed"`
	Heads       uint32   `json:"heads"`
	HeadsNeeded uint32   `json:"heads_needed"`
	OpenedNs    int64    `json:"opened_ns"`
	LapsesNs    int64    `json:"lapses_ns"`
	Carried     uint64   `json:"carried,omitempty"` // block
	Fate        string   `json:"fate"`              // open, carried, effective, void, rejected, expired, superseded
	Reason      string   `json:"reason,omitempty"`  // for void and superseded
	Effective   uint64   `json:"effective_epoch,omitempty"`
	State       string   `json:"state"` // in words

	Decision *wysiwys.Form `json:"decision,omitempty"` // in full; missing if this program cannot show all of it
}

func proposalJSONOf(x *aweighv1.Proposal, names map[string]string) proposalJSON {
	out := proposalJSON{
		ID: hex.EncodeToString(x.Id), Motion: hex.EncodeToString(x.Motion), Kind: x.Kind, Subject: hex.EncodeToString(x.Subject), Name: x.Name,
		Sponsor: hex.EncodeToString(x.Sponsor), Sponsored: x.Sponsored, Approvals: []string{}, Weight: x.Weight, Needed: x.Needed,
		Heads: x.Heads, HeadsNeeded: x.HeadsNeeded, OpenedNs: x.OpenedNs, LapsesNs: x.LapsesNs, Carried: x.Carried,
		Fate: x.Fate, Reason: x.Reason, Effective: x.Effective, State: Missing(x, names),
	}
	if _, shown, err := wysiwys.Decision(x.Decision, nil); err == nil {
		out.Decision = &shown.Full
	}
	for _, a := range x.Approvals {
		out.Approvals = append(out.Approvals, hex.EncodeToString(a))
	}
	return out
}

// Missing returns what a decision still needs, or its outcome.
func Missing(x *aweighv1.Proposal, names map[string]string) string {
	switch x.Fate {
	case "effective":
		return effective(x)
	case "void", "superseded", "rejected", "expired", "withdrawn":
		s := x.Fate + ", nothing changed"
		if x.Reason != "" {
			s += ": " + x.Reason
		}
		return s
	}
	if x.Carried > 0 && x.Kind == "revoke" {
		return fmt.Sprintf("carried in block %d, ordered with the next epoch, and obeyed after the scope's notice", x.Carried)
	}
	if x.Carried > 0 {
		return fmt.Sprintf("carried in block %d, takes effect with the next epoch", x.Carried)
	}
	var words []string
	if x.Weight < x.Needed {
		words = append(words, fmt.Sprintf("weight %d more", x.Needed-x.Weight))
	}
	if x.Heads < x.HeadsNeeded {
		words = append(words, Count(x.HeadsNeeded-x.Heads, "more anchor"))
	}
	if !x.Sponsored {
		words = append(words, "the sponsor "+nameOf(names, x.Sponsor))
	}
	return "needs the approval of " + strings.Join(words, ", and of ")
}

// effective describes the effect of a decision.
func effective(x *aweighv1.Proposal) string {
	since := ""
	if x.Effective > 0 {
		since = fmt.Sprintf(" since epoch %d", x.Effective)
	}
	switch x.Kind {
	case "revoke":
		return "carried, and ordered" + since + "; it is obeyed after the scope's notice"
	case "delegate":
		return "carried, and the scope is founded" + since
	}
	return "carried, and in effect" + since
}

func nameOf(names map[string]string, id []byte) string {
	if n := names[string(id)]; n != "" {
		return n
	}
	return short(id)
}

// about describes a decision's change, for people.
func about(x *aweighv1.Proposal, names map[string]string) string {
	switch x.Kind {
	case "policy":
		return "set another policy"
	case "delegate", "revoke", "yield":
		var d scope.Decision
		if canon.Decode(x.Decision, &d) == nil && d.Child != nil {
			return d.About()
		}
		return x.Kind + " " + x.Name
	}
	s := x.Kind + " " + nameOf(names, x.Subject)
	if len(x.Sponsor) > 0 {
		s += ", sponsor " + nameOf(names, x.Sponsor)
	}
	var d scope.Decision
	if x.Kind == "attest" && canon.Decode(x.Decision, &d) == nil {
		s += fmt.Sprintf(", score %d: %s", d.Score, d.Reason)
	}
	return s
}

// Anchors writes the roster, and the decisions that are open.
func (p Printer) Anchors(r *aweighv1.TrustResponse) error {
	names := namesOf(r)
	if p.Format == JSON {
		return p.JSON(trustOf(r, names))
	}
	rows := [][]string{{"ANCHOR", "ID", "STANDING", "WEIGHT", "PEER"}}
	for _, a := range r.Anchors {
		name := p.fit(a.Name, mostName, shortened)
		if a.Self {
			name += " *"
		}
		rows = append(rows, []string{name, short(a.Id), standing(a), fmt.Sprint(a.Weight), a.Peer})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	p.group(r)
	if len(r.Void) > 0 {
		fmt.Fprintln(p.Out)
		p.void(r)
	}
	if len(r.Proposals) == 0 {
		_, err := fmt.Fprintf(p.Out, "\nno decisions are open; %s\n", Told(r.Header))
		return err
	}
	fmt.Fprintln(p.Out)
	rows = [][]string{{"DECISION", "MOTION", "ABOUT", "APPROVED BY", "WEIGHT", "STATE", "LAPSES"}}
	for _, x := range r.Proposals {
		by := "no anchor"
		if len(x.Approvals) > 0 {
			who := make([]string, len(x.Approvals))
			for i, a := range x.Approvals {
				who[i] = p.fit(nameOf(names, a), mostName, shortened)
			}
			by = p.fit(strings.Join(who, ", "), 38, cut)
		}
		lapses := minute(x.LapsesNs)
		if x.Carried > 0 {
			lapses = "-"
		}
		rows = append(rows, []string{short(x.Id), orNone(short(x.Motion)), p.fit(about(x, names), 38, shortened), by, fmt.Sprintf("%d of %d", x.Weight, x.Needed), p.fit(listed(x, names), 23, cut), lapses})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "\n%s\n", Told(r.Header))
	return err
}

// listed is Missing in a few words, beside the weight.
func listed(x *aweighv1.Proposal, names map[string]string) string {
	if x.Fate == "carried" {
		return fmt.Sprintf("carried in block %d", x.Carried)
	}
	return strings.Replace(Missing(x, names), "needs the approval of ", "needs ", 1)
}

// Governed writes the outcome of a decision; next is the next step, if it is
// not carried. r may be nil if the names are not known.
func (p Printer) Governed(g *aweighv1.GovernResponse, r *aweighv1.TrustResponse, next string) error {
	names := make(map[string]string)
	if r != nil {
		names = namesOf(r)
	}
	if x := g.Proposal; x != nil && x.Name != "" {
		names[string(x.Subject)] = x.Name
	}
	if p.Format == JSON {
		out := struct {
			Header   header        `json:"header"`
			Decision string        `json:"decision"`
			Kind     string        `json:"kind"`
			Proposal *proposalJSON `json:"proposal,omitempty"` // missing if nothing is on record of it
		}{headerJSON(g.Header), hex.EncodeToString(g.Id), g.Kind, nil}
		if g.Proposal != nil {
			x := proposalJSONOf(g.Proposal, names)
			out.Proposal = &x
		}
		return p.JSON(out)
	}
	motion := ""
	if len(g.Proposal.GetMotion()) > 0 {
		motion = ", motion " + short(g.Proposal.Motion)
	}
	by := ""
	if n := g.Header.GetNode(); n != "" {
		by = ", reported by " + Line(n)
	}
	fmt.Fprintf(p.Out, "%s  decision %s (%s)%s, final in block %d%s\n", word(g.Proposal), short(g.Id), g.Kind, motion, g.Header.GetHeight(), by)
	if g.Proposal == nil {
		_, err := fmt.Fprintln(p.Out, "nothing is on record of it any more; \"aweigh log\" tells its history")
		return err
	}
	fmt.Fprintf(p.Out, "%s: %s\n", Line(about(g.Proposal, names)), Line(Missing(g.Proposal, names)))
	if g.Proposal.Fate == "open" && next != "" {
		fmt.Fprintln(p.Out, next)
	}
	return nil
}

// word begins a line about a decision.
func word(x *aweighv1.Proposal) string {
	if Failed(x) {
		return strings.ToUpper(x.Fate)
	}
	return "OK"
}

// Failed reports whether a decision ended without effect.
func Failed(x *aweighv1.Proposal) bool {
	switch x.GetFate() {
	case "void", "superseded", "rejected", "expired", "withdrawn":
		return true
	}
	return false
}
