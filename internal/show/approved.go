package show

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

type toldJSON struct {
	Voter   string `json:"voter"`
	Name    string `json:"name"`
	Weight  uint64 `json:"weight"` // when the motion opened
	Choice  string `json:"choice"`
	Comment string `json:"comment,omitempty"`
	Height  uint64 `json:"height"`  // of the block that recorded it
	Late    bool   `json:"late"`    // after the end: it changed nothing
	Offline bool   `json:"offline"` // signed away from any node, as its voter states
}

type approvedJSON struct {
	Motion   string     `json:"motion"`
	OpenedNs int64      `json:"opened_ns"`
	Height   uint64     `json:"height"` // of the block that carried it
	Asked    string     `json:"asked"`  // the policy's requirement, in words
	Needed   uint64     `json:"needed_weight"`
	Anchors  uint32     `json:"needed_anchors"`
	Approve  uint64     `json:"approve_weight"`
	Reject   uint64     `json:"reject_weight"`
	Void     uint64     `json:"void_weight"` // of voters that voted both ways
	Total    uint64     `json:"total_weight"`
	Ballots  []toldJSON `json:"ballots"`
}

func approvedOf(a *scope.Approved) *approvedJSON {
	if a == nil {
		return nil
	}
	mo, t := &a.Motion, &a.Tally
	out := &approvedJSON{
		Motion: mo.ID().String(), OpenedNs: int64(mo.Opened), Height: uint64(a.Height), Asked: mo.Approval.String(),
		Needed: t.Threshold, Anchors: mo.Rule.MinAnchors, Approve: t.Approve, Reject: t.Reject, Void: t.Void, Total: t.Total,
	}
	for _, b := range a.Ballots {
		out.Ballots = append(out.Ballots, toldJSON{b.Voter.String(), b.Name, b.Weight, b.Choice.String(), b.Comment, uint64(b.Height), b.Late, b.Offline})
	}
	return out
}

// approvals writes the approvers of a change.
func (p Printer) approvals(a *scope.Approved) error {
	fmt.Fprintln(p.Out)
	rows := [][]string{{"VOTED", "ID", "WEIGHT", "CHOICE", "BLOCK", "COMMENT"}}
	late := 0
	for _, b := range a.Ballots {
		choice := said(b.Choice.String(), b.Offline)
		if b.Late {
			late++
			choice += ", late"
		}
		rows = append(rows, []string{brief(b.Name), b.Voter.Short(), fmt.Sprint(b.Weight), choice, fmt.Sprint(b.Height), b.Comment})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	t := &a.Tally
	fmt.Fprintf(p.Out, "\nmotion %s, carried in block %d: weight %d approved and %d rejected of %d", a.Motion.ID().Short(), a.Height, t.Approve, t.Reject, t.Total)
	if t.Void > 0 {
		fmt.Fprintf(p.Out, ", %d voted both ways and count on neither side", t.Void)
	}
	fmt.Fprintf(p.Out, "; the policy then asked for %d (%s)\n", t.Threshold, Line(a.Motion.Approval.String()))
	if late > 0 {
		fmt.Fprintf(p.Out, "%d of these ballots came after that, and changed nothing\n", late)
	}
	return nil
}
