package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMergesOfEachKind(t *testing.T) {
	for _, c := range []struct {
		name, base, ours, theirs string
		kind                     Kind
		want                     string
		conflicts                int
	}{
		{"lines apart", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", Text, "A\nb\nC\n", 0},
		{"one line", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", Text, "a\nx\nc\n", 1},
		{"the same change", "a\nb\nc\n", "a\nx\nc\n", "a\nx\nc\n", Text, "a\nx\nc\n", 0},
		{"no last line break", "a\nb\nc", "A\nb\nc", "a\nb\nC", Text, "A\nb\nC", 0},
		{"members", `{"a":1,"b":{"c":1,"d":1}}`, `{"a":2,"b":{"c":1,"d":1}}`, `{"a":1,"b":{"c":1,"d":2,"e":[1, 2]}}`, JSON, `{"a":2,"b":{"c":1,"d":2,"e":[1,2]}}`, 0},
		{"one member", `{"a":1}`, `{"a":2}`, `{"a":3}`, JSON, `{"a":2}`, 1},
		{"deleted and changed", `{"a":1,"b":1}`, `{"b":1}`, `{"a":3,"b":1}`, JSON, `{"b":1}`, 1},
		{"deleted", `{"a":1,"b":1}`, `{"a":1}`, `{"a":3,"b":1}`, JSON, `{"a":3}`, 0},
		{"long numbers", `{"a":1}`, `{"a":1,"n":12345678901234567890.10}`, `{"a":2}`, JSON, `{"a":2,"n":12345678901234567890.10}`, 0},
		{"lines of JSON", "{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"b\": 2\n}\n", "{\n\t\"a\": 3\n}\n", JSON, "{\n\t\"a\": 3,\n\t\"b\": 2\n}\n", 0},
		{"a name twice is text", `{"a":1}`, `{"a":1,"a":2}`, `{"a":1}`, Text, `{"a":1,"a":2}`, 0},
		{"bytes", "\x00a", "\x00b", "\x00a", Binary, "\x00b", 0},
		{"other bytes", "\x00a", "\x00b", "\x00c", Binary, "\x00b", 1},
	} {
		r := Merge([]byte(c.base), []byte(c.ours), []byte(c.theirs), Ours, Labels{"ours", "theirs"})
		if r.Kind != c.kind || string(r.Value) != c.want || len(r.Conflicts) != c.conflicts {
			t.Errorf("%s: %s %q, %d conflicts", c.name, r.Kind, r.Value, len(r.Conflicts))
		}
	}
	r := Merge([]byte("a\n"), []byte("b\n"), []byte("c"), Theirs, Labels{"o", "t"})
	if want := "<<<<<<< o\nb\n||||||| base\na\n=======\nc\n>>>>>>> t\n"; string(r.Marked) != want || string(r.Value) != "c" {
		t.Errorf("marked %q, value %q", r.Marked, r.Value)
	}
	if r := Merge(nil, []byte("a\n"), []byte("b\n"), Ours, Labels{}); len(r.Conflicts) != 1 {
		t.Errorf("without a base: %+v", r)
	}
	if r := Merge([]byte(`{"a/b":{"~":1}}`), []byte(`{"a/b":{"~":2}}`), []byte(`{"a/b":{"~":3}}`), Ours, Labels{}); r.Conflicts[0].Path != "/a~1b/~0" {
		t.Errorf("a conflict at %q", r.Conflicts[0].Path)
	}
}

// TestUnrelatedEditsStay: lines that one side changed, none next to one that the other changed, and members, are all in
// the merge, whichever side is merged into which.
func TestUnrelatedEditsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		who := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 20).Draw(t, "who") // changes a part: none, ours, theirs
		var text [4]strings.Builder                                       // base, ours, theirs, merged
		var object [4]map[string]int
		for side := range object {
			object[side] = map[string]int{}
		}
		for i, w := range who {
			for side := range text {
				content := i
				if w != 0 && (side == w || side == 3) {
					content += 100 * w
				}
				fmt.Fprintf(&text[side], "%d\nkept %d\n", content, i)
				object[side][fmt.Sprint(i)] = content
			}
		}
		var members [4][]byte
		for side := range object {
			members[side], _ = json.Marshal(object[side])
		}
		texts := [4][]byte{[]byte(text[0].String()), []byte(text[1].String()), []byte(text[2].String()), []byte(text[3].String())}
		for _, v := range [][4][]byte{texts, members} {
			one, other := Merge(v[0], v[1], v[2], Ours, Labels{}), Merge(v[0], v[2], v[1], Theirs, Labels{})
			if len(one.Conflicts) > 0 || !bytes.Equal(one.Value, other.Value) || one.Kind == Text && !bytes.Equal(one.Value, v[3]) {
				t.Fatalf("%q and %q merge to %q and %q, with %v", v[1], v[2], one.Value, other.Value, one.Conflicts)
			}
			if one.Kind == JSON {
				var got map[string]int
				if err := json.Unmarshal(one.Value, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(object[3]) {
					t.Fatalf("%s: %v", one.Value, err)
				}
			}
		}
	})
}

