package alias_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/alias"
)

func TestNamesAreReadAsTheGrammarSays(t *testing.T) {
	for _, c := range []struct {
		text, action, key string
		version           uint64
		form              string // String; empty if it is text itself
	}{
		{"read org@wikipedia.en/articles/42.v3", "read", "/org/wikipedia/en/articles/42", 3, ""},
		{"org@wikipedia.en/articles/42", "", "/org/wikipedia/en/articles/42", 0, ""},
		{"org@wikipedia", "", "/org/wikipedia", 0, ""},
		{"pay:user@elizabeth", "pay", "/user/elizabeth", 0, "pay user@elizabeth"},
		{"pay user@elizabeth", "pay", "/user/elizabeth", 0, ""},
		{"org@api.v2", "", "/org/api", 2, ""},
		{"org@api.v2.v1", "", "/org/api/v2", 1, ""},
		{"org@api/v2", "", "/org/api/v2", 0, ""},
		{"org@api.v2x", "", "/org/api/v2x", 0, ""},
		{"org@api/a.v3.v7", "", "/org/api/a.v3", 7, ""},
		{"org@v3", "", "/org/v3", 0, ""},
		{"org@w/v3", "", "/org/w/v3", 0, ""},
		{"org@w/a.b.c", "", "/org/w/a.b.c", 0, ""},
		{"mail@w/ann@example:25", "", "/mail/w/ann@example:25", 0, ""},
		{"org.unit@w", "", "/org.unit/w", 0, ""},
		{"org@w/.v9223372036854775807x", "", "/org/w/.v9223372036854775807x", 0, ""},
		{"org@w.v9223372036854775807", "", "/org/w", 1<<63 - 1, ""},
		{"org@caf\u0065\u0301", "", "/org/caf\u00e9", 0, "org@caf\u00e9"},
		{"org@\uFFFD", "", "/org/\uFFFD", 0, ""},
		{"/org/wikipedia/en", "", "/org/wikipedia/en", 0, ""},
		{"/registry/a.v3", "", "/registry/a.v3", 0, ""},
		{"/", "", "/", 0, ""},
		{"//a b:c@d/", "", "//a b:c@d/", 0, ""},
		{"read /a b", "read", "/a b", 0, ""},
		{"read:/a b", "read", "/a b", 0, "read /a b"},
		{"/a\x00", "", "/a\x00", 0, `"/a\x00"`},
		{"/\xff", "", "/\xff", 0, `"/\xff"`},
		{`"foo"`, "", "foo", 0, ""},
		{`read "foo"`, "read", "foo", 0, ""},
		{`"/foo"`, "", "/foo", 0, "/foo"},
		{`"\xff\"\u00e9é\n"`, "", "\xff\"éé\n", 0, `"\xff\"éé\n"`},
		{"\"\xff\uFFFD\\ufffd\"", "", "\xff\uFFFD\uFFFD", 0, "\"\\xff\uFFFD\uFFFD\""},
	} {
		n, err := alias.Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if n.Action() != c.action || string(n.Key()) != c.key || n.Version() != c.version {
			t.Errorf("%q: action %q, key %q, version %d", c.text, n.Action(), n.Key(), n.Version())
		}
		if c.form == "" {
			c.form = c.text
		}
		if n.String() != c.form {
			t.Errorf("%q is written %q, want %q", c.text, n, c.form)
		}
	}
}

func TestErrorsPointAtTheOffendingByte(t *testing.T) {
	long := strings.Repeat("x", 600)
	for _, c := range []struct {
		text   string
		offset int
		reason string
	}{
		{"", 0, "missing"},
		{"read ", 5, "missing"},
		{"foo", 3, "TYPE@DOMAIN"},
		{"read foo", 8, "TYPE@DOMAIN"},
		{"@w", 0, "empty segment"},
		{"org@", 4, "empty segment"},
		{"org@.v3", 4, "empty segment"},
		{"org@w..x", 6, "empty segment"},
		{"org@w/", 6, "empty segment"},
		{"org@w//x", 6, "empty segment"},
		{"org@w/../x", 6, "only dots"},
		{"org@w/..v3", 6, "only dots"},
		{"org/x@w", 3, "TYPE holds no"},
		{"a:b:c@w", 3, "TYPE holds no"},
		{"org@w@x", 5, "second @"},
		{"org@w.v0", 7, "version"},
		{"org@w.v03", 7, "version"},
		{"org@w.v9223372036854775808", 7, "version"},
		{"READ org@w", 0, "lower-case"},
		{"reäd org@w", 2, "lower-case"},
		{" org@w", 0, "empty action"},
		{":org@w", 0, "empty action"},
		{"read  org@w", 5, "white space"},
		{strings.Repeat("a", 65) + " org@w", 64, "64 bytes"},
		{"org@w/a b", 7, "white space"},
		{"org@w/a\u2028b", 7, "white space"},
		{"org@w/a\x7fb", 7, "control"},
		{"org@w/a\u202eb", 7, "control"},
		{"org@w/a\ufe0f", 7, "does not show"},
		{"org@w/\u2800a", 6, "does not show"},
		{"o\u3164rg@w", 1, "does not show"},
		{"org@w/a\xffb", 7, "UTF-8"},
		{"org@w/a\xe2\x82", 7, "UTF-8"},
		{"org@" + long + "/" + long, 605, "1024 bytes"},
		{"org@w" + strings.Repeat("/x", 63), 130, "64 segments"},
		{"/" + long + long, 1024, "1024 bytes"},
		{`"`, 1, "closing quote"},
		{`""`, 1, "empty key"},
		{`"a"b`, 3, "after the closing"},
		{`"a\qb"`, 2, "quoted character"},
		{"\"a\nb\"", 2, "quoted character"},
		{`"` + long + long + `"`, 1025, "1024 bytes"},
	} {
		n, err := alias.Parse(c.text)
		var syntax *alias.SyntaxError
		if !errors.As(err, &syntax) || !n.IsZero() {
			t.Errorf("%q: %v, %v", c.text, n, err)
			continue
		}
		if syntax.Offset != c.offset || !strings.Contains(syntax.Reason, c.reason) || syntax.Input != c.text {
			t.Errorf("%.40q: byte %d: %s; want byte %d: %s", c.text, syntax.Offset, syntax.Reason, c.offset, c.reason)
		}
	}
}

