package show

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

type motionJSON struct {
	ID            string             `json:"id"`
	Scope         string             `json:"scope"`                     // which decides it
	Prefix        string             `json:"scope_prefix"`              // of all keys of that scope; "" is the root scope's
	Fate          string             `json:"fate"`                      // waiting: no block has opened it yet
	ValidUntilNs  int64              `json:"valid_until_ns,omitempty"`  // while it is waiting: a block must have opened it by then
	Kept          bool               `json:"kept,omitempty"`            // likewise: it is on the node's disk
	Approved      uint64             `json:"approved_height,omitempty"` // of a block, while it waits for its turn
	Reason        string             `json:"reason,omitempty"`
	Doomed        string             `json:"doomed,omitempty"` // why an open one would be void as things stand
	Subject       string             `json:"subject"`
	Decision      string             `json:"decision,omitempty"` // that it is about, if it is about one
	Author        string             `json:"author"`
	AuthorName    string             `json:"author_name,omitempty"`
	Principal     string             `json:"principal,omitempty"` // the key whose rights the author uses, by a token
	PrincipalName string             `json:"principal_name,omitempty"`
	Justification string             `json:"justification,omitempty"`
	Caller        string             `json:"caller,omitempty"` // for whom the author made it, as the author states
	Height        uint64             `json:"height"`
	Epoch         uint64             `json:"epoch"`
	OpenedNs      int64              `json:"opened_ns"`
	DeadlineNs    int64              `json:"deadline_ns"`
	ClosedHeight  uint64             `json:"closed_height,omitempty"`
	ClosedNs      int64              `json:"closed_ns,omitempty"`
	Revision      int64              `json:"revision,omitempty"`
	Rule          string             `json:"rule"`
	Approve       uint64             `json:"approve"`
	Reject        uint64             `json:"reject"`
	Void          uint64             `json:"void"`
	Total         uint64             `json:"total"`
	Needed        uint64             `json:"needed"`
	Heads         uint32             `json:"heads"`
	HeadsNeeded   uint32             `json:"heads_needed"`
	Missing       string             `json:"missing,omitempty"` // in words
	StepUp        bool               `json:"step_up,omitempty"` // one of its voters decides, a second person
	Voters        []voterJSON        `json:"voters"`
	Changes       []motionChangeJSON `json:"changes,omitempty"`
	Policy        map[string]string  `json:"policy,omitempty"`          // that is to be in force, of a decision about one
	Effective     uint64             `json:"effective_epoch,omitempty"` // first one under the decision that it is about
	Impact        *impactJSON        `json:"impact,omitempty"`          // what it would change, as the block that opened it found
	Opening       *wysiwys.Form      `json:"opening,omitempty"`         // all of it as it opened, with its mutation; of one motion asked for alone
	Warnings      []string           `json:"warnings,omitempty"`        // rules that would not hold any more
	Hidden        string             `json:"hidden,omitempty"`          // why this program cannot show all of it
}

type voterJSON struct {
	ID       string     `json:"id"`
	Name     string     `json:"name,omitempty"`
	Weight   uint64     `json:"weight"`
	Anchor   bool       `json:"anchor"`
	Required bool       `json:"required"`
	Ballots  []castJSON `json:"ballots"`
}

type castJSON struct {
	Choice  string `json:"choice"`
	Height  uint64 `json:"height,omitempty"` // of the block that recorded it; missing: none has yet
	TimeNs  int64  `json:"time_ns,omitempty"`
	Late    bool   `json:"late"`
	Early   bool   `json:"early"`
	Comment string `json:"comment,omitempty"`
	Offline bool   `json:"offline"` // signed away from any node, as its voter states
}