// TestWithoutABaseNothingIsMergedUnseen: where the common version is not known, members and lines of one side alone may
// be additions of that side or deletions of the other, so they are a conflict.
func TestWithoutABaseNothingIsMergedUnseen(t *testing.T) {
	for _, sides := range [][2]string{{`{"a":1}`, `{"a":1,"b":2}`}, {"", "a\n"}, {"a\n", ""}, {"a\n", "b\n"}, {"\x00", "\x01"}} {
		for _, prefer := range []Side{Ours, Theirs} {
			r := Merge(nil, []byte(sides[0]), []byte(sides[1]), prefer, Labels{"ours", "theirs"})
			if want := sides[prefer]; len(r.Conflicts) == 0 || string(r.Value) != want {
				t.Errorf("%q and %q: %q with %d conflicts, want %q and one", sides[0], sides[1], r.Value, len(r.Conflicts), want)
			}
		}
		if r := Merge(nil, []byte(sides[0]), []byte(sides[0]), Ours, Labels{}); len(r.Conflicts) > 0 || string(r.Value) != sides[0] {
			t.Errorf("twice %q: %q with %d conflicts", sides[0], r.Value, len(r.Conflicts))
		}
	}
}

// TestNamesThatJSONCannotHoldStay: a name that is no Unicode is not replaced by another one; such a value is merged as
// lines or as a whole.
func TestNamesThatJSONCannotHoldStay(t *testing.T) {
	for _, name := range []string{"\xff", `\ud800`, "\ufffd"} {
		value := func(rest string) []byte { return []byte(`{"` + name + `":1` + rest + "\n}") }
		ours, theirs := value(`,"b":2`), value(`,"c":1`)
		r := Merge(value(""), ours, theirs, Ours, Labels{"ours", "theirs"})
		if r.Kind == JSON || !bytes.Equal(r.Value, ours) || len(r.Conflicts) != 1 {
			t.Errorf("%q: %s %q, %d conflicts", name, r.Kind, r.Value, len(r.Conflicts))
		}
	}
}

// TestLargeValuesTakeNoLongTime: texts of many lines, or of lines that stand there many times, and objects within each
// other on many levels, are merged in seconds: as a whole where lines or members would take longer.
func TestLargeValuesTakeNoLongTime(t *testing.T) {
	many := strings.Repeat("x\n", 100_000)
	var different strings.Builder
	for i := range 100_000 {
		different.WriteString(fmt.Sprintln(i))
	}
	other := different.String()
	deep := func(n int, value string) string {
		return strings.Repeat(`{"a":`, n) + `"` + strings.Repeat("z", 100_000) + value + `"` + strings.Repeat("}", n)
	}
	for _, c := range []struct {
		name, base, ours, theirs string
		kind                     Kind
		conflicts                int
	}{
		{"around", many + "a\nb\nc\n" + many, many + "A\nb\nc\n" + many, many + "a\nb\nC\n" + many, Text, 0},
		{"between", "a\n" + many + "c\n", "A\n" + many + "c\n", "a\n" + many + "C\n", Binary, 1},
		{"all different", "a\n" + other + "c\n", "A\n" + other + "c\n", "a\n" + other + "C\n", Binary, 1},
		{"some levels", deep(60, "1"), deep(60, "2"), deep(60, "1"), JSON, 0},
		{"many levels", deep(10_000, "1"), deep(10_000, "2"), deep(10_000, "1"), Text, 0},
	} {
		r := Merge([]byte(c.base), []byte(c.ours), []byte(c.theirs), Ours, Labels{"ours", "theirs"})
		if r.Kind != c.kind || len(r.Conflicts) != c.conflicts {
			t.Errorf("%s: %s with %d conflicts", c.name, r.Kind, len(r.Conflicts))
		}
		if want := many + "A\nb\nC\n" + many; c.name == "around" && string(r.Value) != want {
			t.Errorf("%s: a value of %d bytes", c.name, len(r.Value))
		}
	}
}
