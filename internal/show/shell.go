package show

import (
	"regexp"
	"strings"
)

// plainWord matches a word that no shell changes.
var plainWord = regexp.MustCompile(`^[\w./=:@%+,-]+$`)

// Word is a text as a shell takes it for one word. Every command that is printed for people to run has its arguments
// through here.
func Word(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
