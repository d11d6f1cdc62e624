package show

import (
	"encoding/hex"
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// HandedIn is what became of ballots that a node was given.
type HandedIn struct {
	Added, Repeated, Equivocated, Late uint64
	Refused                            []Refusal
	Contrary                           []Contrary
}

// Refusal is a ballot that was refused.
type Refusal struct {
	File string // that it was read from; empty if it was none
	*aweighv1.RefusedBallot
}

// Contrary is a ballot whose voter has also signed the opposite.
type Contrary struct {
	File string // as of a Refusal
	*aweighv1.ContraryBallot
}

// Add adds what became of some ballots of a file.
func (h *HandedIn) Add(file string, r *aweighv1.HandInResponse) {
	h.Added += r.Added
	h.Repeated += r.Repeated
	h.Equivocated += r.Equivocated
	h.Late += r.Late
	for _, x := range r.Refused {
		h.Refused = append(h.Refused, Refusal{file, x})
	}
	for _, x := range r.Contrary {
		h.Contrary = append(h.Contrary, Contrary{file, x})
	}
}

// Count is the number of ballots that there were.
func (h *HandedIn) Count() uint64 {
	return h.Added + h.Repeated + h.Equivocated + h.Late + uint64(len(h.Refused))
}

// Empty reports whether there were no ballots.
func (h *HandedIn) Empty() bool {
	return h.Count() == 0
}

// HandedIn writes what became of ballots.
func (p Printer) HandedIn(h *HandedIn) error {
	if p.Format == JSON {
		return p.handedJSON(h)
	}
	words := []string{fmt.Sprintf("%d new", h.Added), fmt.Sprintf("%d known already", h.Repeated)}
	if h.Late > 0 {
		words = append(words, fmt.Sprintf("%d late (their motion is closed; they are recorded and change nothing)", h.Late))
	}
	if h.Equivocated > 0 {
		words = append(words, fmt.Sprintf("%d that contradict another of the same voter", h.Equivocated))
	}
	if len(h.Refused) > 0 {
		words = append(words, fmt.Sprintf("%d refused", len(h.Refused)))
	}
	fmt.Fprintf(p.Out, "ballots: %s\n", strings.Join(words, ", "))
	return p.Listed(h)
}

// Listed lists the ballots that were refused, and those that contradict others, in words.
func (p Printer) Listed(h *HandedIn) (err error) {
	where := func(file string) string {
		if file == "" {
			return ""
		}
		return Line(file) + ", "
	}
	for _, x := range h.Refused {
		_, err = fmt.Fprintf(p.Out, "  %sballot %d, by %s on motion %s: %s\n", where(x.File), x.Ballot+1, short(x.Voter), short(x.Motion), Text(x.Why))
	}
	for _, x := range h.Contrary {
		who := short(x.Voter)
		if x.Name != "" {
			who = Line(x.Name) + " (" + who + ")"
		}
		_, err = fmt.Fprintf(p.Out, "  %sballot %d, by %s on motion %s: it says %s, and another that the same key signed says %s\n",
			where(x.File), x.Ballot+1, who, short(x.Motion), Line(x.Choice), Line(x.Before))
	}
	return err
}

func (p Printer) handedJSON(h *HandedIn) error {
	type refusal struct {
		File    string `json:"file,omitempty"`
		Ballot  uint64 `json:"ballot"` // its place in the file, from 0
		Motion  string `json:"motion"`
		Voter   string `json:"voter"`
		Why     string `json:"why"`
		Unsound bool   `json:"unsound"` // it does not hold, here or elsewhere
	}
	type contrary struct {
		File   string `json:"file,omitempty"`
		Ballot uint64 `json:"ballot"` // its place in the file, from 0
		Motion string `json:"motion"`
		Voter  string `json:"voter"`
		Name   string `json:"name,omitempty"`
		Choice string `json:"choice"`
		Before string `json:"before"` // the vote of the voter's other ballot
	}
	out := struct {
		Added       uint64     `json:"added"`
		Repeated    uint64     `json:"repeated"`
		Equivocated uint64     `json:"equivocated"`
		Late        uint64     `json:"late"`
		Refused     []refusal  `json:"refused"`
		Contrary    []contrary `json:"contrary"`
	}{h.Added, h.Repeated, h.Equivocated, h.Late, []refusal{}, []contrary{}}
	for _, x := range h.Refused {
		out.Refused = append(out.Refused, refusal{x.File, x.Ballot, hex.EncodeToString(x.Motion), hex.EncodeToString(x.Voter), x.Why, x.Unsound})
	}
	for _, x := range h.Contrary {
		out.Contrary = append(out.Contrary, contrary{x.File, x.Ballot, hex.EncodeToString(x.Motion), hex.EncodeToString(x.Voter), x.Name, x.Choice, x.Before})
	}
	return p.JSON(out)
}
