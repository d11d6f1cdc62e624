package show

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	mostQuoted = 128 // letters of what an error quotes in full
	mostWord   = 300 // letters of a word without quotes, such as a path or an address
	leastShown = 64  // letters of what is longer
)

// long matches what is quoted, in full or without an end, and words.
var long = regexp.MustCompile(fmt.Sprintf(`"(?:[^"\\\n]|\\.){%d,}"?|[^\s"]{%d,}`, mostQuoted+1, mostWord+1))

// Shortened is the text of an error with only the beginning of what it quotes, and how long that is. Values may have
// megabytes, and keys thousands of letters.
func Shortened(text string) string {
	return long.ReplaceAllStringFunc(text, func(s string) string {
		quoted := strings.HasPrefix(s, `"`)
		s = strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`)
		n := utf8.RuneCountInString(s)
		s = strings.TrimRight(string([]rune(s)[:leastShown]), `\`)
		if quoted {
			s = `"` + s + `…"`
		} else {
			s += "…"
		}
		return fmt.Sprintf("%s (%d characters)", s, n)
	})
}