func motionJSONOf(m *aweighv1.Motion) motionJSON {
	out := motionJSON{
		ID: hex.EncodeToString(m.Id), Scope: hex.EncodeToString(m.Scope), Prefix: string(m.ScopePrefix), Fate: m.Fate, ValidUntilNs: m.ValidUntilNs, Kept: m.Kept, Approved: m.ApprovedHeight, Reason: m.Reason, Doomed: m.Doomed,
		Subject: m.Subject, Decision: hex.EncodeToString(m.Decision),
		Author: hex.EncodeToString(m.Author), AuthorName: m.AuthorName, Principal: hex.EncodeToString(m.Principal), PrincipalName: m.PrincipalName, Justification: m.Justification, Caller: m.Caller,
		Height: m.Height, Epoch: m.Epoch, OpenedNs: m.OpenedNs, DeadlineNs: m.DeadlineNs,
		ClosedHeight: m.ClosedHeight, ClosedNs: m.ClosedNs, Revision: m.Revision, Rule: m.Rule,
		Approve: m.Approve, Reject: m.Reject, Void: m.Void, Total: m.Total, Needed: m.Needed,
		Heads: m.Heads, HeadsNeeded: m.HeadsNeeded, Missing: lacking(m), StepUp: m.StepUp, Voters: []voterJSON{},
		Effective: m.Effective,
	}
	if len(m.Opening) > 0 {
		if shown, err := openingOf(m); err != nil {
			out.Hidden = err.Error()
		} else {
			out.Opening = &shown.Full
			out.Impact = impactIn(m)
		}
	}
	if to := decided(m); to != nil {
		out.Policy = policytext.Fields(*to)
	}
	for _, v := range m.Voters {
		x := voterJSON{ID: hex.EncodeToString(v.Id), Name: v.Name, Weight: v.Weight, Anchor: v.Anchor, Required: v.Required, Ballots: []castJSON{}}
		for _, b := range v.Ballots {
			x.Ballots = append(x.Ballots, castJSON{b.Choice, b.Height, b.TimeNs, b.Late, b.Early, b.Comment, b.Offline})
		}
		out.Voters = append(out.Voters, x)
	}
	for _, c := range m.Changes {
		out.Changes = append(out.Changes, motionChangeJSONOf(c))
	}
	return out
}

// lacking reports what an open motion still needs; empty if nothing, or it is closed.
func lacking(m *aweighv1.Motion) string {
	if m.Fate != "open" && m.Fate != waiting {
		return ""
	}
	if m.StepUp {
		return "the approval of a second person: " + seconds(m)
	}
	var words []string
	if m.Approve < m.Needed {
		words = append(words, fmt.Sprintf("weight %d more", m.Needed-m.Approve))
	}
	if m.Heads < m.HeadsNeeded {
		words = append(words, Count(m.HeadsNeeded-m.Heads, "more anchor"))
	}
	for _, v := range m.Voters {
		if v.Required && !counts(v, "approve", m.Fate == waiting) {
			words = append(words, "the approval of "+voterName(v))
		}
	}
	return strings.Join(words, ", ")
}

// said is a ballot's choice, and whether its voter was away from any node.
func said(choice string, offline bool) string {
	if offline {
		return choice + ", signed offline"
	}
	return choice
}

// counts reports whether a voter's choice is recorded and in time, or waits to be, as its motion does.
func counts(v *aweighv1.Voter, choice string, waits bool) bool {
	for _, b := range v.Ballots {
		if b.Choice == choice && (b.Height > 0 && !b.Late || waits) {
			return true
		}
	}
	return false
}

func voterName(v *aweighv1.Voter) string {
	if v.Name != "" {
		return v.Name
	}
	return short(v.Id)
}

