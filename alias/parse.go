package alias

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/aweigh/aweigh/internal/plain"
)

// SyntaxError states why a text is no name, and at which byte of it.
type SyntaxError struct {
	Offset int    // of the offending byte in Input; its length if something is missing at the end
	Input  string // as given
	Reason string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	input, more := e.Input, ""
	if len(input) > 2*MaxKey {
		input, more = input[:2*MaxKey], "…"
	}
	return fmt.Sprintf("alias: %s, at byte %d of %q%s", e.Reason, e.Offset, input, more)
}

// Parse reads any of the forms of a name. Its errors are of type *SyntaxError.
func Parse(text string) (Name, error) {
	p := parser{text: text}
	n, ok := p.name()
	if !ok {
		return Name{}, &SyntaxError{Offset: p.at, Input: text, Reason: p.reason}
	}
	return n, nil
}

// parser walks over text; after a failure, at and reason are its place and cause.
type parser struct {
	text   string
	at     int
	reason string
}

func (p *parser) fail(at int, reason string) (Name, bool) {
	p.at, p.reason = at, reason
	return Name{}, false
}

// name = [ action ( " " | ":" ) ] ( raw | quoted | alias )
func (p *parser) name() (n Name, ok bool) {
	head := len(p.text) // the action, if any, stands before the first of these
	if i := strings.IndexAny(p.text, `/"@`); i >= 0 {
		head = i
	}
	start := 0
	action := ""
	if i := strings.IndexAny(p.text[:head], " :"); i >= 0 {
		action, start = p.text[:i], i+1
		if at, reason := checkAction(action); reason != "" {
			return p.fail(at, reason)
		}
	}
	switch rest := p.text[start:]; {
	case rest == "":
		return p.fail(start, "a name is missing")
	case rest[0] == '/':
		n, ok = p.raw(start)
	case rest[0] == '"':
		n, ok = p.quoted(start)
	default:
		n, ok = p.alias(start)
	}
	n.action = action
	return n, ok
}

// CheckAction reports whether a text is an action. Errors are of type *SyntaxError.
func CheckAction(text string) error {
	if at, reason := checkAction(text); reason != "" {
		return &SyntaxError{Offset: at, Input: text, Reason: reason}
	}
	return nil
}

// checkAction = a–z { a–z | 0–9 | "-" | "_" }
func checkAction(s string) (at int, reason string) {
	if s == "" {
		return 0, "an empty action"
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == MaxAction:
			return i, fmt.Sprintf("an action of more than %d bytes", MaxAction)
		case c >= 'a' && c <= 'z', i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_'):
		default:
			return i, "an action is a lower-case word of a to z, 0 to 9, - and _"
		}
	}
	return 0, ""
}

func (p *parser) raw(start int) (Name, bool) {
	key := p.text[start:]
	if reason := checkKey(key); reason != "" {
		return p.fail(start+MaxKey, reason)
	}
	return Name{key: key}, true
}

func (p *parser) quoted(start int) (Name, bool) {
	var key []byte
	for rest := p.text[start+1:]; ; {
		at := len(p.text) - len(rest)
		switch {
		case rest == "":
			return p.fail(at, "a closing quote is missing")
		case rest[0] == '"' && len(rest) > 1:
			return p.fail(at+1, "text after the closing quote")
		case rest[0] == '"':
			if reason := checkKey(string(key)); reason != "" {
				return p.fail(at, reason)
			}
			return Name{key: string(key)}, true
		}
		c, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil || rest[0] == '\n' {
			return p.fail(at, "not a quoted character")
		}
		if c < utf8.RuneSelf || !multibyte {
			key = append(key, byte(c))
		} else if c == utf8.RuneError && rest[0] != '\\' {
			_, size := utf8.DecodeRuneInString(rest) // keep malformed bytes as they are
			key = append(key, rest[:size]...)
		} else {
			key = utf8.AppendRune(key, c)
		}
		if len(key) > MaxKey {
			return p.fail(at, checkKey(string(key)))
		}
		rest = tail
	}
}

// alias = TYPE "@" DOMAIN { "." SUB } { "/" PATH } [ ".v" N ]
func (p *parser) alias(start int) (Name, bool) {
	end, version, ok := p.version(start)
	if !ok {
		return Name{}, false
	}
	var n Name
	n.version = version
	var key strings.Builder
	segments := 0
	separators := "@"
	for from := start; ; segments++ {
		to := end
		if i := strings.IndexAny(p.text[from:end], separators); i >= 0 {
			to = from + i
		}
		if segments == 0 && to == end {
			return p.fail(end, "an alias is TYPE@DOMAIN, and a key starts with / or stands in quotes")
		}
		if at, reason := p.segment(from, to, segments); reason != "" {
			return p.fail(at, reason)
		}
		if i := strings.IndexByte(p.text[from:to], '@'); i >= 0 && separators == "./" {
			return p.fail(from+i, "a second @ before the path")
		}
		key.WriteByte('/')
		key.WriteString(norm.NFC.String(p.text[from:to]))
		if key.Len() > MaxKey {
			return p.fail(from, checkKey(key.String()))
		}
		if separators != "/" {
			n.host++
		}
		if to == end {
			break
		}
		switch p.text[to] {
		case '@':
			separators = "./"
		case '/':
			separators = "/"
		}
		from = to + 1
	}
	n.key = key.String()
	return n, true
}

// segment checks the segment text[from:to], the i-th of the alias.
func (p *parser) segment(from, to, i int) (at int, reason string) {
	s := p.text[from:to]
	switch {
	case i == MaxSegments:
		return from, fmt.Sprintf("more than %d segments", MaxSegments)
	case s == "":
		return from, "an empty segment"
	case s == "." || s == "..":
		return from, "a segment that is only dots"
	}
	for j, r := range s {
		at := from + j
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[j:], "\uFFFD"):
			return at, "not UTF-8"
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return at, "a control character"
		case unicode.IsSpace(r):
			return at, "white space"
		case plain.Hidden(r):
			return at, "a character that does not show; write the key in quotes"
		case i == 0 && (r == '/' || r == ':' || r == '"'):
			return at, "TYPE holds no " + strconv.QuoteRune(r)
		}
	}
	return 0, ""
}

// version finds the suffix ".vN" of an alias; end is where the rest ends.
func (p *parser) version(start int) (end int, version uint64, ok bool) {
	end = len(p.text)
	digits := end
	for digits > start && p.text[digits-1] >= '0' && p.text[digits-1] <= '9' {
		digits--
	}
	if digits == end || digits-2 < start || p.text[digits-2:digits] != ".v" {
		return end, 0, true
	}
	n, err := strconv.ParseUint(p.text[digits:], 10, 63)
	if err != nil || p.text[digits] == '0' {
		_, ok = p.fail(digits, fmt.Sprintf("a version is a number from 1 to %d, without leading zeros", int64(math.MaxInt64)))
		return 0, 0, ok
	}
	return digits - 2, n, true
}
