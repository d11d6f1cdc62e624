package show

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	mostQuoted = 128 // letters of what an error quotes in full
	mostWord   = 300 // letters of a word without quotes, like a path or an address
	leastShown = 64  // letters shown of longer ones
)

// pieces matches each quotation, whatever its length, since a quotation that is skipped would leave its end to begin
// another one; without an end it ends with the line. It also matches long words.
var pieces = regexp.MustCompile(fmt.Sprintf(`"(?:[^"\\\n]|\\.)*"?|[^\s"]{%d,}`, mostWord+1))

// Shortened is the text of an error with only the beginning of what it quotes, and how long that is. Values may have
// megabytes, and keys thousands of letters.
func Shortened(text string) string {
	return pieces.ReplaceAllStringFunc(text, func(piece string) string {
		quoted := strings.HasPrefix(piece, `"`)
		s := strings.TrimSuffix(strings.TrimPrefix(piece, `"`), `"`)
		n := utf8.RuneCountInString(s)
		if quoted && n <= mostQuoted {
			return piece
		}
		s = strings.TrimRight(string([]rune(s)[:leastShown]), `\`)
		if quoted {
			s = `"` + s + `…"`
		} else {
			s += "…"
		}
		return fmt.Sprintf("%s (%d characters)", s, n)
	})
}