// Motions writes a list of motions.
func (p Printer) Motions(r *aweighv1.MotionsResponse) error {
	if p.Format == JSON {
		out := struct {
			Header  header       `json:"header"`
			Motions []motionJSON `json:"motions"`
		}{headerJSON(r.Header), []motionJSON{}}
		for _, m := range r.Motions {
			out.Motions = append(out.Motions, motionJSONOf(m))
		}
		return p.JSON(out)
	}
	if len(r.Motions) == 0 {
		_, err := fmt.Fprintln(p.Out, "no motions"+alone(r.Header))
		return err
	}
	rows := [][]string{{"MOTION", "ABOUT", "BY", "STATE", "TALLY", "ENDS"}}
	several := slices.ContainsFunc(r.Motions, func(m *aweighv1.Motion) bool { return len(m.ScopePrefix) > 0 })
	if several {
		rows[0] = slices.Insert(rows[0], 1, "SCOPE")
	}
	for _, m := range r.Motions {
		ends := minute(m.DeadlineNs)
		switch {
		case m.Fate == waiting:
			ends = minute(m.ValidUntilNs)
		case m.ClosedNs > 0:
			ends = minute(m.ClosedNs)
		case m.ApprovedHeight > 0:
			ends = "at its turn"
		}
		row := []string{short(m.Id), aboutMotion(p.fit(m.Subject, 38, shortened), m.Decision),
			p.proposer(m), p.fit(stateOf(m), 22, cut), bar(m, 6), ends}
		if several {
			row = slices.Insert(row, 1, motionScope(m))
		}
		rows = append(rows, row)
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	return p.toldAlone(r.Header)
}

// motionScope is the scope that decides a motion: its prefix, or / for the root scope.
func motionScope(m *aweighv1.Motion) string { return ScopeName(&aweighv1.Scope{Prefix: m.ScopePrefix}) }

// aboutMotion returns a motion's subject, and the ID by which "policy set" and
// "anchor" name it.
func aboutMotion(subject string, decision []byte) string {
	if len(decision) == 0 {
		return subject
	}
	return subject + ", decision " + short(decision)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// stands reports whether a motion is not closed.
func stands(m *aweighv1.Motion) bool {
	return m.Fate == "open" || m.Fate == "approved" || m.Fate == waiting
}

// approvedIn returns since when a motion waits for its turn: its deadline does not matter any
// more.
func approvedIn(m *aweighv1.Motion) string {
	return fmt.Sprintf("approved in block %d", m.ApprovedHeight)
}

// stateOf is a motion's state in a few words; "motion show" prints the reason.
func stateOf(m *aweighv1.Motion) string {
	switch {
	case m.Doomed != "":
		return "would be void"
	case m.ApprovedHeight > 0 && stands(m):
		return approvedIn(m)
	case m.Fate == "open":
		if needs := lacking(m); m.StepUp {
			return "open: asks " + seconds(m)
		} else if needs != "" {
			return "open: " + needs
		}
	case m.Fate == waiting:
		return "waits for a block"
	}
	return m.Fate
}

func fateOf(m *aweighv1.Motion) string {
	fate := m.Fate
	if m.ApprovedHeight > 0 {
		fate += ", waits for its turn"
	}
	switch {
	case m.Fate == waiting:
		return "not opened yet: it waits for a block, which takes a quorum"
	case m.Reason != "":
		return fate + ": " + m.Reason
	case m.Doomed != "":
		return fate + ", but as things stand it would be void: " + m.Doomed
	}
	return fate
}

// motionDocument is the JSON form of an answer about one motion.
type motionDocument struct {
	Header header     `json:"header"`
	Motion motionJSON `json:"motion"`
}

func motionDocumentOf(r *aweighv1.MotionResponse) motionDocument {
	return motionDocument{headerJSON(r.Header), motionJSONOf(r.Motion)}
}

// MotionLine writes one motion as JSON on one line, of those that are followed.
func (p Printer) MotionLine(r *aweighv1.MotionResponse) error { return p.line(motionDocumentOf(r)) }

// Motion writes one motion in full.
func (p Printer) Motion(r *aweighv1.MotionResponse) error { return p.MotionUnder(r, nil, nil) }

// MotionUnder writes one motion in full, and what would not hold any more of the policy in force.
func (p Printer) MotionUnder(r *aweighv1.MotionResponse, inForce, own *scope.Policy) error {
	m := r.Motion
	warns := warnings(m, inForce, own)
	if p.Format == JSON {
		out := motionDocumentOf(r)
		out.Motion.Warnings = warns
		return p.JSON(out)
	}
	rows := [][]string{
		{"motion", hex.EncodeToString(m.Id)},
		{"source", Told(r.Header)},
		{"scope", motionScope(m) + ", " + short(m.Scope)},
		{"about", aboutMotion(m.Subject, m.Decision)},
		{"proposed by", Proposer(m) + openedIn(m)},
	}
	if m.Justification != "" {
		rows = append(rows, []string{"because", m.Justification})
	}
	rows = append(rows, []string{"asks", m.Rule}, []string{"state", fateOf(m)})
	switch {
	case m.Fate == waiting:
		rows = append(rows, []string{"needs", orNone(lacking(m)) + ", if it opens under the policy of now"},
			[]string{"valid until", instant(m.ValidUntilNs) + in(m.ValidUntilNs) + ", when a block must have opened it" + keptWhere(m)})
	case m.Fate == "open":
		rows = append(rows, []string{"needs", orNone(lacking(m))}, []string{"until", instant(m.DeadlineNs) + in(m.DeadlineNs)})
	case m.ApprovedHeight > 0:
		rows = append(rows, []string{"turn", approvedIn(m) + "; a later block carries it, after those before it"})
	case m.Fate == "effective" || m.Fate == "carried" && len(m.Decision) > 0:
		when := "takes effect with the next epoch"
		if m.Effective > 0 {
			when = fmt.Sprintf("in effect since epoch %d", m.Effective)
		}
		rows = append(rows, []string{"carried", fmt.Sprintf("in block %d, %s; %s", m.ClosedHeight, instant(m.ClosedNs), when)})
	case m.Fate == "carried":
		rows = append(rows, []string{"applied", fmt.Sprintf("in block %d, revision %d, %s", m.ClosedHeight, m.Revision, instant(m.ClosedNs))})
	default:
		rows = append(rows, []string{"closed", fmt.Sprintf("in block %d, %s", m.ClosedHeight, instant(m.ClosedNs))})
	}
	for _, w := range warns {
		rows = append(rows, []string{"warning", w})
	}
	rows = append(rows, []string{"tally", fmt.Sprintf("%s approve, weight %d of %d (%d needed); %d reject", bar(m, 30), m.Approve, m.Total, m.Needed, m.Reject)})
	if m.Void > 0 {
		rows = append(rows, []string{"void", fmt.Sprintf("weight %d of voters that voted both ways", m.Void)})
	}
	if names := voidBefore(m); len(names) > 0 {
		rows = append(rows, []string{"no voters", strings.Join(names, ", ") + ": void, because they signed both ways on a motion before"})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if err := p.impactOn(m); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if err := p.changes(m); err != nil {
		return err
	}
	if to := decided(m); to != nil {
		if err := p.terms(to); err != nil {
			return err
		}
	}
	if err := p.table(voterRows(m)...); err != nil || len(m.Opening) == 0 {
		return err
	}
	shown, err := openingOf(m)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if m.Fate == waiting {
		return p.ToSign("the motion as it would open now", shown)
	}
	return p.ToSign("the motion as it opened", shown)
}

func voterRows(m *aweighv1.Motion) [][]string {
	rows := [][]string{{"VOTER", "ID", "WEIGHT", "SAYS", "RECORDED", "COMMENT"}}
	for _, v := range m.Voters {
		name := brief(voterName(v))
		if !v.Anchor {
			name += " (approver)"
		}
		if v.Required {
			name += ", must approve"
		}
		if len(v.Ballots) == 0 {
			rows = append(rows, []string{name, short(v.Id), fmt.Sprint(v.Weight), "-", "-", ""})
		}
		for _, b := range v.Ballots {
			where := "waits for a block"
			if b.Height > 0 {
				where = fmt.Sprintf("block %d, %s", b.Height, instant(b.TimeNs))
			}
			switch {
			case b.Late:
				where += ", late"
			case b.Early:
				where += ", as it opened"
			}
			rows = append(rows, []string{name, short(v.Id), fmt.Sprint(v.Weight), said(b.Choice, b.Offline), where, b.Comment})
		}
	}
	return rows
}

// in is how long it is until an instant, for people.
func in(ns int64) string {
	d := time.Until(time.Unix(0, ns)).Round(time.Second)
	if d < 0 {
		return ""
	}
	return fmt.Sprintf(" (in %v)", d)
}

// Pending writes that a write waits for approval.
func (p Printer) Pending(r *aweighv1.MotionResponse) error {
	m := r.Motion
	if p.Format == JSON {
		return p.Motion(r)
	}
	switch {
	case !stands(m):
		_, err := fmt.Fprintf(p.Out, "motion %s is closed: %s\n", short(m.Id), Line(fateOf(m)))
		return err
	case m.ApprovedHeight > 0 || m.Fate == waiting:
		_, err := fmt.Fprintf(p.Out, "PENDING  motion %s (%s): %s\n", short(m.Id), Line(m.Subject), Line(fateOf(m)))
		return err
	}
	if m.StepUp {
		fmt.Fprintf(p.Out, "PENDING  motion %s (%s)\n", short(m.Id), Line(m.Subject))
		p.Asked(r)
		return nil
	}
	fmt.Fprintf(p.Out, "PENDING  motion %s (%s): it waits for %s\n", short(m.Id), Line(m.Subject), Line(orNone(lacking(m))))
	fmt.Fprintf(p.Out, "until %s%s\n", instant(m.DeadlineNs), in(m.DeadlineNs))
	fmt.Fprintf(p.Out, "next:  aweigh motion show %s;  at anchors:  aweigh ballot approve %s\n", short(m.Id), short(m.Id))
	if slices.ContainsFunc(m.Voters, func(v *aweighv1.Voter) bool { return !v.Anchor && len(v.Ballots) == 0 }) {
		fmt.Fprintf(p.Out, "   for approvers:  aweigh motion export %s --write m.motion;  with their keys:  aweigh ballot sign m.motion --network %x --key FILE.key --choice approve;  then:  aweigh ballot import FILE\n", short(m.Id), r.Header.GetNetwork())
	}
	return nil
}

// Progress is how a motion stands, on one line.
func Progress(m *aweighv1.Motion) string {
	s := fmt.Sprintf("%s  %s", bar(m, 30), fateOf(m))
	if l := lacking(m); l != "" {
		s += ", needs " + l
	}
	return s
}
