package show

import (
	"encoding/hex"
	"fmt"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

type tripJSON struct {
	Prefix string            `json:"prefix"`
	Cached bool              `json:"cached"` // the node had the answer of moments ago
	Asked  []anchorAskedJSON `json:"asked"`
}

type anchorAskedJSON struct {
	Anchor  string `json:"anchor"`
	ID      string `json:"id"`
	Trust   uint32 `json:"trust"`
	TookNs  int64  `json:"took_ns"`
	Fails   uint32 `json:"fails"`
	Class   uint32 `json:"class"`
	Last    bool   `json:"last"` // it has too little trust to be asked before others
	Answer  int64  `json:"answer_ns,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// trips writes which anchors of scopes that the node does not hold were asked, in order, and why in that one.
func (p Printer) trips(all []*aweighv1.Trip) error {
	for _, t := range all {
		name := Key(t.Prefix)
		if len(t.Asked) == 0 {
			fmt.Fprintf(p.Out, "the node had the answer of the anchors of %s of moments ago\n\n", name)
			continue
		}
		rows := [][]string{{"ASKED OF " + name, "ID", "SCORE", "DISTANCE", "FAILURES", "ANSWER"}}
		for _, a := range t.Asked {
			far := "unknown"
			if a.TookNs > 0 {
				far = time.Duration(a.TookNs).Round(10 * time.Microsecond).String()
			}
			trust := fmt.Sprint(a.Trust)
			if a.Last {
				trust += ", so last"
			}
			rows = append(rows, []string{a.Anchor, short(a.Id), trust, far, fmt.Sprint(a.Fails), answerOf(a)})
		}
		if err := p.table(rows...); err != nil {
			return err
		}
		fmt.Fprintln(p.Out)
	}
	return nil
}

func answerOf(a *aweighv1.Asked) string {
	switch {
	case a.Failure != "":
		return Line(a.Failure)
	case a.AnswerNs == 0:
		return "none in time"
	}
	return "after " + time.Duration(a.AnswerNs).Round(10*time.Microsecond).String()
}

func tripsJSON(all []*aweighv1.Trip) (out []tripJSON) {
	for _, t := range all {
		x := tripJSON{Prefix: string(t.Prefix), Cached: len(t.Asked) == 0, Asked: []anchorAskedJSON{}}
		for _, a := range t.Asked {
			x.Asked = append(x.Asked, anchorAskedJSON{
				Anchor: a.Anchor, ID: hex.EncodeToString(a.Id), Trust: a.Trust, TookNs: a.TookNs, Fails: a.Fails, Class: a.Class,
				Last: a.Last, Answer: a.AnswerNs, Failure: a.Failure,
			})
		}
		out = append(out, x)
	}
	return out
}
