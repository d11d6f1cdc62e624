package plain

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// invisible are some of each kind of character that a screen shows as nothing or as a blank.
const invisible = "\x00\x1b\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b" +
	"\u200b\u200d\u202e\u2028\u2066\u2800\u3000\u3164\ufe0f\ufeff\uffa0\ufff9\U000e0020\U000e0101\U0001d159"

// TestHiddenCharactersDoNotPrint: none of the list prints, and each character that Go knows and does not print is of
// the list.
func TestHiddenCharactersDoNotPrint(t *testing.T) {
	for _, r := range invisible {
		if !Hidden(r) || Prints(r) {
			t.Errorf("%U is shown", r)
		}
	}
	for i, x := range hidden {
		if x.first > x.last || i > 0 && hidden[i-1].last >= x.first {
			t.Errorf("%U to %U stand in no order", x.first, x.last)
		}
	}
	for _, r := range " aZ0~éあ漢\u0301😀=-/\ufffd" {
		if Hidden(r) || !Prints(r) {
			t.Errorf("%U does not print", r)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		linear := r&0xfffe == 0xfffe
		for _, x := range hidden {
			linear = linear || x.first <= r && r <= x.last
		}
		if Hidden(r) != linear {
			t.Fatalf("%U: %v by the search, %v by the list", r, Hidden(r), linear)
		}
		known := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
		if known && !unicode.IsPrint(r) && !Hidden(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && !Hidden(r) {
			t.Errorf("%U is not of the list", r)
		}
	}
}

// FuzzQuote: a quoted text prints and stands for the text.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{invisible, "\xff" + invisible, "", `"\`, "a b", "\U0010ffff\ufdd0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		if back, err := strconv.Unquote(q); err != nil || back != s || !Text(q) {
			t.Fatalf("%q is quoted as %+q, which is %+q: %v", s, q, back, err)
		}
	})
}

// TestNamesShow: a name has no character that does not show, and no space at its ends.
func TestNamesShow(t *testing.T) {
	for _, s := range []string{"", "node1", "anchor a", "Åbo", "alice, of \"accounts\"", "東京"} {
		if err := Name(s); err != nil {
			t.Error(err)
		}
	}
	bad := []string{" node1", "node1 ", "node1\xff"}
	for _, r := range invisible {
		bad = append(bad, "node1"+string(r))
	}
	for _, s := range bad {
		err := Name(s)
		if err == nil {
			t.Errorf("%+q is a name", s)
		} else if text := err.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, Hidden) {
			t.Errorf("%+q is not shown in %+q", s, text)
		}
	}
}
