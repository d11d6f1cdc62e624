package witness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/testwitness"
	"github.com/aweigh/aweigh/internal/witness"
)

const text = "aweigh/test\n3\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nblock 7\n"

// policy is of the witnesses a to d, with the given lines after theirs.
func policy(lines string) string {
	all := "# of a test\n\nlog anything\n"
	for _, name := range []string{"a", "b", "c", "d"} {
		all += fmt.Sprintf("witness %s\t%s\n", name, testwitness.New(name+".example").VKey())
	}
	return all + lines
}

// TestQuorumsAreThoseOfThePolicy: for each set of signers, the verdict is that of an oracle.
func TestQuorumsAreThoseOfThePolicy(t *testing.T) {
	for lines, enough := range map[string]func(a, b, c, d bool) bool{
		"quorum none":                func(_, _, _, _ bool) bool { return true },
		"quorum b":                   func(_, b, _, _ bool) bool { return b },
		"group g any c d\nquorum g":  func(_, _, c, d bool) bool { return c || d },
		"group g all a b\nquorum g":  func(a, b, _, _ bool) bool { return a && b },
		"group g 2 a b c\nquorum g":  func(a, b, c, _ bool) bool { return a && b || a && c || b && c },
		"group g 1 a b\nquorum none": func(_, _, _, _ bool) bool { return true },
		"group g any a b\ngroup h all c d\ngroup i all g h\nquorum i": func(a, b, c, d bool) bool { return (a || b) && c && d },
		"group g any a b\ngroup h 2 g c d\nquorum h": func(a, b, c, d bool) bool {
			return (a || b) && c || (a || b) && d || c && d
		},
	} {
		p, err := witness.Parse(policy(lines))
		if err != nil {
			t.Fatal(err)
		}
		for signers := range 16 {
			note := text + "\n— anchor AAAA\n"
			var by []string
			in := func(i int) bool { return signers>>i&1 == 1 }
			for i, name := range []string{"a", "b", "c", "d"} {
				if in(i) {
					note, by = note+testwitness.New(name+".example").Sign(text), append(by, name)
				}
			}
			names, err := p.Check([]byte(note))
			if fmt.Sprint(names) != fmt.Sprint(by) {
				t.Errorf("%v signed, and %v are found", by, names)
			}
			if want := enough(in(0), in(1), in(2), in(3)); (err == nil) != want || err != nil && !errors.Is(err, witness.ErrFew) {
				t.Errorf("%q by %v: %v, want %v", lines, by, err, want)
			}
		}
	}
}

// TestCosignaturesOfOthersDoNotCount: neither of another text, nor of another key of the same name, nor cut off.
func TestCosignaturesOfOthersDoNotCount(t *testing.T) {
	p, err := witness.Parse(policy("quorum a"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := testwitness.New("a.example"), testwitness.New("b.example")
	good := a.Sign(text)
	b.Name = "a.example"
	for what, line := range map[string]string{
		"another text": a.Sign(text + "more\n"), "another key": b.Sign(text), "cut off": good[:len(good)-9] + "\n", "no line end": strings.TrimSuffix(good, "\n"),
		"no line": "", "another name": strings.Replace(good, "a.example", "x.example", 1),
	} {
		if names, err := p.Check([]byte(text + "\n" + line)); !errors.Is(err, witness.ErrFew) || len(names) > 0 {
			t.Errorf("%s: %v, %v", what, names, err)
		}
	}
	if _, err := p.Check([]byte(text + "\n" + a.Sign(text+"more\n") + good)); err != nil {
		t.Errorf("the line after a false one of its key: %v", err)
	}
	if _, err := p.Check([]byte(text + "\n" + b.Sign(text) + good)); err != nil {
		t.Errorf("the line after one of another key: %v", err)
	}
}

func TestOtherPoliciesAreRefused(t *testing.T) {
	key := testwitness.New("e.example").VKey()
	name, rest, _ := strings.Cut(key, "+")
	for what, lines := range map[string]string{
		"no quorum": "", "two quorums": "quorum a\nquorum b", "an unknown quorum": "quorum e", "a member twice": "group g 1 a a\nquorum g",
		"a member of two groups": "group g any a b\ngroup h any b c\nquorum h", "a group without members": "group g all\nquorum a",
		"more than there are": "group g 3 a b\nquorum g", "none needed": "group g 0 a b\nquorum g", "a later group": "group g any h a\ngroup h any b\nquorum g",
		"a name twice": "witness a " + key + "\nquorum a", "the name none": "group none any a\nquorum a", "none in a group": "group g any none a\nquorum g",
		"a key twice":       "witness e " + testwitness.New("a.example").VKey() + "\nquorum a",
		"another hash":      "witness e " + name + "+00000000" + rest[8:] + "\nquorum e",
		"another name":      "witness e x" + key + "\nquorum e",
		"a cut off key":     "witness e " + key[:len(key)-8] + "\nquorum e",
		"no key":            "witness e e.example\nquorum e",
		"a key of a log":    "witness e PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\nquorum e",
		"a URL of a file":   "witness e " + key + " file:///etc/passwd\nquorum e",
		"http elsewhere":    "witness e " + key + " http://e.example/x\nquorum e",
		"no host":           "witness e " + key + " https:///x\nquorum e",
		"an unknown line":   "witnesses e\nquorum a",
		"a carriage return": "quorum a\r\n",
	} {
		if _, err := witness.Parse(policy(lines)); !errors.Is(err, witness.ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if p, err := witness.Parse(policy("witness e " + key + " https://e.example/x/\nquorum e")); err != nil || p.Len() != 5 {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(policy("group g any a b\nquorum g"))
	f.Add("witness a + https://a\nquorum none")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := witness.Parse(s)
		if err != nil && !errors.Is(err, witness.ErrPolicy) {
			t.Fatal(err)
		}
		if err == nil {
			_, _ = p.Check([]byte(s))
		}
	})
}
