package show

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Shown is a ballot of a file, with the results of its checks.
type Shown struct {
	votes.MotionBallot
	File    string // that it was read from
	Name    string // of the voter, if it is known
	Weight  uint64 // likewise
	Checked bool   // it was verified
	Other   bool   // it is on another motion than the one at hand, and was not
	Err     error  // why it does not hold
}

type shownJSON struct {
	File     string `json:"file,omitempty"`
	ID       string `json:"id"`
	Network  string `json:"network"`
	Scope    string `json:"scope"`
	Motion   string `json:"motion"`
	Choice   string `json:"choice"`
	Voter    string `json:"voter"`
	Name     string `json:"name,omitempty"`
	Weight   uint64 `json:"weight,omitempty"`
	Comment  string `json:"comment,omitempty"`
	Offline  bool   `json:"offline"` // the voter states that it was signed away from any node
	Verified bool   `json:"verified"`
	Error    string `json:"error,omitempty"`
}

type tallyJSON struct {
	Verdict string `json:"verdict"`
	Approve uint64 `json:"approve_weight"`
	Reject  uint64 `json:"reject_weight"`
	Void    uint64 `json:"void_weight"`
	Total   uint64 `json:"total_weight"`
	Needed  uint64 `json:"needed_weight"`
}

func shownOf(s *Shown) shownJSON {
	out := shownJSON{
		File: s.File, ID: s.ID().String(), Network: s.Network.String(), Scope: s.Scope.String(), Motion: s.Motion.String(), Choice: s.Choice.String(),
		Voter: s.Voter.String(), Name: s.Name, Weight: s.Weight, Comment: s.Comment, Offline: s.Offline, Verified: s.Checked && s.Err == nil,
	}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out
}

// Ballots writes the ballots of files; the tally, if there is one, is of those that
// were verified.
func (p Printer) Ballots(all []Shown, mo *scope.Motion, t *votes.MotionTally) error {
	if p.Format == JSON {
		out := struct {
			Ballots []shownJSON `json:"ballots"`
			Tally   *tallyJSON  `json:"tally,omitempty"`
		}{Ballots: []shownJSON{}}
		for i := range all {
			out.Ballots = append(out.Ballots, shownOf(&all[i]))
		}
		if t != nil {
			out.Tally = &tallyJSON{t.Verdict.String(), t.Approve, t.Reject, t.Void, t.Total, t.Threshold}
		}
		return p.JSON(out)
	}
	rows := [][]string{{"FILE", "MOTION", "CHOICE", "VOTER", "NAME", "WEIGHT", "SIGNATURE", "COMMENT"}}
	unchecked := 0
	for i := range all {
		s := &all[i]
		name, weight, holds := "-", "-", "not checked"
		if s.Name != "" {
			name, weight = brief(s.Name), fmt.Sprint(s.Weight)
		}
		switch {
		case s.Err != nil:
			holds = "REFUSED: " + s.Err.Error()
		case s.Checked:
			holds = "verified"
		case s.Other:
			holds = "NOT CHECKED: on another motion"
		default:
			unchecked++
		}
		rows = append(rows, []string{s.File, s.Motion.Short(), said(s.Choice.String(), s.Offline), s.Voter.Short(), name, weight, holds, s.Comment})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if unchecked > 0 && mo == nil {
		fmt.Fprintln(p.Out, "\nnothing is verified without the motion's file; give it with --motion")
	}
	if t != nil {
		fmt.Fprintf(p.Out, "\nif these verified ballots were all, motion %s would be %s\n", mo.ID().Short(), t)
	}
	return nil
}

// Signed writes the content of a ballot that was just signed.
func (p Printer) Signed(b *votes.MotionBallot, name string, weight uint64, file string) error {
	if p.Format == JSON {
		return p.JSON(shownOf(&Shown{MotionBallot: *b, File: file, Name: name, Weight: weight, Checked: true}))
	}
	_, err := fmt.Fprintf(p.Out, "signed: %s, weight %d, votes to %s motion %s; hand it to any node: aweigh ballot import %s\n",
		Line(name), weight, b.Choice, b.Motion.Short(), Word(file))
	return err
}

// Keeper says where a private key is.
type Keeper int

// The places of private keys.
const (
	PlainFile Keeper = iota
	EncryptedFile
	SSHAgent
)

var keepers = [...]string{
	PlainFile: "in plain text: any reader of the file can sign", EncryptedFile: "under a passphrase",
	SSHAgent: "which the ssh-agent holds",
}

// Voter writes the public part of a voter's key, from a file or another place of that name.
func (p Printer) Voter(key votes.PublicKey, keeper Keeper, name string) error {
	if p.Format == JSON {
		return p.JSON(struct {
			ID        string `json:"id"`
			Scheme    string `json:"scheme"`
			Key       string `json:"key"`
			Encrypted bool   `json:"encrypted"`
			Agent     bool   `json:"agent,omitempty"`
			File      string `json:"file"`
		}{key.ID().String(), key.Scheme, key.String(), keeper == EncryptedFile, keeper == SSHAgent, name})
	}
	return p.table(
		[]string{"key", key.String()},
		[]string{"id", key.ID().String()},
		[]string{"in a policy", "approver=NAME," + key.String() + ",weight=25%   (or ,required, or both)"},
		[]string{"file", name + ", " + keepers[keeper]},
	)
}
