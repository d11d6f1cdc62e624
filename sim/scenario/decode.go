package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/internal/must"
)

// MaxSource bounds the text of a scenario, in bytes.
const MaxSource = 1 << 20

// Decode reads a scenario from YAML, and so from JSON. Unknown and impossible
// values are refused with the line and the reason, wrapped in ErrInvalid.
func Decode(data []byte) (Scenario, error) {
	root, err := parse(data)
	if err != nil {
		return Scenario{}, err
	}
	r := reader{lines: make(map[string]int)}
	var s Scenario
	if err := r.read(root, reflect.ValueOf(&s).Elem(), ""); err != nil {
		return Scenario{}, err
	}
	err = r.zeroes(s)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return Scenario{}, r.locate(err)
	}
	return s, nil
}

// Encode is the scenario as YAML. Decode reads it back if it passes Check.
func (s Scenario) Encode() []byte {
	var n yaml.Node
	must.OK(n.Encode(s), "encoding a scenario")
	compact(&n)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	must.OK(e.Encode(&n), "encoding a scenario")
	return out.Bytes()
}

// sparse are the keys of structs of production, whose fields are left out where they are not set.
var sparse = []string{"timing", "scope", "node"}

// prune removes zero values from a mapping.
func prune(n *yaml.Node) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		v := n.Content[i+1]
		if prune(v); v.Value == "0" || v.Value == "0s" || v.Kind == yaml.MappingNode && len(v.Content) == 0 {
			n.Content = slices.Delete(n.Content, i, i+2)
		}
	}
}

// compact puts lists of plain values on one line, and reports whether n may
// stand in one. It leaves out unset fields of structs of production.
func compact(n *yaml.Node) bool {
	plain := n.Kind != yaml.MappingNode
	for i, c := range n.Content {
		if !plain && i%2 == 1 && slices.Contains(sparse, n.Content[i-1].Value) {
			prune(c)
		}
		if !compact(c) {
			plain = false
		}
	}
	if plain && n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	return plain
}

// parse is the one document of a YAML text.
func parse(data []byte) (*yaml.Node, error) {
	if len(data) > MaxSource {
		return nil, &problem{text: fmt.Sprintf("its text has %d bytes, more than %d", len(data), MaxSource)}
	}
	var first, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	switch err := d.Decode(&first); {
	case errors.Is(err, io.EOF) || err == nil && (len(first.Content) == 0 || first.Content[0].Tag == "!!null"):
		return nil, &problem{text: "there is none; {} is one of defaults alone"}
	case err != nil:
		return nil, &problem{text: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := d.Decode(&second); err == nil {
		return nil, &problem{line: second.Line, text: "a second document begins; a scenario is one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, &problem{text: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	return first.Content[0], nil
}

// reader reads YAML nodes into a Scenario or a part of it.
type reader struct {
	lines map[string]int // of everything read, by path; nil if lines mean nothing
	zero  []string       // paths of values given as zero
}

// read reads the node of a path into v.
func (r *reader) read(n *yaml.Node, v reflect.Value, path string) error {
	if r.lines != nil && r.lines[path] == 0 {
		r.lines[path] = n.Line
	}
	refuse := func(format string, args ...any) error {
		return r.locate(&problem{path: path, text: fmt.Sprintf(format, args...)})
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return refuse("references within YAML, with & and *, are not taken")
	case n.Style&yaml.TaggedStyle != 0:
		return refuse("tags of YAML, such as %s, are not taken", n.Tag)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		if section := v.Kind() == reflect.Struct || v.Kind() == reflect.Slice; n.Value == "" && !section {
			return refuse("has no value")
		}
		return nil // as if it were not there
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.read(n, v.Elem(), path)
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return refuse("wants keys and values, not %s", kindOf(n))
		}
		return r.mapping(n, v, path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return refuse("wants a list, such as [%s], not %s", example(v.Type().Elem()), kindOf(n))
		}
		return r.list(n, v, path)
	}
	if n.Kind != yaml.ScalarNode {
		return refuse("wants one value, such as %s, not %s", example(v.Type()), kindOf(n))
	}
	if n.Style&quoted != 0 && !textual(v.Type()) {
		return refuse("wants a value such as %s, not text in quotes", example(v.Type()))
	}
	if err := scan(n.Value, v); err != nil {
		return refuse("%v", err)
	}
	if v.IsZero() {
		r.zero = append(r.zero, path)
	}
	return nil
}

func (r *reader) mapping(n *yaml.Node, v reflect.Value, path string) error {
	first := make(map[string]int) // line of each key
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return &problem{line: key.Line, path: path, text: "a key is one word, not " + kindOf(key)}
		}
		f, ok := field(v, key.Value)
		if !ok {
			return &problem{line: key.Line, path: path, text: unknownKey(key.Value, v.Type())}
		}
		below := join(path, key.Value)
		if line, twice := first[key.Value]; twice {
			return &problem{line: key.Line, path: below, text: fmt.Sprintf("is on line %d already", line)}
		}
		first[key.Value] = key.Line
		if r.lines != nil {
			r.lines[below] = key.Line
		}
		if err := r.read(value, f, below); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) list(n *yaml.Node, v reflect.Value, path string) error {
	v.SetZero()
	if len(n.Content) == 0 {
		return nil
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		below := fmt.Sprintf("%s[%d]", path, i)
		if c.Kind == yaml.ScalarNode && c.Tag == "!!null" {
			return &problem{line: c.Line, path: below, text: "has no value"}
		}
		if err := r.read(c, v.Index(i), below); err != nil {
			return err
		}
	}
	return nil
}

// zeroes refuses a zero that was given where zero means another default.
func (r *reader) zeroes(s Scenario) error {
	full := s.WithDefaults()
	for _, path := range r.zero {
		if v := full.Get(path); !v.IsZero() {
			return &problem{path: path, text: fmt.Sprintf("%v would mean the default, %v; say another, or leave it out",
				reflect.Zero(v.Type()), v)}
		}
	}
	return nil
}

// locate adds the line to a problem: that of its path, or of the nearest path
// above that was read.
func (r *reader) locate(err error) error {
	var p *problem
	if r.lines == nil || !errors.As(err, &p) || p.line > 0 {
		return err
	}
	path := p.path
	for r.lines[path] == 0 && path != "" {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return &problem{line: r.lines[path], path: p.path, text: p.text}
}

// scan reads one value.
func scan(text string, v reflect.Value) error {
	refused := fmt.Errorf("wants a value such as %s, not %q", example(v.Type()), text)
	switch p := v.Addr().Interface().(type) {
	case *Share:
		s, err := parseShare(text)
		*p = s
		return err
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is no duration, such as 250ms, 10s or 3m", text)
		}
		*p = d
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return refused
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return refused
		}
		v.SetInt(i)
	case reflect.Uint32, reflect.Uint64:
		u, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return refused
		}
		v.SetUint(u)
	default:
		must.Hold(false, "a scenario has a field of type %s", v.Type())
	}
	return nil
}

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// textual reports whether values of a type may be quoted, as JSON wants some.
func textual(t reflect.Type) bool {
	return t.Kind() == reflect.String || t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[Share]()
}

// example is a value of a type, for errors.
func example(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Share]():
		return "5%"
	case reflect.TypeFor[time.Duration]():
		return "10s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true"
	case reflect.String:
		return "word"
	case reflect.Struct:
		return "{...}"
	case reflect.Slice:
		return "[" + example(t.Elem()) + "]"
	}
	return "5"
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}
