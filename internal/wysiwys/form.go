package wysiwys

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/internal/plain"
)

// Form is a rendering: fields in order, each with a value or with fields of its own.
type Form []Field

// Field is one field of a form.
type Field struct {
	Name  string
	Value string
	From  string // what Value takes the place of, if Diff is set
	Diff  bool
	Bare  bool // Value is a number or a boolean, in JSON without quotes
	Group bool // it has Fields, maybe none, and no Value
	List  bool // a Group whose fields are named by their places
	Put   bool // Value is what a key is to hold
	Form  Form
}

const (
	indent  = "  " // before the fields of a group
	longest = 4096 // bytes that a text shows of the value of a put
)

// Text is a line for each field. It shows each in full, except for the values of puts: one of more than 4,096 bytes is
// replaced by its length and digest.
func (f Form) Text() string {
	var b strings.Builder
	f.write(&b, "")
	return b.String()
}

func (f Form) write(b *strings.Builder, before string) {
	for i := range f {
		x := &f[i]
		b.WriteString(before + atom(x.Name) + ":")
		switch {
		case x.Group:
			b.WriteByte('\n')
			x.Form.write(b, before+indent)
			continue
		case x.Diff:
			b.WriteString(" " + atom(x.From) + " -> " + atom(x.Value))
		default:
			b.WriteString(" " + cmp.Or(x.digest(), atom(x.Value)))
		}
		b.WriteByte('\n')
	}
}

// digest stands for the value of a put that is too long for a text; it is empty for any other. No atom begins so.
func (x *Field) digest() string {
	value := x.Value
	if quoted, err := strconv.Unquote(value); err == nil && strings.HasPrefix(value, `"`) {
		value = quoted
	}
	if !x.Put || len(value) <= longest {
		return ""
	}
	return fmt.Sprintf("(%d bytes, SHA-256 %x; -o json has them all)", len(value), sha256.Sum256([]byte(value)))
}

// digests are the values that a text shows by their digests alone.
func (f Form) digests(into map[string]string) {
	for i := range f {
		if short := f[i].digest(); short != "" {
			into[short] = f[i].Value
		}
		f[i].Form.digests(into)
	}
}

// atom is a text that ends where it seems to: as it is, or quoted as in Go if a part of it
// does not show.
func atom(s string) string {
	bare := s != "" && plain.Text(s) &&
		!strings.ContainsAny(s[:1], "\"( ") && !strings.HasSuffix(s, " ") && !strings.HasSuffix(s, ":") &&
		!strings.Contains(s, ": ") && !strings.Contains(s, " -> ")
	if bare {
		return s
	}
	return plain.Quote(s)
}

var errText = errors.New("not the text of a form")

// parseText reads what Text wrote of a form; values are those that it shows by their digests alone.
func parseText(text string, values map[string]string) (Form, error) {
	lines := strings.SplitAfter(text, "\n")
	f, rest, err := parse(lines[:len(lines)-1], "", values)
	if err == nil && (len(rest) > 0 || lines[len(lines)-1] != "") {
		err = errText
	}
	return f, err
}

func parse(lines []string, before string, values map[string]string) (f Form, rest []string, err error) {
	for len(lines) > 0 {
		line, ok := strings.CutPrefix(lines[0], before)
		if !ok || strings.HasPrefix(line, " ") {
			break
		}
		var x Field
		if x.Name, line, err = cut(strings.TrimSuffix(line, "\n"), ":"); err != nil {
			return nil, nil, err
		}
		lines = lines[1:]
		if line == ":" {
			x.Group = true
			x.Form, lines, err = parse(lines, before+indent, values)
			x.List = len(x.Form) > 0 && strings.HasPrefix(x.Form[0].Name, "[")
		} else if line, ok = strings.CutPrefix(line, ": "); !ok {
			err = errText
		} else if strings.HasPrefix(line, "(") {
			if x.Value, ok = values[line]; !ok {
				err = errText
			}
		} else if x.Value, line, err = cut(line, " -> "); err == nil && line != "" {
			x.Diff, x.From = true, x.Value
			x.Value, line, err = cut(strings.TrimPrefix(line, " -> "), "")
			if line != "" {
				err = errText
			}
		}
		if err != nil {
			return nil, nil, err
		}
		f = append(f, x)
	}
	return f, lines, nil
}

// cut reads an atom up to what follows it, or to the end.
func cut(s, follows string) (value, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", errText
		}
		value, err = strconv.Unquote(quoted)
		return value, s[len(quoted):], err
	}
	at := len(s)
	switch {
	case follows == ":" && strings.HasSuffix(s, ":") && !strings.Contains(s, ": "):
		at = len(s) - 1
	case follows == ":":
		at = strings.Index(s, ": ")
	case follows != "" && strings.Contains(s, follows):
		at = strings.Index(s, follows)
	}
	if at < 0 {
		return "", "", errText
	}
	return s[:at], s[at:], nil
}

// MarshalJSON is an object of strings, numbers, booleans, objects and arrays. Numbers have all their digits, also those
// above 2^53.
func (f Form) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := f.json(&b, false)
	return b.Bytes(), err
}

func (f Form) json(b *bytes.Buffer, list bool) error {
	open, end := byte('{'), byte('}')
	if list {
		open, end = '[', ']'
	}
	b.WriteByte(open)
	for i := range f {
		x := &f[i]
		if i > 0 {
			b.WriteByte(',')
		}
		if !list {
			if err := text(b, x.Name); err != nil {
				return err
			}
			b.WriteByte(':')
		}
		err := error(nil)
		switch {
		case x.Group:
			err = x.Form.json(b, x.List)
		case x.Bare:
			b.WriteString(x.Value)
		default:
			err = text(b, x.Value)
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte(end)
	return nil
}

// text writes a string. Text that is not UTF-8 was quoted before.
func text(b *bytes.Buffer, s string) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	b.Truncate(b.Len() - 1) // the line break
	return err
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Form) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errText, err)
	}
	read, err := fields(d, false)
	if err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errText
	}
	*f = read
	return nil
}

func fields(d *json.Decoder, list bool) (f Form, err error) {
	for d.More() {
		x := Field{Name: place(len(f))}
		if !list {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			x.Name, _ = t.(string)
		}
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case string:
			x.Value = t
		case json.Number:
			x.Value, x.Bare = t.String(), true
		case bool:
			x.Value, x.Bare = strconv.FormatBool(t), true
		case json.Delim:
			x.Group, x.List = true, t == '['
			x.Form, err = fields(d, x.List)
		default:
			err = errText
		}
		if err != nil {
			return nil, err
		}
		f = append(f, x)
	}
	_, err = d.Token() // the end
	return f, err
}

// place names a field of a list.
func place(i int) string { return "[" + strconv.Itoa(i) + "]" }
