package show

import (
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/merge"
)

// Merged is what a merge of two objects makes.
type Merged struct {
	From, To *aweighv1.ResolveResponse
	Base     *aweighv1.KeyValue // from which both come; nil if there is no such version
	merge.Result
}

type conflictJSON struct {
	Path   string `json:"path,omitempty"` // of JSON: a pointer to the member
	Base   []byte `json:"base_base64"`
	Ours   []byte `json:"ours_base64"` // null: there is none
	Theirs []byte `json:"theirs_base64"`
}

type mergeJSON struct {
	Header    *header        `json:"header,omitempty"` // of what was written
	From      *keyValue      `json:"from"`
	To        *keyValue      `json:"to"`
	Base      *keyValue      `json:"base,omitempty"`
	Kind      merge.Kind     `json:"kind"` // text, json or binary
	Merged    *string        `json:"merged,omitempty"`
	Merged64  []byte         `json:"merged_base64,omitempty"` // if it is not UTF-8
	Conflicts []conflictJSON `json:"conflicts"`
	Written   bool           `json:"written"`
	Repeated  bool           `json:"repeated,omitempty"` // answered from the record
}

func mergeJSONOf(m Merged, settled bool) mergeJSON {
	out := mergeJSON{From: kvJSON(m.From.Kv), To: kvJSON(m.To.Kv), Kind: m.Kind, Conflicts: []conflictJSON{}}
	if m.Base != nil {
		out.Base = kvJSON(m.Base)
	}
	if settled {
		out.Merged, out.Merged64 = bytesField(m.Value)
	}
	for _, c := range m.Conflicts {
		out.Conflicts = append(out.Conflicts, conflictJSON(c))
	}
	return out
}

// Merge writes what a merge would write, or its conflicts if they are not settled.
func (p Printer) Merge(m Merged, settled bool) error {
	if p.Format == JSON {
		return p.JSON(mergeJSONOf(m, settled))
	}
	fmt.Fprintf(p.Out, "merge %s of revision %d into %s of revision %d\n", Key(m.From.Key), m.From.Kv.ModRevision, Key(m.To.Key), m.To.Kv.ModRevision)
	if m.Base == nil {
		fmt.Fprintln(p.Out, "both come from no version that is known: all that differs is a conflict")
	} else {
		fmt.Fprintf(p.Out, "both come from %s of revision %d\n", Key(m.Base.Key), m.Base.ModRevision)
	}
	if !settled {
		return p.conflicts(m)
	}
	for _, l := range difference(append([]byte{}, m.To.Kv.Value...), append([]byte{}, m.Value...)) {
		fmt.Fprintln(p.Out, l)
	}
	return nil
}

func (p Printer) conflicts(m Merged) error {
	if m.Kind == merge.Text {
		for _, l := range contentLines(m.Marked) {
			fmt.Fprintln(p.Out, Line(l))
		}
		return nil
	}
	for _, c := range m.Conflicts {
		at := c.Path
		if at == "" {
			at = "the whole value"
		}
		fmt.Fprintf(p.Out, "conflict at %s\n", Line(at))
		for _, side := range []struct {
			name    string
			content []byte
		}{{"base", c.Base}, {Key(m.To.Key), c.Ours}, {Key(m.From.Key), c.Theirs}} {
			content := "(nothing)"
			if side.content != nil {
				content = text(side.content)
			}
			fmt.Fprintf(p.Out, "  %s: %s\n", Line(side.name), content)
		}
	}
	return nil
}

// MergeDone writes the answer to a merge.
func (p Printer) MergeDone(m Merged, r *aweighv1.TxnResponse) error {
	if p.Format == JSON {
		out := mergeJSONOf(m, true)
		h := headerJSON(r.Header)
		out.Header, out.Written, out.Repeated = &h, true, r.Repeated
		return p.JSON(out)
	}
	if r.Repeated {
		return p.done(r.Header)
	}
	_, err := fmt.Fprintf(p.Out, "OK  %s holds the merge with %s of revision %d; revision %d, final in block %d\n",
		Key(m.To.Key), Key(m.From.Key), m.From.Kv.ModRevision, r.Header.GetRevision(), r.Header.GetHeight())
	return err
}