func TestLimitsAreReachable(t *testing.T) {
	for _, text := range []string{
		"org@w" + strings.Repeat("/x", 62),
		"org@" + strings.Repeat("x", alias.MaxKey-5),
		"/" + strings.Repeat("x", alias.MaxKey-1),
		strings.Repeat("/", alias.MaxKey),
		strings.Repeat("a", alias.MaxAction) + " org@w",
	} {
		if n, err := alias.Parse(text); err != nil || n.String() != text {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// TestKeysThatLookAlikeAreWrittenApart: a key with a character that does not show, or with a space at its end, is not
// written like the key without.
func TestKeysThatLookAlikeAreWrittenApart(t *testing.T) {
	for _, r := range " \ufe0f\u3164\u2800\u034f\u115f\uffa0\u180b\u17b4\u200b\u202e\u00ad\U000e0101" {
		n, err := alias.FromKey([]byte("/prod/a" + string(r)))
		if err != nil {
			t.Fatal(err)
		}
		text := n.String()
		if !strings.HasPrefix(text, `"/prod/a`) || r != ' ' && strings.ContainsRune(text, r) {
			t.Errorf("%U is written %q", r, text)
		}
		if again, err := alias.Parse(text); err != nil || again != n {
			t.Errorf("%q reads %q: %v", text, again.Key(), err)
		}
	}
}

func TestEveryKeyIsReachableInText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key")
		n, err := alias.FromKey(key)
		if err != nil {
			t.Fatal(err)
		}
		again, err := alias.Parse(n.String())
		if err != nil || again != n || string(again.Key()) != string(key) || !n.Raw() {
			t.Fatalf("%q written %q read %q: %v", key, n, again.Key(), err)
		}
	})
	for _, key := range [][]byte{nil, {}, make([]byte, alias.MaxKey+1)} {
		var syntax *alias.SyntaxError
		if _, err := alias.FromKey(key); !errors.As(err, &syntax) {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
}

func TestChangingAKeyDoesNotChangeItsName(t *testing.T) {
	n, _ := alias.Parse("org@w")
	n.Key()[0] = 'x'
	if string(n.Key()) != "/org/w" {
		t.Error("the name changed")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"read org@wikipedia.en/articles/42.v3", "/a.v3", `pay "x\xff"`, "a:b@c.v1.v2", "org@w/.v1", "x@é.v0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := alias.Parse(text)
		if err != nil {
			var syntax *alias.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) || syntax.Reason == "" || !n.IsZero() {
				t.Fatalf("%q: %v, %v", text, n, err)
			}
			return
		}
		if again, err := alias.Parse(n.String()); err != nil || again != n {
			t.Fatalf("%q is written %q, which reads %v, %v", text, n, again, err)
		}
		key := string(n.Key())
		if len(key) == 0 || len(key) > alias.MaxKey {
			t.Fatalf("%q: a key of %d bytes", text, len(key))
		}
		if strings.HasPrefix(text, "/") && (key != text || !n.Raw() || n.Version() != 0) {
			t.Fatalf("the raw key %q was read as %q", text, key)
		}
		if !n.Raw() && (!utf8.ValidString(key) || !normal(key) || key[0] != '/' || strings.Contains(key, "//")) {
			t.Fatalf("%q: key %q is not canonical", text, key)
		}
	})
}

// normal reports whether each segment is in NFC.
func normal(key string) bool {
	for _, s := range strings.Split(key, "/") {
		if !norm.NFC.IsNormalString(s) {
			return false
		}
	}
	return true
}
