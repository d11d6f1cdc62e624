package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// members are those of a JSON object, each as compact JSON.
type members map[string]json.RawMessage

// errShape refuses what is no JSON object, or one that names a member twice, of which a merge would drop one, or by a
// name that is no Unicode, which the decoder replaces.
var errShape = errors.New("not an object with members of different names")

// mostLevels bounds objects and arrays within each other: each level is read as often as there are levels around it.
const mostLevels = 64

// levels is how many objects and arrays are open at once in a JSON text, at most.
func levels(text []byte) (most int) {
	open, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			most = max(most, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return most
}

// membersOf reads an object.
func membersOf(text []byte) (all members, err error) {
	if all, err = split(text); err != nil {
		return nil, err
	}
	for key, value := range all { // order-free: each on its own
		if all[key], err = stable(value); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// split reads an object, and leaves its members as they are.
func split(text []byte) (members, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errShape
	}
	all := members{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if _, twice := all[key]; !ok || twice || strings.ContainsRune(key, utf8.RuneError) {
			return nil, errShape
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all[key] = value
	}
	if _, err := d.Token(); err != nil || len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
		return nil, errShape
	}
	return all, nil
}

// stable is a value as compact JSON, with the members of objects in order of their names.
func stable(value []byte) (json.RawMessage, error) {
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		all, err := membersOf(value)
		if err != nil {
			return nil, err
		}
		return all.encode(), nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i := range items {
			item, err := stable(items[i])
			if err != nil {
				return nil, err
			}
			items[i] = item
		}
		out := []byte{'['}
		for i, item := range items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, item...)
		}
		return append(out, ']'), nil
	}
	return bytes.Clone(bytes.TrimSpace(value)), nil
}

// encode is the object with its members in order.
func (m members) encode() json.RawMessage {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(name)...), ':'), m[name]...)
	}
	return append(out, '}')
}

// quoted is a name as JSON, with the characters of HTML as they are.
func quoted(name string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(name); err != nil {
		panic(err) // of a string, there is none
	}
	return bytes.TrimSpace(b.Bytes())
}

// mergeJSON merges objects; ok is false for other values. Of objects on lines of their own the result has lines too.
func mergeJSON(base, ours, theirs []byte, prefer Side) (r Result, ok bool) {
	if max(levels(base), levels(ours), levels(theirs)) > mostLevels {
		return r, false
	}
	a, err := membersOf(ours)
	b, theirErr := membersOf(theirs)
	o, baseErr := members{}, error(nil)
	if base != nil {
		o, baseErr = membersOf(base)
	}
	if errors.Join(err, theirErr, baseErr) != nil {
		return r, false
	}
	r.Kind = JSON
	merged := r.members("", o, a, b, prefer).encode()
	lead := bytes.TrimSpace(ours)
	switch {
	case bytes.Equal(merged, a.encode()):
		r.Value = ours // as it was written
		return r, true
	case bytes.Equal(merged, b.encode()):
		r.Value = theirs
		return r, true
	case bytes.IndexByte(lead, '\n') >= 0:
		var out bytes.Buffer
		if err := json.Indent(&out, merged, "", indentOf(lead)); err == nil {
			merged = out.Bytes()
		}
	}
	if bytes.HasSuffix(ours, []byte("\n")) {
		merged = append(merged, '\n')
	}
	r.Value = merged
	return r, true
}

// indentOf is what the second line of an object begins with.
func indentOf(object []byte) string {
	_, rest, _ := bytes.Cut(object, []byte("\n"))
	if n := len(rest) - len(bytes.TrimLeft(rest, " \t")); n > 0 {
		return string(rest[:n])
	}
	return "  "
}

// members merges the members of objects below a path.
func (r *Result) members(path string, base, ours, theirs members, prefer Side) members {
	out := members{}
	names := maps.Clone(ours)
	maps.Copy(names, theirs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		o, a, b := base[name], ours[name], theirs[name]
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if merged := r.member(at, o, a, b, prefer); merged != nil {
			out[name] = merged
		}
	}
	return out
}

// member merges one member, of which all versions are stable; nil is none.
func (r *Result) member(path string, base, ours, theirs json.RawMessage, prefer Side) json.RawMessage {
	equal := func(a, b json.RawMessage) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
	switch {
	case equal(ours, theirs), equal(base, theirs):
		return ours
	case equal(base, ours):
		return theirs
	}
	a, err := split(ours)
	b, theirErr := split(theirs)
	if errors.Join(err, theirErr) == nil {
		o, baseErr := split(base)
		if baseErr != nil {
			o = members{}
		}
		return r.members(path, o, a, b, prefer).encode()
	}
	r.Conflicts = append(r.Conflicts, Conflict{Path: path, Base: base, Ours: ours, Theirs: theirs})
	return prefer.of(ours, theirs)
}
