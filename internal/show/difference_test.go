package show

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDifferencesAreReadable(t *testing.T) {
	numbers := func(n, changed int) []byte {
		var b strings.Builder
		for i := range n {
			if i == changed {
				fmt.Fprint(&b, "new ")
			}
			fmt.Fprintf(&b, "%d\n", i)
		}
		return []byte(strings.TrimSuffix(b.String(), "\n"))
	}
	for name, c := range map[string]struct {
		before, after []byte
		want          string
	}{
		"new":        {nil, []byte("v"), "+ v"},
		"gone":       {[]byte("v"), nil, "- v"},
		"same":       {[]byte("v"), []byte("v"), "  v"},
		"empty":      {[]byte("v"), []byte{}, "- v|+ (empty)"},
		"line break": {[]byte("v"), []byte("v\n"), "  v|+ (ends with a line break)"},
		"escape":     {nil, []byte("a\x1b[31m\nb"), `+ "a\x1b[31m"|+ b`},
		"middle":     {numbers(9, -1), numbers(9, 4), "  … 1 line as it is|  1|  2|  3|- 4|+ new 4|  5|  6|  7|  … 1 line as it is"},
		"binary":     {nil, []byte{0xff}, "+ (1 byte that are not text, SHA-256 a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89)"},
	} {
		if got := strings.Join(difference(c.before, c.after), "|"); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDifferencesShowBothSides: apart from the lines left out, both sides can be
// read from the difference.
func TestDifferencesShowBothSides(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		text := func() []byte {
			var lines []string
			for range r.IntN(4) + 1 {
				lines = append(lines, string(rune('a'+r.IntN(3))))
			}
			return []byte(strings.Join(lines, "\n"))
		}
		a, b := text(), text()
		var left, right []string
		for _, l := range difference(a, b) {
			if l[0] != '+' {
				left = append(left, l[2:])
			}
			if l[0] != '-' {
				right = append(right, l[2:])
			}
		}
		if strings.Contains(strings.Join(left, ""), "…") {
			continue
		}
		if strings.Join(left, "\n") != string(a) || strings.Join(right, "\n") != string(b) {
			t.Fatalf("%q and %q: %q", a, b, difference(a, b))
		}
	}
}
