package show

import (
	"strings"
	"testing"
)

func TestErrorsQuoteTheBeginning(t *testing.T) {
	k := strings.Repeat("k", 64)
	for text, want := range map[string]string{
		`not "a", or "b"`: `not "a", or "b"`,
		`no such key: "` + strings.Repeat("k", 5000) + `"; see "aweigh ls"`:     `no such key: "` + k + `…" (5000 characters); see "aweigh ls"`,
		`line 3: ` + strings.Repeat("k", 1<<20) + ` is no value`:                `line 3: ` + k + `… (1048576 characters) is no value`,
		`"` + strings.Repeat("ü", 500) + `"`:                                    `"` + strings.Repeat("ü", 64) + `…" (500 characters)`,
		`"` + strings.Repeat(`k \"`, 500) + `" of "x"`:                          `"` + strings.Repeat(`k \"`, 16) + `…" (2000 characters) of "x"`,
		"/tmp/" + strings.Repeat("d/", 100) + "x: permission denied":            "/tmp/" + strings.Repeat("d/", 100) + "x: permission denied",
		"a\n\"" + strings.Repeat("v", 2000) + "\nb":                             "a\n\"" + strings.Repeat("v", 64) + "…\" (2000 characters)\nb",
		"the address " + strings.Repeat("k ", 40) + `"x" and ` + "many " + "w.": "the address " + strings.Repeat("k ", 40) + `"x" and ` + "many " + "w.",
		`read "A page" in ` + strings.Repeat("k ", 80) + `"x", and go on`:       `read "A page" in ` + strings.Repeat("k ", 80) + `"x", and go on`,
	} {
		if got := Shortened(text); got != want {
			t.Errorf("%.80q…: %q, want %q", text, got, want)
		}
	}
}
