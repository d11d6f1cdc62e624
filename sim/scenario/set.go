package scenario

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/nearest"
)

// Set is the scenario with one value changed. The path is like faults.loss or
// cast[0].count, and the value YAML; null removes the value. The index
// after the last one of a list adds to the list. Only the value is checked, so
// that several changes can follow each other: Check checks the whole scenario.
func (s Scenario) Set(path, value string) (Scenario, error) {
	steps, err := split(path)
	if err != nil {
		return Scenario{}, err
	}
	var r reader
	if err := r.set(reflect.ValueOf(&s).Elem(), "", steps, value); err != nil {
		return Scenario{}, err
	}
	if err := r.zeroes(s); err != nil {
		return Scenario{}, err
	}
	if err := s.checkNames(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// step is one part of a path: a key, or an index if the key is empty.
type step struct {
	key   string
	index int
}

// part is what stands between the dots of a path.
var part = regexp.MustCompile(`^([^\[\].]+)((?:\[[0-9]{1,6}\])*)$`)

// split takes a path apart.
func split(path string) ([]step, error) {
	var steps []step
	for p := range strings.SplitSeq(path, ".") {
		m := part.FindStringSubmatch(p)
		if m == nil {
			return nil, &problem{text: fmt.Sprintf("%q is no path, such as faults.loss or cast[0].count", path)}
		}
		steps = append(steps, step{key: m[1]})
		for i := range strings.SplitSeq(strings.Trim(m[2], "[]"), "][") {
			if i != "" {
				index, _ := strconv.Atoi(i) // at most six digits, as part requires
				steps = append(steps, step{index: index})
			}
		}
	}
	return steps, nil
}

// set changes the value at the end of the steps from v, which is at a path. Lists
// and pointers on the way are copied, since other scenarios may share them.
func (r *reader) set(v reflect.Value, path string, steps []step, value string) error {
	if len(steps) == 0 {
		return r.assign(v, path, value)
	}
	next := steps[0]
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		v.Set(fresh)
		return r.set(fresh.Elem(), path, steps, value)
	case reflect.Struct:
		if next.key == "" {
			return &problem{path: path, text: fmt.Sprintf("is no list, so it has no [%d]", next.index)}
		}
		f, ok := field(v, next.key)
		if !ok {
			return &problem{path: path, text: unknownKey(next.key, v.Type())}
		}
		return r.set(f, join(path, next.key), steps[1:], value)
	case reflect.Slice:
		switch {
		case next.key != "":
			return &problem{path: path, text: fmt.Sprintf("is a list: say %s[0].%s", path, next.key)}
		case next.index > v.Len():
			return &problem{path: path, text: fmt.Sprintf("has %d elements, so [%d] would leave a gap", v.Len(), next.index)}
		case len(steps) == 1 && null(value):
			if next.index < v.Len() {
				v.Set(reflect.AppendSlice(clone(v).Slice(0, next.index), v.Slice(next.index+1, v.Len())))
			}
			return nil
		}
		v.Set(clone(v))
		if next.index == v.Len() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		return r.set(v.Index(next.index), fmt.Sprintf("%s[%d]", path, next.index), steps[1:], value)
	}
	return &problem{path: path, text: "is one value: nothing is below it"}
}

// assign replaces v.
func (r *reader) assign(v reflect.Value, path, value string) error {
	switch {
	case value == "":
		return &problem{path: path, text: "no value is given; null takes out what is there"}
	case null(value):
		v.SetZero()
		return nil
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	if k := v.Kind(); k == reflect.Struct || k == reflect.Slice || k == reflect.Pointer {
		var err error
		if n, err = parse([]byte(value)); err != nil {
			return &problem{path: path, text: fmt.Sprintf("%q is no YAML", value)}
		}
		v.SetZero()
	}
	err := r.read(n, v, path)
	if p := (*problem)(nil); errors.As(err, &p) {
		p.line = 0 // of the value, which is not a text with lines
	}
	return err
}

func null(value string) bool { return value == "null" || value == "~" }

// clone is a copy of a slice.
func clone(v reflect.Value) reflect.Value {
	return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()+1), v)
}

// Get is the value at a path, which Set takes as well. It must be there.
func (s Scenario) Get(path string) reflect.Value {
	v := reflect.ValueOf(s)
	steps, err := split(path)
	must.OK(err, "reading a path that is there")
	for _, s := range steps {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if s.key == "" {
			v = v.Index(s.index)
		} else {
			v, _ = field(v, s.key)
		}
	}
	return v
}

// Fields yields the fields of a struct that stands at a path, each with its own path.
func Fields(v reflect.Value, path string) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i, key := range keys(v.Type()) {
			if !yield(join(path, key), v.Field(i)) {
				return
			}
		}
	}
}

// join is the path of a key below a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// field is the field of a struct that a key names.
func field(v reflect.Value, key string) (reflect.Value, bool) {
	i := slices.Index(keys(v.Type()), key)
	if i < 0 {
		return reflect.Value{}, false
	}
	return v.Field(i), true
}

// keys are the YAML names of the fields of a struct, in their order.
func keys(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if names[i] == "" {
			names[i] = strings.ToLower(t.Field(i).Name)
		}
	}
	return names
}

// unknownKey returns a text for a key that t lacks: the key that it may stand
// for, and the keys of t.
func unknownKey(key string, t reflect.Type) string {
	known := keys(t)
	meant := key
	if other, ok := alike[key]; ok {
		if meant = other; slices.Contains(known, meant) {
			return fmt.Sprintf("%q is unknown; did you mean %q? Known here are %s", key, meant, strings.Join(known, ", "))
		}
	}
	near := elsewhere(meant, reflect.TypeFor[Scenario](), "")
	if near == "" {
		near = likely(key, known)
	}
	if near == "" {
		return unknown(key, known)
	}
	return fmt.Sprintf("%q is unknown; did you mean %q? Known here are %s", key, near, strings.Join(known, ", "))
}

// alike are words that people use for another one.
var alike = map[string]string{"nodes": "anchors", "replicas": "anchors", "size": "anchors", "members": "anchors"}

// elsewhere is a path below t that ends with a key; "" if there is none.
func elsewhere(key string, t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			path += "[0]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i, k := range keys(t) {
		below := join(path, k)
		if k == key {
			return below
		}
		if found := elsewhere(key, t.Field(i).Type, below); found != "" {
			return found
		}
	}
	return ""
}

// unknown is the text for a name that is not known, with the known name that it
// may stand for.
func unknown(name string, known []string) string {
	if near := likely(name, known); near != "" {
		return fmt.Sprintf("%q is unknown; did you mean %q?", name, near)
	}
	return fmt.Sprintf("%q is unknown; known are %s", name, strings.Join(known, ", "))
}

// likely is the known name that another may stand for; "" if none is near.
func likely(name string, known []string) string {
	near, _ := nearest.Name(name, known, min(max(len(name)/2, 1), 3))
	return near
}
