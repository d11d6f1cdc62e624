// Package show writes the API's answers, as tables for people, as JSON for
// programs, or as bare values for pipes. The JSON forms are stable: fields may
// be added, none change their meaning.
package show

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/form"
	"github.com/aweigh/aweigh/internal/plain"
)

// Format is how to write.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	Value Format = "value" // values alone, one after another, each with a line break
	Raw   Format = "raw"   // the same without line breaks: the bytes as they are
)

// ParseFormat reads a Format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case Table, JSON, Value, Raw:
		return f, nil
	}
	return "", fmt.Errorf("show: the output is table, json, value or raw, not %q", s)
}

// OfValues reports whether the format has values alone.
func (f Format) OfValues() bool { return f == Value || f == Raw }

// Printer writes in one format.
type Printer struct {
	Out    io.Writer
	Format Format
	Whole  bool // cells of lists are not shortened: the output is no terminal
}

// fit is a cell of a list, shortened by how if that is needed.
func (p Printer) fit(s string, most int, how func(string, int) string) string {
	if p.Whole {
		return s
	}
	return how(s, most)
}

// JSON writes v as indented JSON, or on one line for streams.
func (p Printer) JSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// line writes v as JSON on one line.
func (p Printer) line(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table writes rows of cells under a head.
func (p Printer) table(rows ...[]string) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		for i, c := range r {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, Line(c)) // no cell holds characters that do not print
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(p.Out, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Key is a key as people write it.
func Key(key []byte) string {
	n, err := alias.FromKey(key)
	if err != nil {
		return plain.Quote(string(key))
	}
	return n.String()
}

// bytesField is a byte string in JSON.
func bytesField(b []byte) (text *string, base64 []byte) { return form.Bytes(b) }

// keyValue is the JSON form of a key with its value.
type keyValue = form.KeyValue

func kvJSON(kv *aweighv1.KeyValue) *keyValue {
	if kv == nil {
		return nil
	}
	out := &keyValue{
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: form.Lease(kv.Lease), UID: kv.Uid,
	}
	out.Key, out.KeyBase64 = bytesField(kv.Key)
	if kv.Version > 0 {
		out.Value, out.ValueBase64 = bytesField(kv.Value)
	}
	return out
}

func kvsJSON(kvs []*aweighv1.KeyValue) []*keyValue {
	out := make([]*keyValue, len(kvs))
	for i, kv := range kvs {
		out[i] = kvJSON(kv)
	}
	return out
}

// header is the JSON form of where an answer stands.
type header struct {
	Network      string  `json:"network"`
	Scope        string  `json:"scope,omitempty"` // empty for an answer of several scopes
	Epoch        uint64  `json:"epoch"`
	Height       uint64  `json:"height"`
	Revision     int64   `json:"revision"`
	Linearizable bool    `json:"linearizable"`
	CatchingUp   bool    `json:"catching_up,omitempty"`
	AgeNs        int64   `json:"age_ns,omitempty"` // of what the node remembered of a scope that it does not hold
	Node         string  `json:"node,omitempty"`   // that answered, if known
	Island       *island `json:"island,omitempty"` // that decided provisionally, or was read
}

func headerJSON(h *aweighv1.Header) header {
	return header{
		Network: hex.EncodeToString(h.GetNetwork()), Scope: hex.EncodeToString(h.GetScope()),
		Epoch: h.GetEpoch(), Height: h.GetHeight(), Revision: h.GetRevision(), Linearizable: h.GetLinearizable(),
		CatchingUp: h.GetCatchingUp(), AgeNs: h.GetAgeNs(), Node: h.GetNode(), Island: islandJSON(h.GetIsland()),
	}
}

// Header is the JSON form of where an answer stands, for answers that this package does not write.
func Header(h *aweighv1.Header) any { return headerJSON(h) }

// headerOf is headerJSON for an answer that may be within another, whose header it then goes by.
func headerOf(h *aweighv1.Header) *header {
	if len(h.GetNetwork()) == 0 {
		return nil
	}
	out := headerJSON(h)
	return &out
}

// Line is text from others for one line of a terminal: in quotes, as in Go, if
// anything in it does not print, so that it can neither move the cursor nor pass
// for another line.
func Line(s string) string {
	if plain.Text(s) {
		return s
	}
	return plain.Quote(s)
}

// Text is Line for text of several lines, whose line breaks stay.
func Text(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if plain.Text(l) {
			continue
		}
		quoted := plain.Quote(l)
		lines[i] = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	}
	return strings.Join(lines, "\n")
}

// text is a value on one line of a table.
func text(value []byte) string {
	const most = 60
	if !utf8.Valid(value) {
		return "(" + Count(len(value), "byte") + ")"
	}
	s := plain.Quote(string(value))
	if printable := s[1 : len(s)-1]; printable == string(value) {
		s = printable
	}
	return cut(s, most)
}

// shortened is s with at most most letters, without those in its middle.
func shortened(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	half := (most - 1) / 2
	return string(r[:most-1-half]) + "…" + string(r[len(r)-half:])
}

// mostName bounds the letters of a name in a cell of a table, whose other cells have the ID.
const mostName = 20

// brief is a name for a cell of a table.
func brief(name string) string { return shortened(name, mostName) }

// cut is s with at most most letters, without those at its end.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// short is the start of a hash.
func short(b []byte) string { return hex.EncodeToString(b[:min(4, len(b))]) }

// minute is instant where the minute is enough, as in lists.
func minute(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04Z")
}

// instant is a time for people, in UTC.
func instant(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000Z")
}
